# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced after apt.sh and build.sh: builds of two folders that share nothing but the source and the
# compiler. Both at once; the programs are in FOLDER/build.
#
#   build_twice /tmp/clone "/tmp/another, longer folder" gpushare-extender gpushare-sim

# Everything that an honest build should not depend on is another one each time.
build_here() {
    cmake --preset release -Wno-dev >/dev/null
    cmake --build --preset release --target "$@" -- --quiet "-j${jobs:?}"
}

build_one_way() (
    cd "$1" || exit
    umask 022
    export -f build_here
    env LC_ALL=C TZ=UTC HOME=/nonexistent jobs=2 bash -euc 'build_here "$@"' build "${@:2}"
)

build_another_way() (
    cd "$1" || exit
    umask 077
    local -a as=()
    if ((EUID == 0)); then
        chown -R nobody "$1"
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    fi
    export -f build_here
    env LC_ALL=C.UTF-8 TZ=Pacific/Chatham USER=somebody HOME="$1/home" jobs=3 LANGUAGE=de \
        "${as[@]}" faketime -f '+400d' bash -euc 'build_here "$@"' build "${@:2}"
    ((EUID != 0)) || chown -R root:root "$1"
)

# Neither the caller's compiler cache nor his options.
build_twice() (
    unset CMAKE_C_COMPILER_LAUNCHER CFLAGS LDFLAGS
    export CCACHE_DISABLE=1
    # shellcheck disable=SC2154  # build.sh's
    apt_need "${build_packages[@]}" faketime
    build_one_way "$1" "${@:3}" &
    build_another_way "$2" "${@:3}"
    wait $!
)
