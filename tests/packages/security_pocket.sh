#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/lib/security_pocket.sh against apt itself, whose sources are a folder: what is newer there is
# named, what is not, or not in the security pocket, is not, and no pocket is no good news.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/security_pocket.sh
. "$root/scripts/lib/security_pocket.sh"

# suite, lines "package version"
repository() {
    local folder=$tmp/debian/dists/$1/main/binary-amd64 package version
    mkdir -p "$folder"
    while read -r package version; do
        printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nFilename: x\nSize: 1\nSHA256: %064d\n\n' \
            "$package" "$version" 0
    done >"$folder/Packages"
    printf 'Date: Thu, 01 Jan 2026 00:00:00 UTC\nSuite: %s\nCodename: %s\nArchitectures: amd64\nComponents: main\nSHA256:\n %s %s %s\n' "$1" "$1" \
        "$(sha256sum <"$folder/Packages" | cut -d' ' -f1)" "$(stat -c %s "$folder/Packages")" \
        main/binary-amd64/Packages >"$tmp/debian/dists/$1/Release"
    echo "deb [trusted=yes arch=amd64] file:$tmp/debian $1 main" >>"$tmp/sources.list"
}

# lines "package version"
document() {
    jq -R -n '{packages: ([inputs | split(" ") | {name: .[0], versionInfo: .[1],
        supplier: "Organization: Debian"}] + [{name: "gpushare", versionInfo: "0"}])}' >"$tmp/sbom.json"
}

# row, the lines expected
says() {
    local said
    apt-get -qq update
    said=$(newer_in_security_pocket "$tmp/sbom.json")
    [[ $said == "$2" ]] || { echo "FAIL: $1: '$said', expected '$2'" && failures=$((failures + 1)); }
}

apt_need jq
failures=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
mkdir -p "$tmp"/{lists/partial,cache/archives/partial,parts,debian}
cat >"$tmp/apt.conf" <<CONF
Dir::Etc::SourceList "$tmp/sources.list";
Dir::Etc::SourceParts "$tmp/parts";
Dir::State::Lists "$tmp/lists";
Dir::Cache "$tmp/cache";
APT::Architecture "amd64";
APT::Sandbox::User "root";
CONF
export APT_CONFIG=$tmp/apt.conf

printf 'libold 1.0-1+deb12u9\nlibsame 1.0-1+deb12u10\nlibahead 2:1.0-1\nlibelsewhere 1\nlibnowhere 1\n' | document
printf 'libelsewhere 2\nlibold 9\n' | repository bookworm
says "no security pocket" \
    "apt's sources name no security pocket: whether there are corrections is not known"
printf 'libold 1.0-1+deb12u8\nlibold 1.0-1+deb12u10\nlibsame 1.0-1+deb12u10\nlibahead 1.9-1\nlibfine 7\n' |
    repository bookworm-security
says "one of five" "libold 1.0-1+deb12u9 is linked or bundled, Debian's security pocket has 1.0-1+deb12u10"
printf 'libold 1.0-1+deb12u10\nlibsame 1.0-1+deb12u10\n' | document
says "up to date" ""
((failures == 0)) || exit 1
echo "3 rows"
