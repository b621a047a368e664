#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages go into a fresh Debian 12, run there as nobody, and leave nothing behind when
# they are removed; the CLI's archive runs where there is a shell and nothing else; a release is whole,
# and refused while it is unfinished.
#
#   tests/packages/run.sh FOLDER       with what scripts/release.sh --draft wrote
#
# Debian's base system and the libraries that the packages want are fetched once, into
# ${XDG_CACHE_HOME:-~/.cache}/gpushare/packages.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/debian.sh
. "$root/scripts/lib/debian.sh"
cache=$debian_cache
failures=0

say_wrong() {
    echo "FAIL $*"
    failures=$((failures + 1))
}

# --- a fresh Debian ---

fresh_debian() {
    mkdir -p "$debian"
    tar -C "$debian" -xzf "$debian_base"
    cp /etc/resolv.conf "$debian/etc/resolv.conf"
    find "$cache/debs" -name '*.deb' -exec cp -t "$debian/var/cache/apt/archives" {} +
}

within() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive timeout 300 chroot "$@"
}

as_nobody() {
    within --userspec=65534:65534 "$debian" "$@"
}

# What apt and dpkg keep about their own work is not the packages'.
whats_there() {
    (cd "$debian" && find . -path ./var/lib/dpkg -prune -o -path ./var/lib/apt -prune -o \
        -path ./var/cache -prune -o -path ./var/log -prune -o -path ./debs -prune -o -print | sort)
    within "$debian" dpkg-query -W
}

# --- the packages ---

install_them() {
    local again
    mkdir "$debian/debs"
    cp "$packages"/*.deb "$debian/debs/"
    for again in "" again; do
        within "$debian" sh -c 'apt-get -q -y --no-install-recommends install /debs/*.deb' \
            >"$tmp/install$again.log" 2>&1 && break
        # what is kept is older than the archive, or this is the first time
        [[ -z $again ]] && within "$debian" apt-get -q update >>"$tmp/install.log" 2>&1 && continue
        cat "$tmp/installagain.log" 2>/dev/null
        say_wrong "the packages cannot be installed"
        return 1
    done
    find "$debian/var/cache/apt/archives" -name '*.deb' -exec cp -u -t "$cache/debs" {} +
}

# program, arguments, what it says
answers() {
    local expected=$1 said
    shift
    said=$(as_nobody "$@" 2>&1) || say_wrong "$*: $said"
    grep -qF -- "$expected" <<<"$said" || say_wrong "$* says '$said', not '$expected'"
}

they_run() {
    local program
    for program in "${programs[@]}"; do
        answers "$version" "$program" --version
        answers "Usage: " "$program" --help
        [[ -s $debian/usr/share/man/man1/$program.1 ]] || say_wrong "$program: no manual page"
        cmp -s "$root/LICENSE" "$debian/usr/share/doc/$program/copyright" ||
            say_wrong "$program: no licence"
        within "$debian" dpkg --verify "$program" | sed 's/^/FAIL dpkg --verify: /' | grep . &&
            failures=$((failures + 1))
    done
    answers "16 units of GiB" gpushare-device-plugin --print-inventory --fake-gpus=1x16384MiB
    answers "--sort" kubectl_complete-inspect-gpushare --so
}

remove_them() {
    within "$debian" apt-get -q -y --purge autoremove "${programs[@]}" >"$tmp/remove.log" 2>&1 ||
        { cat "$tmp/remove.log" && say_wrong "the packages cannot be removed"; }
    whats_there | diff --label before --label after -u0 "$tmp/before" - ||
        say_wrong "something is left of the packages, or gone with them"
}

# --- the archive ---

# A Linux with busybox and nothing else: no library, no linker.
archive_runs() {
    local bare=$tmp/bare name said program
    mkdir -p "$bare/bin" "$bare/opt"
    apt_extract busybox-static "$tmp/busybox"
    cp "$tmp/busybox/bin/busybox" "$bare/bin/"
    for program in sh dirname readlink; do ln -s busybox "$bare/bin/$program"; done
    tar -C "$bare/opt" -xzf "$packages"/kubectl-inspect-gpushare-*.tar.gz
    name=$(cd "$bare/opt" && ls)
    ln -s "../opt/$name/kubectl-inspect-gpushare" "$bare/bin/kubectl-inspect-gpushare"
    said=$(within --userspec=65534:65534 "$bare" kubectl-inspect-gpushare --version 2>&1) || true
    [[ $said == "gpushare $version"* ]] || say_wrong "the archive's CLI says '$said'"
    said=$(within --userspec=65534:65534 "$bare" kubectl-inspect-gpushare --server=http://127.0.0.1:1 2>&1) &&
        say_wrong "the archive's CLI found a cluster: $said"
    grep -q "http://127.0.0.1:1.*connect" <<<"$said" || say_wrong "the archive's CLI says '$said'"
}

# --- the release ---

krew_has_the_archive() {
    local sum name folder manifest=$packages/inspect-gpushare.yaml
    read -r sum name < <(grep ' kubectl-.*\.tar\.gz$' "$packages/SHA256SUMS")
    folder=$(sed -n 's|^    - from: \(.*\)/\*$|\1|p' "$manifest")
    grep -qx "    sha256: $sum" "$manifest" || return 1
    grep -q "^    uri: .*/v$version/$name$" "$manifest" || return 1
    tar -tzf "$packages/$name" | grep -x "$folder/kubectl-inspect-gpushare" >"$tmp/found"
}

release_is_whole() {
    (cd "$packages" && sha256sum --quiet -c SHA256SUMS) || say_wrong "a checksum is wrong"
    [[ $(find "$packages" -type f ! -name SHA256SUMS | wc -l) == $(wc -l <"$packages/SHA256SUMS") ]] ||
        say_wrong "not every file is in SHA256SUMS"
    krew_has_the_archive || say_wrong "krew's manifest is not of the archive"
    tar -xzOf "$packages/gpushare-chart-$version.tgz" gpushare/policies/own-keys.yaml |
        cmp -s - "$root/manifests/policies/own-keys.yaml" || say_wrong "the chart lacks the policies"
    tar -tzf "$packages/gpushare-$version.tar.gz" |
        grep -x "gpushare-$version/CMakeLists.txt" >"$tmp/found" ||
        say_wrong "the source lacks CMakeLists.txt"
}

# Each image and the chart once.
commands_publish_all() {
    local file
    for file in "$packages"/gpushare-*-"$version"-*.tar "$packages"/*.tgz; do
        [[ $(grep -cF "${file##*/} " "$packages/publish.sh") == 1 ]] ||
            say_wrong "publish.sh does not publish ${file##*/} once"
    done
    for file in "$packages"/gpushare-*-"$version"-*.tar; do
        tar -xOf "$file" index.json | grep -qF "/$(sed -n "s|^push ${file##*/} ||p" "$packages/publish.sh"):$version" ||
            say_wrong "publish.sh gives ${file##*/} another name"
    done
    [[ $(grep -c '^[^#]' "$packages/PUBLISH.txt") == 3 ]] || say_wrong "PUBLISH.txt has not three commands"
    jq -e '.__inputs[0].name == "DS_PROMETHEUS" and ([.. | .uid? // empty] | all(. != "${datasource}"))' \
        "$packages/gpushare-dashboard.json" >/dev/null || say_wrong "the dashboard asks for no data source"
}

# A clone without a date in CHANGELOG.md, with an untracked file, and an older chart.
unfinished_is_refused() {
    local said clone=$tmp/clone
    git clone -q "$root" "$clone"
    cp "$root/scripts/release.sh" "$clone/scripts/"
    cp "$root"/scripts/lib/* "$clone/scripts/lib/"
    sed -i '0,/^## .*/s//## 0.0.9 (not released yet)/' "$clone/CHANGELOG.md"
    sed -i 's/^appVersion: .*/appVersion: 0.0.8/' "$clone/manifests/chart/Chart.yaml"
    said=$("$clone/scripts/release.sh" --out "$tmp/none" 2>&1) && say_wrong "an unfinished release is made"
    for expected in 'CHANGELOG.md begins with "## 0.0.9 (not released yet)"' "CHANGELOG.md says nothing" \
        "the tree is not what is committed" "Chart.yaml has the version 0.0.8, $version"; do
        grep -qF "$expected" <<<"$said" || say_wrong "release.sh does not say '$expected': $said"
    done
    [[ ! -e $tmp/none ]] || say_wrong "release.sh wrote before it refused"
}

main() {
    (($# == 1)) || { sed -n '3,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2; }
    packages=$1
    ((EUID == 0)) || { echo "needs root, for chroot" >&2 && exit 2; }
    apt_need debootstrap
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    chmod 755 "$tmp"
    debian=$tmp/debian
    version=$(sed -nE 's/^project\(gpushare VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
    fetch_debian_base
    mkdir -p "$cache/debs"
    fresh_debian
    whats_there >"$tmp/before"
    if install_them; then
        they_run
        remove_them
    fi
    archive_runs
    release_is_whole
    commands_publish_all
    unfinished_is_refused
    ((failures == 0))
}

main "$@"
