#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of an etcd program: the one in PATH, or Debian's, unpacked beside the Kubernetes
# cache. The package is not installed because that would start an etcd service.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=tests/e2e/kube_env.sh
. "$here/kube_env.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/etcd

fetch() {
    mkdir -p "$(dirname "$cache")"
    exec 9>"$cache.lock"
    flock 9
    [[ -x $cache/usr/bin/etcd ]] && return 0
    rm -rf "$cache" "$cache.new"
    apt_extract etcd-server "$cache.new"
    mv "$cache.new" "$cache"
}

command -v etcd || {
    [[ -x $cache/usr/bin/etcd ]] || fetch
    echo "$cache/usr/bin/etcd"
}
