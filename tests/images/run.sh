#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs and the images: two clones, built in other folders by other users at other times, give
# the same bytes and one digest; an archive is what it says, holds what it should and nothing else, and
# the programs in it find all that they load.
#
#   tests/images/run.sh              of the tree as it is, changes included
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/reproducible.sh
. "$root/scripts/lib/reproducible.sh"
failures=0

say_wrong() {
    echo "FAIL $*"
    failures=$((failures + 1))
}

# --- the two clones ---

# A commit of the tree as it is, so that what is tested need not be committed.
first_clone() {
    mkdir -p "$1"
    git -C "$root" ls-files -z --cached --others --exclude-standard |
        tar -C "$root" --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -C "$1" -xf -
    git -C "$1" init -q
    git -C "$1" add -A
    git -C "$1" -c user.name=test -c user.email=test@example.invalid commit -qm test
}

same_programs() {
    local program
    # shellcheck disable=SC2154  # build.sh's
    for program in "${programs[@]}"; do
        cmp "$tmp/clone/build/$program" "$tmp/another folder/build/$program" ||
            say_wrong "$program: two builds, two programs"
        printf '%s %.12s\n' "$program" "$(sha256sum <"$tmp/clone/build/$program")"
    done
}

build_images() {
    env -u SOURCE_DATE_EPOCH GPUSHARE_BUILD_DIR="$1/build" "$1/scripts/image.sh" --out "$2" >"$2.said"
}

same_digests() {
    sed -E 's/ [^ ]+\.tar / /' "$tmp/one.said" >"$tmp/one.digests"
    sed -E 's/ [^ ]+\.tar / /' "$tmp/two.said" >"$tmp/two.digests"
    diff "$tmp/one.digests" "$tmp/two.digests" || say_wrong "two clones, two digests"
    (cd "$tmp/one" && sha256sum ./*.tar) | (cd "$tmp/two" && sha256sum --quiet -c -) ||
        say_wrong "two clones, two archives"
}

# --- one archive ---

blob() {
    echo "$1/blobs/${2/://}"
}

# Every digest and size that is written down is that of the blob.
layout_is_consistent() {
    local layout=$1 file manifest config digest size
    for file in "$layout"/blobs/sha256/*; do
        [[ $(sha256sum "$file" | cut -d' ' -f1) == "${file##*/}" ]] || say_wrong "$file: wrong name"
    done
    manifest=$(blob "$layout" "$(jq -r '.manifests[0].digest' "$layout/index.json")")
    config=$(blob "$layout" "$(jq -r .config.digest "$manifest")")
    while read -r digest size; do
        [[ $(stat -c %s "$(blob "$layout" "$digest")") == "$size" ]] ||
            say_wrong "$digest has not the size $size"
    done < <(jq -r '.manifests[] | "\(.digest) \(.size)"' "$layout/index.json"
        jq -r '.config, .layers[] | "\(.digest) \(.size)"' "$manifest")
    [[ $(jq -r '.rootfs.diff_ids[0]' "$config") == \
        "sha256:$(zcat "$(blob "$layout" "$(jq -r '.layers[0].digest' "$manifest")")" |
            sha256sum | cut -d' ' -f1)" ]] || say_wrong "the layer is not what the config names"
    for file in "$layout/$(jq -r '.[0].Config' "$layout/manifest.json")" \
        "$layout/$(jq -r '.[0].Layers[0]' "$layout/manifest.json")"; do
        [[ -f $file ]] || say_wrong "manifest.json names $file"
    done
}

# column of the config, expected
says() {
    local config=$1 key=$2 expected=$3 found
    found=$(jq -r "$key" "$config")
    [[ $found == "$expected" ]] || say_wrong "$key is '$found', not '$expected'"
}

config_says() {
    local layout=$1 program=$2 user=$3 config commit
    config=$(blob "$layout" "$(jq -r '.manifests[0].digest' "$layout/index.json")")
    config=$(blob "$layout" "$(jq -r .config.digest "$config")")
    commit=$(git -C "$tmp/clone" rev-parse HEAD)
    says "$config" .config.User "$user"
    says "$config" '.config.Entrypoint | join(" ")' "/usr/bin/$program"
    says "$config" '.config.Labels["org.opencontainers.image.title"]' "$program"
    says "$config" '.config.Labels["org.opencontainers.image.licenses"]' Apache-2.0
    says "$config" '.config.Labels["org.opencontainers.image.revision"]' "$commit"
    says "$layout/index.json" '.manifests[0].annotations["io.containerd.image.name"]' \
        "gpushare.invalid/$program:$version"
}

# What scanners and lawyers look for: of each library its package, as dpkg and the SPDX document have it,
# its copyright, and every licence that is referred to.
papers_are_complete() {
    local rootfs=$1 program=$2 sbom=$1/usr/share/doc/gpushare/sbom.spdx.json file package version
    cmp -s "$root/LICENSE" "$rootfs/usr/share/doc/gpushare/LICENSE" || say_wrong "$program: no LICENSE"
    grep -qx 'ID=debian' "$rootfs/etc/os-release" || say_wrong "$program: no os-release"
    [[ $(jq -r '.files[].checksums[1].checksumValue' "$sbom") == \
        $(sha256sum <"$rootfs/usr/bin/$program" | cut -d' ' -f1) ]] ||
        say_wrong "$program: the SPDX document is another program's"
    [[ -z $(jq -r '([.SPDXID] + [(.packages + .files)[].SPDXID]) as $ids | .relationships[] |
        .spdxElementId, .relatedSpdxElement | select(. as $id | $ids | index($id) | not)' "$sbom") ]] ||
        say_wrong "$program: the SPDX document relates to nothing"
    for file in "$rootfs"/usr/lib/*/lib* "$rootfs"/etc/ssl/certs/*; do
        package=ca-certificates
        [[ $file == */certs/* ]] || package=$(dpkg-query -S "*/${file##*/}" | grep -v diversion |
            sed -E 's/(:[a-z0-9]+)?: .*//' | sort -u | head -n 1)
        version=$(dpkg-query -W -f '${Version}\n' "$package" | head -n 1)
        grep -qx "Version: $version" "$rootfs/var/lib/dpkg/status.d/$package" ||
            say_wrong "$program: no package data of ${file##*/} ($package)"
        [[ $(jq -r --arg name "$package" '.packages[] | select(.name == $name).versionInfo' \
            "$sbom") == "$version" ]] || say_wrong "$program: no $package $version in the SPDX document"
        [[ -s $rootfs/usr/share/doc/$package/copyright ]] || say_wrong "$program: no copyright of $package"
    done
    while read -r file; do
        cmp -s "$file" "$rootfs$file" || say_wrong "$program: $file is referred to, and not there"
    done < <(grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$rootfs/usr/share/doc" |
        sort -u)
}

says_of_packages() {
    rm -rf "$tmp/old/rootfs"
    APT_CONFIG=$tmp/old/apt.conf PATH=$tmp/old:$PATH GPUSHARE_BUILD_DIR=$tmp/clone/build \
        "$tmp/clone/scripts/image.sh" --rootfs "$tmp/old/rootfs" extender 2>"$tmp/old/said"
    [[ $(cat "$tmp/old/said") == "$1" ]] ||
        say_wrong "image.sh says of old packages: $(cat "$tmp/old/said")"
}

# A package list that has a fix of libcurl4; and no package list.
warns_of_old_packages() {
    mkdir -p "$tmp/old/lists"
    echo "Dir::State::lists \"$tmp/old/lists\";" >"$tmp/old/apt.conf"
    touch "$tmp/old/lists/archive_Packages"
    cat >"$tmp/old/apt-cache" <<'END'
#!/bin/sh
printf 'libc6:\n  Installed: 1\n  Candidate: 1\nlibcurl4:\n  Installed: 1\n  Candidate: 2\n'
END
    chmod 755 "$tmp/old/apt-cache"
    says_of_packages "image.sh: warning: libcurl4 1 is bundled, 2 is at hand (apt-get upgrade)"
    printf '#!/bin/sh\n' >"$tmp/old/apt-cache"
    says_of_packages ""
    touch -d '8 days ago' "$tmp/old/lists/archive_Packages"
    says_of_packages "image.sh: warning: the package lists are missing or older than a week: whether \
libraries have fixes is not known (apt-get update)"
}

# The program, libraries, certificates. Nothing that only this machine has, nothing privileged.
holds_nothing_else() {
    local rootfs=$1 program=$2 found
    found=$(cd "$rootfs" && find . ! -type d | grep -vxE \
        "\./usr/bin/$program|\./usr/lib/[a-z0-9_]+-linux-gnu/lib[^/]+\.so\.[0-9.]+|\./lib(64)?/ld-linux-[^/]+|\./etc/(ssl/certs/ca-certificates\.crt|os-release)|\./usr/share/(common-licenses/[A-Z][A-Za-z0-9.-]+|doc/[a-z0-9.+-]+/copyright|doc/gpushare/(LICENSE|sbom\.spdx\.json))|\./var/lib/dpkg/status\.d/[a-z0-9.+-]+") &&
        say_wrong "$program: what is $found doing there"
    found=$(find "$rootfs" \( -perm /7022 -o ! -uid 0 -o ! -gid 0 -o -type l \))
    [[ -z $found ]] || say_wrong "$program: owner or mode of $found"
    found=$(grep -c BEGIN "$rootfs/etc/ssl/certs/ca-certificates.crt")
    ((found == $(find /usr/share/ca-certificates/mozilla -name '*.crt' | wc -l))) ||
        say_wrong "$program: $found certificates"
}

# --- the programs in their root file systems ---

within() {
    env -i "PATH=/usr/bin:/usr/sbin:/bin:/sbin" timeout 20 chroot --userspec=65532:65532 "$@"
}

answers() {
    local expected=$1 said
    shift
    said=$(within "$@" 2>&1) || say_wrong "${*:2}: $said"
    grep -qF -- "$expected" <<<"$said" || say_wrong "${*:2} says '$said', not '$expected'"
}

# glibc resolves names without any file beside libc: the extender reaches a server by a name that
# only /etc/hosts knows, and is told 501.
resolves_names() {
    local rootfs=$1 port said
    coproc server { exec python3 -u -c '
import http.server
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
print(server.server_port)
server.serve_forever()' 2>/dev/null; }
    # shellcheck disable=SC2154  # set by coproc
    local pid=$server_PID
    read -r port <&"${server[0]}"
    echo "127.0.0.1 api.example.test" >"$rootfs/etc/hosts"
    cat >"$rootfs/kubeconfig" <<END
{"apiVersion": "v1", "kind": "Config", "current-context": "c",
 "clusters": [{"name": "c", "cluster": {"server": "http://api.example.test:$port"}}],
 "users": [{"name": "u", "user": {}}],
 "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
END
    said=$(within "$rootfs" /usr/bin/gpushare-extender --kubeconfig=/kubeconfig \
        --listen=127.0.0.1:0 --log-level=debug 2>&1 & sleep 2; kill -TERM $! 2>/dev/null; wait) || true
    kill "$pid"
    wait "$pid" 2>/dev/null || true
    rm "$rootfs/etc/hosts" "$rootfs/kubeconfig"
    grep -q 501 <<<"$said" || say_wrong "a name in /etc/hosts is not resolved: $said"
}

# --- all ---

image_is_right() {
    local name=$1 program=$2 user=$3 work=$tmp/check/$1 layer
    mkdir -p "$work/layout" "$work/rootfs"
    tar -xf "$tmp/one/gpushare-$name-$version-$(dpkg --print-architecture).tar" -C "$work/layout"
    layout_is_consistent "$work/layout"
    config_says "$work/layout" "$program" "$user"
    layer=$(blob "$work/layout" "$(jq -r '.manifests[0].digest' "$work/layout/index.json")")
    layer=$(blob "$work/layout" "$(jq -r '.layers[0].digest' "$layer")")
    tar -xzf "$layer" -C "$work/rootfs" --numeric-owner
    holds_nothing_else "$work/rootfs" "$program"
    papers_are_complete "$work/rootfs" "$program"
    # what the Dockerfiles take is the same
    GPUSHARE_BUILD_DIR=$tmp/clone/build "$tmp/clone/scripts/image.sh" --rootfs "$work/again" "$name"
    diff -r "$work/rootfs" "$work/again" || say_wrong "$name: --rootfs gives something else"
    answers "$version" "$work/rootfs" "/usr/bin/$program" --version
}

main() {
    apt_need git jq python3 tar
    ((EUID == 0)) || { echo "needs root, for chroot" >&2 && exit 2; }
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    chmod 755 "$tmp"
    version=$(sed -nE 's/^project\(gpushare VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
    first_clone "$tmp/clone"
    git clone -q "$tmp/clone" "$tmp/another folder"
    build_twice "$tmp/clone" "$tmp/another folder" "${programs[@]}"
    same_programs
    build_images "$tmp/clone" "$tmp/one"
    (
        umask 077
        TZ=Asia/Tokyo build_images "$tmp/another folder" "$tmp/two"
    )
    same_digests
    image_is_right extender gpushare-extender 65532:65532
    image_is_right device-plugin gpushare-device-plugin 0:0
    image_is_right mps gpushare-mps 0:0
    image_is_right inspect kubectl-inspect-gpushare 65532:65532
    answers "16 units of GiB" "$tmp/check/device-plugin/rootfs" /usr/bin/gpushare-device-plugin \
        --print-inventory --fake-gpus=1x16384MiB
    warns_of_old_packages
    resolves_names "$tmp/check/extender/rootfs"
    cat "$tmp/one.digests"
    ((failures == 0))
}

main "$@"
