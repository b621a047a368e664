#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches axe-core with npm, once, into a cache outside the checkout, and prints the file; says why not
# and exits 1 when this machine cannot have it.
set -euo pipefail

version=4.10.2
sum=9ea2d2d6917da998122bdacfd3b473e31ead53f4b87146c716a12edf89158100
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/axe-$version

[[ -e $cache/package/axe.min.js ]] || {
    command -v npm >/dev/null || { echo "no npm on this machine" && exit 1; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    timeout 120 npm pack --silent "axe-core@$version" >/dev/null 2>&1 || { echo "npm does not have axe-core $version" && exit 1; }
    echo "$sum  axe-core-$version.tgz" | sha256sum --check --quiet - || exit 1
    mkdir -p "$cache"
    tar -C "$cache" -xzf "axe-core-$version.tgz" package/axe.min.js
}
echo "$cache/package/axe.min.js"
