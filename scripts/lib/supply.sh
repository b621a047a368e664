# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by check.sh after build.sh: the list of dependencies is that of the programs, and the SPDX
# document can be believed. Prints one line per difference.

# "package version licence" or "package licence", as docs/development.md should have it. Debian's
# revision and the versions of what others load change with security updates: the document has them.
listed_by_programs() {
    jq -r '(.relationships | map(select(.relationshipType | endswith("_LINK"))
            | .relatedSpdxElement)) as $direct |
        .packages[] | select(.supplier == "Organization: Debian") |
        "| \(.name) |\(if .SPDXID as $id | $direct | index($id)
            then " \(.versionInfo | sub("^[0-9]+:"; "") | sub("-[^-]*$"; "")) |" else "" end
            ) \(.licenseDeclared) |"' "$1"
}

listed_in_docs() {
    sed -nE 's/^(\| (lib|zlib|uthash)[^ ]* \| .* \|).*/\1/p' docs/development.md |
        awk -F ' [|] ' 'NF >= 4 { print $1 " | " $2 " | " $3 " |"; next } { print }'
}

# What spdx-tools would say, as far as this document can be wrong.
sbom_mistakes() {
    jq -r '
        ([.SPDXID] + [(.packages + .files)[].SPDXID]) as $ids |
        (if .spdxVersion == "SPDX-2.3" and .dataLicense == "CC0-1.0" then empty
         else "not an SPDX 2.3 document" end),
        ($ids | group_by(.)[] | select(length > 1)[0] | "twice: \(.)"),
        ($ids[] | select(test("^SPDXRef-[A-Za-z0-9.-]+$") | not) | "not an SPDX id: \(.)"),
        (.relationships[] | .spdxElementId, .relatedSpdxElement | select(. as $id | $ids | index($id) | not)
         | "relation to nothing: \(.)"),
        (.packages[] | select(.licenseDeclared == "" or .name == "" or .versionInfo == "")
         | "something is missing: \(.SPDXID)"),
        (if (.files | length) == 5 and (.files | all(.checksums[1].checksumValue | length == 64))
         then empty else "not five programs with their checksums" end)' "$1"
}

supply() {
    local root=$1 document package
    apt_need binutils jq
    document=$(mktemp)
    "$root/scripts/sbom.sh" --out "$document"
    sbom_mistakes "$document"
    diff --label programs --label docs/development.md -u0 \
        <(listed_by_programs "$document" | sort) <(listed_in_docs | sort) |
        grep '^[+-]' || true
    # shellcheck disable=SC2154  # build.sh's
    for package in "${build_packages[@]}"; do
        grep -qE "[ ,]${package}[ ,.(|]|[ ,]${package}\$" docs/development.md ||
            echo "docs/development.md does not name $package"
    done
    echo "note: $(jq '.packages | length' "$document") packages" >&2
    rm -f "$document"
}
