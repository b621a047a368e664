#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Kueue's controller from its Go module, once, into a cache outside the checkout, and prints the
# folder that it is in: kueue, and its definitions in crd/.
#
#   tests/e2e/kueue_build.sh            builds what is missing (minutes)
#   tests/e2e/kueue_build.sh --cached   prints it only when it is built; else says so and exits 1
set -euo pipefail

version=v0.19.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/kueue-$version

build() {
    local work module
    mkdir -p "$(dirname "$cache")"
    exec 9>"$cache.lock"
    flock 9
    [[ ! -x $cache/kueue ]] || return 0
    echo "building Kueue $version (minutes, once)" >&2
    work=$(mktemp -d "$cache.XXXXXX")
    # shellcheck disable=SC2064  # now
    trap "chmod -R u+w '$work'; rm -rf '$work'" EXIT
    module=$(cd / && GOFLAGS=-mod=mod go mod download -json "sigs.k8s.io/kueue@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    # Its go.mod replaces modules, which "go install" takes of the main module alone.
    cp -r "$module" "$work/source"
    chmod -R u+w "$work/source"
    mkdir "$work/made"
    (cd "$work/source" && CGO_ENABLED=0 nice go build -trimpath -o "$work/made/kueue" ./cmd/kueue) >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log" >&2 && return 1; }
    cp -r "$work/source/config/components/crd/bases" "$work/made/crd"
    mv "$work/made" "$cache"
}

if [[ ! -x $cache/kueue ]]; then
    [[ ${1:-} != --cached ]] || { echo "Kueue $version is not built (tests/e2e/kueue_build.sh)" && exit 1; }
    (build) >&2
fi
echo "$cache"
