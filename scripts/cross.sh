#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs for arm64 (GH200, GB200), built on an amd64 Debian: Debian's cross compiler and arm64's
# libraries in a fresh Debian 12 of their own, so that nothing of it is on this machine. The unit tests
# run under qemu-user. Needs root, for chroot; some 1.5 GB of cache. Not a part of CI.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/debian.sh
. "$root/scripts/lib/debian.sh"

out=$root/build/release
cross=$debian_cache/cross-arm64
layers='base|model|core|codec|service|allocate|sim|kube|http|grpc|nvml|limit'

usage() {
    cat <<'EOF'
Usage: scripts/cross.sh [--out DIR]

Builds for arm64, runs the unit tests under qemu-user, and writes PROGRAM_VERSION_arm64.deb into DIR
(default: build/release, where scripts/release.sh leaves them).
EOF
}

within() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        chroot "$cross" "$@"
}

# The folder appears with one rename, so that a killed run leaves no half one.
toolchain() {
    local whole=$cross
    [[ -d $cross ]] && return 0
    echo "fetching the cross compiler and arm64's libraries (minutes, once)" >&2
    cross=$whole.part
    rm -rf "$cross"
    mkdir -p "$cross"
    tar -C "$cross" -xzf "$debian_base"
    cp /etc/resolv.conf "$cross/etc/resolv.conf"
    within dpkg --add-architecture arm64
    within apt-get -q update
    within apt-get -q -y --no-install-recommends install cmake ninja-build pkg-config dpkg-dev file gcc \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross protobuf-c-compiler qemu-user-static uthash-dev \
        {libc6,libjansson,libmicrohttpd,libcurl4-openssl,libyaml,libnghttp2,libprotobuf-c}-dev:arm64 \
        {libsmartcols,libcmocka,libseccomp}-dev:arm64
    rm -f "$cross"/var/cache/apt/archives/*.deb
    mv "$cross" "$whole"
    cross=$whole
}

copy_source() {
    rm -rf "$cross/src"
    mkdir -p "$cross/src"
    git -C "$root" ls-files -z --cached --others --exclude-standard |
        tar -C "$root" --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -C "$cross/src" -xf -
}

main() {
    case ${1:-} in
    --out) out=$(realpath -m "${2:?--out needs a folder}") ;;
    --help | -h) usage && exit 0 ;;
    ?*) usage >&2 && exit 2 ;;
    esac
    ((EUID == 0)) || { echo "needs root, for chroot" >&2 && exit 2; }
    apt_need debootstrap git
    fetch_debian_base
    toolchain >&2
    copy_source
    epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
    within sh -euc "cd /src
        cmake -G Ninja -B build-arm64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake \
            -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGS_WERROR=ON >/dev/null
        tests=\$(ninja -C build-arm64 -t targets all | sed -nE 's/^(($layers)_test_[a-z_0-9]+): phony\$/\1/p')
        cmake --build build-arm64 --target ${programs[*]} \$tests -- --quiet
        cd build-arm64
        ctest -j$(nproc) -R '^($layers)_test_' --output-on-failure || failed=1
        rm -rf packages
        SOURCE_DATE_EPOCH=$epoch cpack -G DEB -B packages >/dev/null
        exit \${failed:-0}" || failed=1
    mkdir -p "$out"
    cp "$cross"/src/build-arm64/packages/*.deb "$out/"
    (cd "$out" && ls -- *_arm64.deb)
    [[ -z ${failed:-} ]] || { echo "unit tests failed under qemu-user" >&2 && exit 1; }
}

main "$@"
