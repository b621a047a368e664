#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints a folder with prometheus and promtool, Debian's, unpacked beside the Kubernetes cache. The
# package is not installed because it would start a service.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/prometheus

complete() {
    [[ -x $cache/usr/bin/prometheus && -x $cache/usr/bin/promtool ]]
}

fetch() {
    mkdir -p "$(dirname "$cache")"
    exec 9>"$cache.lock"
    flock 9
    complete && return 0
    rm -rf "$cache" "$cache.new"
    apt_extract prometheus "$cache.new"
    mv "$cache.new" "$cache"
}

complete || fetch >&2
echo "$cache/usr/bin"
