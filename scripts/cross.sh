#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs for arm64 (GH200, GB200), built on an amd64 Debian: Debian's cross compiler and arm64's
# libraries in a fresh Debian 12 of their own, so that nothing of it is on this machine. The unit tests
# run under qemu-user. Needs root, for chroot; some 1.5 GB of cache; minutes. Not a part of CI.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/debian.sh
. "$root/scripts/lib/debian.sh"
# shellcheck source=scripts/lib/rootfs.sh
. "$root/scripts/lib/rootfs.sh"

out=$root/build/release
cross=$debian_cache/cross-arm64
packages=(
    cmake ninja-build pkg-config dpkg-dev file gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    protobuf-c-compiler qemu-user-static uthash-dev binutils ca-certificates git jq
    {libc6,libjansson,libmicrohttpd,libcurl4-openssl,libyaml,libnghttp2,libprotobuf-c}-dev:arm64
    {libsmartcols,libcmocka,libseccomp}-dev:arm64
)
# Not of ours, but qemu-user's doing (7.2): of TCP_INFO it gives the first 4 bytes, without which nobody sees
# how far a client has read.
not_emulated='http_test_deadlines'
layers='base|model|core|codec|service|allocate|sim|kube|http|grpc|nvml|limit'

usage() {
    cat <<'EOF'
Usage: scripts/cross.sh [--out DIR]
       scripts/cross.sh --images DIR [IMAGE]...

Builds for arm64, runs the unit tests under qemu-user, and writes what scripts/package.sh makes, the .debs and
the CLI's archive, into DIR (default: build/release).

--images writes gpushare-IMAGE-VERSION-arm64.tar into DIR instead (scripts/image.sh --platform).
EOF
}

# What is mounted there ends with the command.
# shellcheck disable=SC2016  # the inner shell's own
within() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        unshare --mount sh -euc 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$cross" "$@"
}

# The folder appears with one rename, so that a killed run leaves no half one; more packages come later.
toolchain() {
    local whole=$cross
    if [[ ! -d $cross ]]; then
        echo "fetching the cross compiler and arm64's libraries (minutes, once)" >&2
        cross=$whole.part
        rm -rf "$cross"
        mkdir -p "$cross"
        tar -C "$cross" -xzf "$debian_base"
        cp /etc/resolv.conf "$cross/etc/resolv.conf"
        within dpkg --add-architecture arm64
        within apt-get -q update
    fi
    [[ $(cat "$cross/etc/gpushare-packages" 2>/dev/null) == "${packages[*]}" ]] ||
        within apt-get -q -y --no-install-recommends install "${packages[@]}"
    rm -f "$cross"/var/cache/apt/archives/*.deb
    echo "${packages[*]}" >"$cross/etc/gpushare-packages"
    [[ $cross == "$whole" ]] || mv "$cross" "$whole"
    cross=$whole
    arm64_tools
}

# What scripts/image.sh and scripts/sbom.sh ask of a machine, of arm64: the linker's list of libraries,
# and of a package that is there for both architectures the one of arm64.
arm64_tools() {
    local tools=$cross/opt/arm64 tool
    mkdir -p "$tools"
    cat >"$tools/ldd" <<'END'
#!/bin/sh
exec qemu-aarch64-static /lib/ld-linux-aarch64.so.1 --list "$@"
END
    for tool in gcc strip; do
        printf '#!/bin/sh\nexec aarch64-linux-gnu-%s "$@"\n' "$tool" >"$tools/$tool"
    done
    cat >"$tools/dpkg" <<'END'
#!/bin/sh
[ "$1" != --print-architecture ] || exec echo arm64
exec /usr/bin/dpkg "$@"
END
    cat >"$tools/dpkg-query" <<'END'
#!/bin/bash
last=${*: -1}
/usr/bin/dpkg-query -W "$last:arm64" >/dev/null 2>&1 && set -- "${@:1:$#-1}" "$last:arm64"
exec "/usr/bin/${0##*/}" "$@"
END
    cat >"$tools/apt-cache" <<'END'
#!/bin/bash
for name in "${@:2}"; do
    /usr/bin/dpkg-query -W "$name:arm64" >/dev/null 2>&1 && name+=:arm64
    /usr/bin/apt-cache "$1" "$name"
done
END
    chmod 755 "$tools"/*
}

copy_source() {
    rm -rf "$cross/src"
    mkdir -p "$cross/src"
    git -C "$root" ls-files -z --cached --others --exclude-standard |
        tar -C "$root" --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -C "$cross/src" -xf -
}

# The programs and these targets besides.
build() {
    within sh -euc "cd /src
        cmake -G Ninja -B build-arm64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake \
            -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGS_WERROR=ON >/dev/null
        tests=\$(ninja -C build-arm64 -t targets all | sed -nE 's/^(($1)_test_[a-z_0-9]+): phony\$/\1/p')
        cmake --build build-arm64 --target ${programs[*]} \$tests -- --quiet"
}

# Those that fail beside others are run once more, alone: emulated they are slow, and some have deadlines.
run_tests() {
    within sh -euc "cd /src/build-arm64
        ctest -j$(nproc) -R '^($layers)_test_' -E '^($not_emulated)\$' >/tmp/tests 2>&1 ||
            ctest --rerun-failed --output-on-failure"
    grep 'tests passed' "$cross/tmp/tests"
    echo "left out: ${not_emulated//|/, }"
}

# Another script of ours, in a Debian whose tools speak of arm64; what it writes comes to DIR.
run_there() {
    rm -rf "$cross/made"
    within env PATH="/opt/arm64:/usr/sbin:/usr/bin:/sbin:/bin" GPUSHARE_BUILD_DIR=/src/build-arm64 \
        GPUSHARE_REVISION="$revision" SOURCE_DATE_EPOCH="$epoch" IMAGE_SOURCE="${IMAGE_SOURCE:-}" \
        "/src/scripts/$1" --out /made "${@:2}"
    cp "$cross"/made/* "$out/"
}

main() {
    local images=no
    case ${1:-} in
    --out | --images)
        [[ $1 == --out ]] || images=yes
        out=$(realpath -m "${2:?$1 needs a folder}")
        shift 2
        ;;
    --help | -h) usage && exit 0 ;;
    esac
    (($# == 0)) || [[ $images == yes ]] || { usage >&2 && exit 2; }
    ((EUID == 0)) || { echo "needs root, for chroot" >&2 && exit 2; }
    apt_need debootstrap git
    release_facts
    fetch_debian_base
    toolchain >&2
    copy_source
    mkdir -p "$out"
    if [[ $images == yes ]]; then
        build none
        run_there image.sh "$@"
    else
        build "$layers"
        run_there package.sh
        run_tests || { echo "unit tests failed under qemu-user" >&2 && exit 1; }
    fi
}

main "$@"
