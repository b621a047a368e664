#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a containerd that knows CDI, once, from the Go module proxy, and prints the folder that it
# is in: Debian's does not know it yet. The module's own go.mod and go.sum say what it is made of, as
# in kube_from_modules.sh.
set -euo pipefail

version=v2.1.4
module=github.com/containerd/containerd/v2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/containerd-$version
programs=(containerd containerd-shim-runc-v2)

complete() {
    [[ -x $cache/${programs[0]} && -x $cache/${programs[1]} ]]
}

build() {
    local work release
    mkdir -p "$(dirname "$cache")"
    exec 9>"$cache.lock"
    flock 9
    complete && return 0
    work=$(mktemp -d "$cache.build.XXXXXX")
    # shellcheck disable=SC2064 # the folder's name now
    trap "rm -rf '$work'" EXIT
    cd "$work"
    export GO111MODULE=on GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
    echo "fetching and compiling containerd $version" >&2
    release=$(cd / && go mod download -json "$module@$version" |
        sed -n 's/^\t*"Dir": "\(.*\)",$/\1/p')
    sed 's,^module .*,module containerd.e2e,' "$release/go.mod" >go.mod
    cp --no-preserve=mode "$release/go.sum" go.sum
    go mod edit -require="$module@$version"
    go build -buildvcs=false -trimpath -ldflags "-s -w" -o "$work/bin/" \
        "${programs[@]/#/$module/cmd/}"
    rm -rf "$cache"
    mv "$work/bin" "$cache"
}

complete || (build) >&2
echo "$cache"
