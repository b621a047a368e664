#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints a folder with what a real node needs beside the kubelet: containerd, runc, CNI programs and
# a static busybox, Debian's, unpacked beside the Kubernetes cache. The packages are not installed
# because containerd's would start a service.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/node
packages=(containerd runc containernetworking-plugins busybox-static)

complete() {
    [[ -x $cache/usr/bin/containerd && -x $cache/usr/sbin/runc && -x $cache/bin/busybox &&
        -d $cache/usr/lib/cni ]]
}

fetch() {
    local pkg
    mkdir -p "$(dirname "$cache")"
    exec 9>"$cache.lock"
    flock 9
    complete && return 0
    rm -rf "$cache" "$cache.new"
    for pkg in "${packages[@]}"; do
        apt_extract "$pkg" "$cache.new"
    done
    mv "$cache.new" "$cache"
}

complete || {
    apt_need libseccomp2 mount
    fetch
}
echo "$cache"
