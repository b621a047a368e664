# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced after apt.sh: a fresh Debian 12, fetched once into ${XDG_CACHE_HOME:-~/.cache}/gpushare/packages.
#
#   apt_need debootstrap; fetch_debian_base; tar -C DIR -xzf "$debian_base"        as root

debian_cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/packages
debian_base=$debian_cache/bookworm.tar.gz

# Where this machine's own packages come from.
debian_mirror() {
    # shellcheck disable=SC2016  # apt's own names
    apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null |
        awk '$2 == "bookworm" { print $1; exit }' | grep . && return
    echo "apt's sources name no mirror of bookworm" >&2
    return 1
}

# The archive appears with one rename, so that a killed run leaves no half one.
fetch_debian_base() {
    local work lock
    mkdir -p "$debian_cache"
    exec {lock}>"$debian_cache/.lock"
    flock "$lock"
    [[ -f $debian_base ]] && return 0
    echo "fetching Debian 12 (a minute, once)" >&2
    work=$(mktemp -d "$debian_cache/.base.XXXXXX")
    debootstrap --variant=minbase bookworm "$work/root" "$(debian_mirror)" >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log" >&2 && return 1; }
    rm -f "$work"/root/var/cache/apt/archives/*.deb
    tar -C "$work/root" -c . | gzip -1 >"$work/base.tar.gz"
    mv "$work/base.tar.gz" "$debian_base"
    rm -rf "$work"
}
