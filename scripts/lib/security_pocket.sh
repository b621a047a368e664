# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: what Debian's security pocket has newer than what SPDX documents name.
#
#   newer_in_security_pocket sbom.spdx.json...      a line each; nothing where nothing is newer
#
# As far as apt's lists know: refresh them before (apt_update). Without a security pocket in apt's sources
# nothing is known, which is a line, too.

# "package version", of Debian's packages
packages_named_by() {
    jq -r '.packages[] | select(.supplier == "Organization: Debian") | "\(.name) \(.versionInfo)"' "$@" | sort -u
}

newer_in_security_pocket() {
    local package version newest names
    declare -A pocket=()
    # shellcheck disable=SC2016  # apt's own names
    grep -q -e '-security' < <(apt-get indextargets --format '$(SUITE) $(RELEASE)') || {
        echo "apt's sources name no security pocket: whether there are corrections is not known"
        return 0
    }
    mapfile -t names < <(packages_named_by "$@" | cut -d' ' -f1)
    while read -r package newest; do
        if dpkg --compare-versions "$newest" gt "${pocket[$package]:-}"; then
            pocket[$package]=$newest
        fi
    done < <(apt-cache madison "${names[@]}" |
        awk -F ' *[|] *' '$3 ~ / [^ ]*-security\// { print $1, $2 }')
    while read -r package version; do
        newest=${pocket[$package]:-}
        if dpkg --compare-versions "$newest" gt "$version"; then
            echo "$package $version is linked or bundled, Debian's security pocket has $newest"
        fi
    done < <(packages_named_by "$@")
}
