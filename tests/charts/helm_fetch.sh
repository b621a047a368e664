#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds helm and kustomize from their Go modules, once, into a cache outside the checkout, and
# prints the folder they are in. Neither is in Debian 12.
#
#   tests/charts/helm_fetch.sh             builds what is missing
#   tests/charts/helm_fetch.sh --possible  says why not and exits 1 when this machine cannot have them
#
#   HELM_BIN_DIR   folder of ready-made ones
set -euo pipefail

helm=v3.21.4
kustomize=v5.7.1
cache=${HELM_BIN_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/helm-$helm-kustomize-$kustomize}

complete() {
    [[ -x $cache/helm && -x $cache/kustomize ]]
}

possible() {
    complete && return
    command -v go >/dev/null || { echo "no Go on this machine" && return 1; }
    # the module's own go.mod asks for it
    (cd / && timeout 60 env GOFLAGS=-mod=mod go list -m "helm.sh/helm/v3@$helm" >/dev/null 2>&1) ||
        { echo "the Go module proxy does not have helm $helm" && return 1; }
}

# Each program appears with one rename, so that a killed build leaves no half one.
build() {
    local work
    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock 9
    complete && return 0
    echo "building helm $helm and kustomize $kustomize (minutes, once)" >&2
    work=$(mktemp -d "$cache/.build.XXXXXX")
    # shellcheck disable=SC2064  # now
    trap "rm -rf '$work'" EXIT
    (cd / && GOBIN=$work CGO_ENABLED=0 go install -trimpath "helm.sh/helm/v3/cmd/helm@$helm" \
        >"$work/log" 2>&1 &&
        GOBIN=$work CGO_ENABLED=0 go install -trimpath \
            "sigs.k8s.io/kustomize/kustomize/v5@$kustomize" >>"$work/log" 2>&1) ||
        { tail -n 20 "$work/log" >&2 && return 1; }
    mv "$work/helm" "$work/kustomize" "$cache/"
}

if [[ ${1:-} == --possible ]]; then
    possible
else
    complete || build
    echo "$cache"
fi
