#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The images of two architectures in one index: it lists both, each of its blobs is what it is named, and
# the programs of the other architecture start from what is in their image and nothing else, under
# qemu-user. Needs root and minutes; not in CI.
#
#   tests/images/platforms.sh [FOLDER]     of archives that are there already
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/debian.sh
. "$root/scripts/lib/debian.sh"
failures=0

say_wrong() {
    echo "FAIL $*"
    failures=$((failures + 1))
}

blob() {
    echo "$1/blobs/${2/://}"
}

blobs_are_named_right() {
    local file
    for file in "$1"/blobs/sha256/*; do
        [[ $(sha256sum "$file" | cut -d' ' -f1) == "${file##*/}" ]] || say_wrong "$file: wrong name"
    done
}

# architecture, layout, its manifest's digest; the program answers from its own root file system
starts() {
    local architecture=$1 layout=$2 manifest config rootfs=$2-$1 emulator="" program said
    manifest=$(blob "$layout" "$3")
    config=$(blob "$layout" "$(jq -r .config.digest "$manifest")")
    [[ $(jq -r .architecture "$config") == "$architecture" ]] || say_wrong "$layout: not of $architecture"
    mkdir "$rootfs"
    tar -xzf "$(blob "$layout" "$(jq -r '.layers[0].digest' "$manifest")")" -C "$rootfs"
    program=$(jq -r '.config.Entrypoint[0]' "$config")
    if [[ $architecture == arm64 ]]; then
        emulator=/qemu
        cp "$debian_cache/cross-arm64/usr/bin/qemu-aarch64-static" "$rootfs$emulator"
        grep -q AArch64 <(readelf -h "$rootfs$program") || say_wrong "$program is not of $architecture"
    fi
    # shellcheck disable=SC2086  # none is no word
    said=$(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot --userspec=65532:65532 "$rootfs" $emulator "$program" --version 2>&1) || true
    [[ $said == *"$version"* ]] || say_wrong "$program of $architecture says '$said'"
    grep -q "arch=$architecture" "$rootfs/usr/share/doc/gpushare/sbom.spdx.json" ||
        say_wrong "the SPDX document of $program is of another architecture than $architecture"
    ! grep -L "^Architecture: \($architecture\|all\)" "$rootfs"/var/lib/dpkg/status.d/* |
        grep -v 'base-files$' || say_wrong "$program of $architecture: packages of another architecture"
}

index_is_right() {
    local name=$1 layout=$tmp/$1 index
    mkdir "$layout"
    tar -C "$layout" -xf "$out/gpushare-$name-$version.tar"
    blobs_are_named_right "$layout"
    index=$(blob "$layout" "$(jq -r '.manifests[0].digest' "$layout/index.json")")
    [[ $(jq -r '[.manifests[].platform | "\(.os)/\(.architecture)"] | join(" ")' "$index") == \
        "linux/amd64 linux/arm64" ]] || say_wrong "$name: the index lists $(jq -c .manifests "$index")"
    while read -r architecture digest; do
        starts "$architecture" "$layout" "$digest"
    done < <(jq -r '.manifests[] | "\(.platform.architecture) \(.digest)"' "$index")
}

main() {
    apt_need binutils jq tar
    ((EUID == 0)) || { echo "needs root, for chroot" >&2 && exit 2; }
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    chmod 755 "$tmp"
    version=$(sed -nE 's/^project\(gpushare VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
    out=${1:-$tmp/images}
    [[ -d $out ]] || "$root/scripts/image.sh" --platform linux/amd64,linux/arm64 --out "$out"
    for name in extender device-plugin mps inspect; do
        index_is_right "$name"
    done
    ((failures == 0)) && echo "4 images for two architectures"
}

main "$@"
