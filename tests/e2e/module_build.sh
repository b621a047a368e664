# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by what a case names as NEEDS: a controller of others, built from its Go module, once, into a
# cache outside the checkout, with its definitions in crd/.
#
#   module_build NAME MODULE VERSION PACKAGE CRDS [--cached]
#
# builds what is missing (minutes) and prints the folder. CRDS are the module's folders of definitions,
# with spaces between. With --cached it builds nothing: says what is missing and fails.
# A function prepare_module, if there is one, changes the source before, in its folder.

module_make() {
    local name=$1 module=$2 version=$3 package=$4 crds=$5 work source folder
    mkdir -p "$(dirname "$cache")"
    exec 9>"$cache.lock"
    flock 9
    [[ ! -x $cache/$name ]] || return 0
    command -v go >/dev/null || { echo "$name needs Go, and this machine has none" && return 1; }
    echo "building $name $version (minutes, once)"
    work=$(mktemp -d "$cache.XXXXXX")
    # shellcheck disable=SC2064  # now
    trap "rm -rf '$work'" EXIT
    source=$(cd / && GOFLAGS=-mod=mod go mod download -json "$module@$version" | sed -n 's/^\t*"Dir": "\(.*\)",$/\1/p')
    [[ -n $source ]] || { echo "the Go module proxy does not give $module@$version" && return 1; }
    # A go.mod that replaces modules is obeyed in the main module alone: so this is one.
    cp -r --no-preserve=mode "$source" "$work/source"
    mkdir -p "$work/made/crd"
    for folder in $crds; do
        cp "$work/source/$folder"/*.yaml "$work/made/crd"
    done
    cd "$work/source" || return
    ! declare -F prepare_module >/dev/null || prepare_module
    CGO_ENABLED=${CGO_ENABLED:-0} GOWORK=off nice go build -trimpath -o "$work/made/$name" "./$package" >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log" && return 1; }
    mv "$work/made" "$cache"
}

module_build() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/$1-$3
    if [[ ! -x $cache/$1 ]]; then
        [[ ${6:-} != --cached ]] || { echo "$1 $3 is not built (tests/e2e/$(basename "$0"))" && return 1; }
        (module_make "$@") >&2 || return
    fi
    echo "$cache"
}
