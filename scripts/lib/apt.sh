# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by scripts: install Debian packages that are missing, and only those.
#
#   . "$root/scripts/lib/apt.sh"
#   apt_need cmake libjansson-dev
#
# Touches no apt configuration. Waits for another apt instead of failing. When everything is there,
# it neither needs root nor the network.

apt_missing() {
    local pkg
    for pkg in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$pkg" 2>/dev/null | grep -qx installed ||
            printf '%s\n' "$pkg"
    done
}

apt_as_root() {
    local -a sudo=()
    ((EUID == 0)) || sudo=(sudo)
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=900 "$@"
}

# Unlike an installation, an update does not wait for another one to finish.
apt_update() {
    local attempt
    echo "refreshing the package lists" >&2
    for attempt in 1 2 3 4 5 6; do
        apt_as_root update >&2 && return 0
        sleep "$((attempt * 5))"
    done
    return 1
}

# The package lists may be missing or older than the archive: refresh them once before giving up.
apt_need() {
    local -a missing
    command -v apt-get dpkg-query >/dev/null || {
        echo "There is no apt here: this needs a Debian 12 (a container will do), or what these Debian" \
            "packages hold: $*" >&2
        return 1
    }
    mapfile -t missing < <(apt_missing "$@")
    ((${#missing[@]} == 0)) && return 0
    ((EUID == 0)) || command -v sudo >/dev/null || {
        echo "Missing: ${missing[*]}. To install them run this as root, or with sudo there." >&2
        return 1
    }
    echo "installing ${missing[*]}" >&2
    apt_as_root install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && return 0
    apt_update
    apt_as_root install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# apt_extract PACKAGE DIR: the package's files under DIR, nothing installed: for daemons whose
# package would start a service on the user's machine.
apt_extract() {
    local pkg=$1 dir=$2 tmp
    tmp=$(mktemp -d)
    (
        trap 'rm -rf "$tmp"' EXIT
        cd "$tmp" || exit
        apt-get -qq download "$pkg" 2>/dev/null || {
            apt_update
            apt-get -qq download "$pkg"
        }
        mkdir -p "$dir"
        dpkg-deb -x "$tmp"/*.deb "$dir"
    )
}
