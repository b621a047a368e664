# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by kube_build.sh: Kubernetes from the Go module proxy. Its programs are main packages of
# the module k8s.io/kubernetes, which go builds like any other package once a module of ours asks
# for it. That module's go.mod is the release's own, with the parts that lie beside it in its
# repository (./staging) taken at the release's number instead; its go.sum says that every other
# part is what the release was made of.
# shellcheck disable=SC2154 # work and components are kube_build.sh's

kube_module=k8s.io/kubernetes@v$KUBE_VERSION

# The machine's own module and build caches are used: Go keeps them in bounds, and a build that was
# killed goes on where it was.
#
# Each release gets the Go that its makers built it with, so that it compiles and behaves as theirs:
# the machine's own where that is of the same line (1.26), else the proxy's (golang.org/toolchain).
use_go() {
    export GO111MODULE=on GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
    made_with=$(sed 's/.*-\(go[0-9.]*\)-.*/\1/' "$release/build/build-image/cross/VERSION")
    has_go || export GOTOOLCHAIN=$made_with
}

has_go() {
    [[ $(go env GOVERSION) == "${made_with%.*}".* ]]
}

source_possible() {
    command -v go >/dev/null || {
        echo "Kubernetes $KUBE_VERSION needs Go, and this machine has none"
        return 1
    }
    release=$(cd / && GOTOOLCHAIN=auto go mod download -json "$kube_module" | sed -n 's/^\t*"Dir": "\(.*\)",$/\1/p')
    [[ -n $release ]] || {
        echo "the Go module proxy does not give $kube_module"
        return 1
    }
    use_go
    has_go || {
        echo "Kubernetes $KUBE_VERSION needs $made_with; neither this machine nor the proxy has it"
        return 1
    }
}

prepare_source() {
    source_possible >&2
}

write_module() {
    sed -e 's,^module .*,module kubernetes.e2e,' \
        -e "s,=> \./staging/src/\(k8s\.io/[a-z-]*\)$,=> \1 v0.${KUBE_VERSION#*.}," \
        "$release/go.mod" >"$work/go.mod"
    cp --no-preserve=mode "$release/go.sum" "$work/go.sum"
    go mod edit -require="$kube_module"
}

build_programs() {
    cd "$work" || return
    echo "fetching Kubernetes $KUBE_VERSION from $(go env GOPROXY), for $(go env GOVERSION)" >&2
    write_module
    echo "compiling ${components[*]}" >&2
    go build -buildvcs=false -trimpath -ldflags "-s -w $(version_flags k8s.io)" -o "$work/bin/" \
        "${components[@]/#/k8s.io/kubernetes/cmd/}"
}
