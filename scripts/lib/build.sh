# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced after apt.sh: what a build needs, and the build. Programs appear in build/ (release).
#
#   build_project "$root" release                       # everything
#   build_project "$root" asan gpushare-extender        # these targets only

# What is shipped.
# shellcheck disable=SC2034 # read by the scripts that source this
programs=(gpushare-extender gpushare-device-plugin gpushare-mps kubectl-inspect-gpushare gpushare-sim)

build_packages=(
    cmake ninja-build gcc libc6-dev pkg-config
    libjansson-dev libmicrohttpd-dev libcurl4-openssl-dev libyaml-dev libnghttp2-dev
    libprotobuf-c-dev protobuf-c-compiler libsmartcols-dev libcmocka-dev libseccomp-dev
    uthash-dev
)

build_project() {
    local source_dir=$1 preset=$2
    apt_need "${build_packages[@]}"
    (
        cd "$source_dir" || exit
        exec 7<.
        flock 7 # one at a time: steps of check.sh run beside each other
        cmake --preset "$preset" >/dev/null
        cmake --build --preset "$preset" ${3:+--target "${@:3}"} -- --quiet >&2
    )
}
