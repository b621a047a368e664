#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the programs are made of: an SPDX 2.3 document of the programs as they were built, the Debian
# packages of every shared object that they load, and the licence of each. Nothing is written by
# hand but the licences of packages whose copyright file is not in a form that can be read, or speaks
# of more than the library.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"

build=${GPUSHARE_BUILD_DIR:-$root/build}

# Compiled in: headers without a library.
header_packages=(uthash-dev)

# In an image besides what the program loads: the CA certificates, os-release and licences.
image_packages=(base-files ca-certificates)
data_packages=()

# Read in /usr/share/doc/PACKAGE/copyright by a person.
declare -A known_licences=(
    [base-files]=GPL-2.0-or-later
    [ca-certificates]=MPL-2.0             # mozilla/certdata.txt
    [libc6]=LGPL-2.1-or-later             # "Most of the GNU C library"
    [libcom-err2]=HPND-export-US          # lib/et/*
    [libgnutls30]=LGPL-2.1-or-later       # "The main library is licensed under"
    [libgssapi-krb5-2]=BSD-2-Clause       # MIT's notice
    [libidn2-0]='LGPL-3.0-or-later OR GPL-2.0-or-later' # *.c *.h
    [libk5crypto3]=BSD-2-Clause
    [libkeyutils1]=LGPL-2.0-or-later      # keyutils.*
    [libkrb5-3]=BSD-2-Clause
    [libkrb5support0]=BSD-2-Clause
    [librtmp1]=LGPL-2.1-or-later          # "License of the librtmp library"
    [libsmartcols1]=LGPL-2.1-or-later     # libsmartcols/*
    [libtasn1-6]=LGPL-2.1-or-later        # "The library itself"
)

# Debian's short names and SPDX's.
declare -A spdx_names=(
    [Apache-2.0]=Apache-2.0 [BSD-1-Clause]=BSD-1-Clause [BSD-2-Clause]=BSD-2-Clause
    [BSD-3-Clause]=BSD-3-Clause [BSD3]=BSD-3-Clause [BSD-4-clause]=BSD-4-Clause [curl]=curl
    [Expat]=MIT [MIT]=MIT [OpenLDAP-2.8]=OLDAP-2.8 [Zlib]=Zlib [LGPL-2.1+]=LGPL-2.1-or-later
    ['GPL-2+ or LGPL-3+']='GPL-2.0-or-later OR LGPL-3.0-or-later'
    ['LGPL-3+ or GPL-2+']='LGPL-3.0-or-later OR GPL-2.0-or-later'
    ['BSD-3-clause or GPL-2']='BSD-3-Clause OR GPL-2.0-only'
)

usage() {
    cat <<'EOF'
Usage: scripts/sbom.sh [--image PROGRAM] [--out FILE]

Prints an SPDX 2.3 document (JSON) of the programs in build/, or writes it to FILE.

--image describes an image instead: one program, and the data that scripts/image.sh puts beside it.

  GPUSHARE_BUILD_DIR  folder with the programs, built already (default: build, built now)
  SOURCE_DATE_EPOCH   time in the document (default: the commit's)
EOF
}

# --- what is linked ---

needed_by() {
    readelf -dW "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}

# Where the dynamic linker finds them: "libcurl.so.4 /lib/x86_64-linux-gnu/libcurl.so.4"
found_for() {
    ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }'
}

# "libcurl.so.4 libcurl4" for each line "libcurl.so.4 /lib/x86_64-linux-gnu/libcurl.so.4". dpkg knows a
# file by its path from before or after the merge of /lib and /usr/lib, and reads every package's list
# whenever it is asked: so it is asked once.
packages_of() {
    local name file path real owner rc=0
    local -a names=() files=() paths=()
    declare -A owners=()
    while read -r name file; do
        real=$(readlink -f "$file")
        names+=("$name")
        files+=("$file $real ${real#/usr}")
        paths+=("$file" "$real" "${real#/usr}")
    done
    while IFS=: read -r owner path; do
        owners[${path# }]=$owner
    done < <(dpkg-query -S "${paths[@]}" 2>/dev/null | sed -E 's/^([^:, ]+)(:[a-z0-9]+)?[^:]*: /\1: /')
    for name in "${!names[@]}"; do
        owner=""
        for path in ${files[$name]}; do
            owner=${owner:-${owners[${path}]:-}}
        done
        [[ -n $owner ]] || { echo "no package owns ${files[$name]%% *}" >&2 && rc=1; }
        echo "${names[$name]} $owner"
    done
    return "$rc"
}

licence_of() {
    local package=$1 named
    if [[ ${known_licences[$package]:-} ]]; then
        echo "${known_licences[$package]}"
        return 0
    fi
    named=$(awk '/^Files: \*$/ { all = 1 }
                 all && sub(/^License: */, "") { print; exit }' "/usr/share/doc/$package/copyright")
    if [[ -z $named || -z ${spdx_names[$named]:-} ]]; then
        echo "$package: say its licence in scripts/sbom.sh (its copyright file says '$named')" >&2
        return 1
    fi
    echo "${spdx_names[$named]}"
}

# "A B": A loads B directly. Programs by their names, the rest by its package.
links() {
    local program name file needed
    declare -A package_by_name=() seen=()
    file=$(for program in "${programs[@]}"; do found_for "$build/$program"; done | sort -u | packages_of)
    while read -r name needed; do
        package_by_name[$name]=$needed
    done <<<"$file"
    for program in "${programs[@]}"; do
        for name in $(needed_by "$build/$program"); do
            [[ ${package_by_name[$name]:-} ]] || continue # the linker itself
            echo "$program ${package_by_name[$name]}"
        done
        while read -r name file; do
            [[ ${seen[$name]:-} ]] && continue
            seen[$name]=1
            for needed in $(needed_by "$file"); do
                [[ ${package_by_name[$needed]:-} ]] || continue
                echo "${package_by_name[$name]} ${package_by_name[$needed]}"
            done
        done < <(found_for "$build/$program")
    done | awk '$1 != $2' | sort -u
}

# package, version, licence, source package; tabs between
packages() {
    local package licence
    {
        printf '%s\n' "${header_packages[@]}" "${data_packages[@]}"
        cut -d' ' -f2 <<<"$1"
    } | sort -u | while read -r package; do
        licence=$(licence_of "$package")
        dpkg-query -W -f "$package\t\${Version}\t$licence\t\${source:Package}\n" "$package" |
            head -n 1
    done
}

# --- the document ---

files_json() {
    local program
    for program in "${programs[@]}"; do
        jq -n --arg name "$program" --arg sha1 "$(sha1sum <"$build/$program" | cut -d' ' -f1)" \
            --arg sha256 "$(sha256sum <"$build/$program" | cut -d' ' -f1)" '{
            SPDXID: "SPDXRef-File-\($name)", fileName: "./\($name)", fileTypes: ["BINARY"],
            checksums: [{algorithm: "SHA1", checksumValue: $sha1},
                        {algorithm: "SHA256", checksumValue: $sha256}],
            licenseConcluded: "Apache-2.0", licenseInfoInFiles: ["Apache-2.0"],
            copyrightText: "NOASSERTION"}'
    done | jq -s .
}

packages_json() {
    jq -R -s --arg arch "$(dpkg --print-architecture)" \
        --arg release "$(. /etc/os-release && echo "$ID-$VERSION_ID")" '
        split("\n") | map(select(. != "") | split("\t") | {
            SPDXID: "SPDXRef-Package-\(.[0])", name: .[0], versionInfo: .[1],
            supplier: "Organization: Debian", downloadLocation: "NOASSERTION", filesAnalyzed: false,
            licenseConcluded: .[2], licenseDeclared: .[2], copyrightText: "NOASSERTION",
            sourceInfo: "built from Debian source package \(.[3])",
            externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl",
                referenceLocator: "pkg:deb/debian/\(.[0])@\(.[1] | @uri)?arch=\($arch)&distro=\($release)"}]})'
}

links_json() {
    jq -R -s 'split("\n") | map(select(. != "") | split(" ") |
        if .[0] | test("gpushare")
        then {spdxElementId: "SPDXRef-File-\(.[0])", relationshipType: "DYNAMIC_LINK",
              relatedSpdxElement: "SPDXRef-Package-\(.[1])"}
        else {spdxElementId: "SPDXRef-Package-\(.[0])", relationshipType: "DEPENDS_ON",
              relatedSpdxElement: "SPDXRef-Package-\(.[1])"} end)'
}

document() {
    local links=$1 version time
    version=$(sed -nE 's/^project\(gpushare VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
    time=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
    jq -n --arg version "$version" --arg created "$(date -u -d "@$time" +%FT%TZ)" \
        --argjson files "$(files_json)" --argjson packages "$(packages "$links" | packages_json)" \
        --arg data "${data_packages[*]}" --argjson links "$(links_json <<<"$links")" '
        def of_us(type): {spdxElementId: "SPDXRef-gpushare", relationshipType: type};
        ($files | map(.checksums[0].checksumValue) | join("") | @base64 | .[0:32]) as $print |
        ($files | map(.SPDXID | select(endswith("-device-plugin")))) as $plugin |
        {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
         name: "gpushare-\($version)",
         documentNamespace: "https://spdx.org/spdxdocs/gpushare-\($version)-\($print)",
         creationInfo: {created: $created, creators: ["Tool: gpushare/scripts/sbom.sh"]},
         packages: ([{SPDXID: "SPDXRef-gpushare", name: "gpushare", versionInfo: $version,
             downloadLocation: "NOASSERTION", filesAnalyzed: false, licenseConcluded: "Apache-2.0",
             licenseDeclared: "Apache-2.0", copyrightText: "NOASSERTION"}]
            + ($plugin | map({SPDXID: "SPDXRef-nvml", name: "libnvidia-ml.so.1",
             supplier: "Organization: NVIDIA", downloadLocation: "NOASSERTION", filesAnalyzed: false,
             licenseConcluded: "NOASSERTION", licenseDeclared: "NOASSERTION",
             copyrightText: "NOASSERTION",
             comment: "part of the GPU driver of the node, loaded by dlopen; not distributed"}))
            + $packages),
         files: $files,
         relationships: ([{spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES",
                           relatedSpdxElement: "SPDXRef-gpushare"}]
            + ($plugin | map({spdxElementId: "SPDXRef-nvml", relatedSpdxElement: .,
                              relationshipType: "OPTIONAL_DEPENDENCY_OF"}))
            + ($files | map(of_us("GENERATES") + {relatedSpdxElement: .SPDXID}))
            + ($packages | map(select(.name | endswith("-dev")) | {
                spdxElementId: "SPDXRef-gpushare", relationshipType: "STATIC_LINK",
                relatedSpdxElement: .SPDXID, comment: "headers only"}))
            + ($data | split(" ") | map(of_us("CONTAINS") +
                {relatedSpdxElement: "SPDXRef-Package-\(.)"}))
            + $links)}'
}

main() {
    local out="" links
    while (($#)); do
        case $1 in
        --out)
            out=${2:?}
            shift
            ;;
        --image)
            programs=("${2:?}")
            data_packages=("${image_packages[@]}")
            shift
            ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    apt_need binutils jq uthash-dev
    [[ -n ${GPUSHARE_BUILD_DIR:-} ]] || build_project "$root" release "${programs[@]}"
    links=$(links)
    [[ -z $out ]] || exec >"$out"
    document "$links"
}

main "$@"
