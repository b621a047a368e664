#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Kubernetes programs the end-to-end tests run against, once, into a cache outside the
# checkout, and prints the folder they are in.
#
#   tests/e2e/kube_build.sh           builds what is missing; nothing when the cache is complete
#
#   KUBE_VERSION   1.20.2 (the only source so far: Debian's kubernetes source package)
#   KUBE_BIN_DIR   folder of the binaries; ready-made ones may be put there by hand
#
# The tree builds in GOPATH mode with Debian's Go 1.19 only: its go.mod no longer agrees with its
# vendor folder. The result appears with one rename, so that a killed build leaves no half cache.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=tests/e2e/kube_env.sh
. "$here/kube_env.sh"

debian_release=bookworm
debian_key=/usr/share/keyrings/debian-archive-keyring.gpg
go_root=/usr/lib/go-1.19
components=(kube-apiserver kube-scheduler kube-controller-manager kubelet kube-proxy kubectl)
# 1.20.2 forgets its extenders when it preempts (kubernetes/kubernetes#102971, corrected in 1.20.10):
# a second kube-scheduler, with that one line, serves the cases about the verb "preempt".
preempting=kube-scheduler-preempt
work=""

complete() {
    local name
    for name in "${components[@]}" "$preempting"; do
        [[ -x $KUBE_BIN_DIR/$name ]] || return 1
    done
}

remove_work() {
    [[ -n $work ]] || return 0
    chmod -R u+w "$work" 2>/dev/null || true
    rm -rf "$work"
}

# A build that was killed cannot clean up behind itself. We hold the lock: what lies here is dead.
remove_leftovers() {
    find "$1" -maxdepth 1 -name '.build.*' -exec chmod -R u+w {} + -exec rm -rf {} +
}

# The archive this machine already installs from, so that a local mirror is used where there is one.
debian_archive() {
    local site
    # shellcheck disable=SC2016 # apt's own placeholders
    site=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v release="$debian_release" '$2 == release && $3 == "main" { print $1; exit }')
    echo "${site:-http://deb.debian.org/debian}"
}

# apt with a source list and package lists of its own: the machine's apt sources stay as they are.
source_apt() {
    local apt_dir=$work/apt
    mkdir -p "$apt_dir/lists/partial"
    echo "deb-src [signed-by=$debian_key] $(debian_archive) $debian_release main" \
        >"$apt_dir/sources.list"
    apt-get -qq -o Dir::Etc::SourceList="$apt_dir/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$apt_dir/lists" -o APT::Sandbox::User=root "$@"
}

fetch_tree() {
    local -a found
    mkdir -p "$work/src" "$work/go/src/k8s.io"
    source_apt update
    (cd "$work/src" && source_apt source kubernetes >/dev/null)
    found=("$work"/src/kubernetes-*"$KUBE_VERSION"/)
    [[ -d ${found[0]} ]] || {
        echo "the archive has no kubernetes $KUBE_VERSION source, but: $(ls "$work/src")" >&2
        return 1
    }
    rm -f "$work"/src/*.tar.*
    ln -s "${found[0]}" "$work/go/src/k8s.io/kubernetes"
}

use_go() {
    export GOROOT=$go_root GOPATH=$work/go GOCACHE=$work/go-cache GO111MODULE=off
    export GOFLAGS="" GOTOOLCHAIN=local CGO_ENABLED=0 PATH=$go_root/bin:$PATH
    unset GOBIN
}

# kube-apiserver compiles only with the OpenAPI definitions of every tagged package generated. The
# release tree leaves that to its makefile (build/root/Makefile.generated_files, gen_openapi), which
# needs more tools than this.
generate_openapi() {
    local packages
    go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
    packages=$(find -L pkg cmd plugin vendor/k8s.io -name '*.go' \
        -not -path 'vendor/k8s.io/code-generator/*' \
        -not -path 'vendor/k8s.io/sample-apiserver/*' -print0 |
        xargs -0 grep -lE '^// *\+k8s:openapi-gen=' | xargs -n1 dirname | LC_ALL=C sort -u |
        sed 's,^,k8s.io/kubernetes/,' | paste -sd,)
    "$work/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi \
        -O zz_generated.openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt \
        -r "$work/openapi-violations"
}

version_flags() {
    local package flag="-X k8s.io/kubernetes/vendor/k8s.io" major minor
    IFS=. read -r major minor _ <<<"$KUBE_VERSION"
    for package in client-go/pkg/version component-base/version; do
        printf '%s ' "$flag/$package.gitVersion=v$KUBE_VERSION" \
            "$flag/$package.gitMajor=$major" "$flag/$package.gitMinor=$minor"
    done
}

compile() {
    local -a targets
    cd "$work/go/src/k8s.io/kubernetes"
    use_go
    echo "generating the OpenAPI definitions" >&2
    generate_openapi
    echo "compiling ${components[*]}" >&2
    targets=("${components[@]/#/./cmd/}")
    mkdir "$work/bin"
    go build -ldflags "-s -w $(version_flags)" -o "$work/bin/" "${targets[@]}"
    sed -i 's/^\t*frameworkruntime\.WithPodNominator(nominator),$/&\nframeworkruntime.WithExtenders(extenders),/' \
        pkg/scheduler/factory.go
    grep -q 'frameworkruntime.WithExtenders' pkg/scheduler/factory.go
    go build -ldflags "-s -w $(version_flags)" -o "$work/bin/$preempting" ./cmd/kube-scheduler
}

install_result() {
    mkdir -p "$(dirname "$KUBE_BIN_DIR")"
    if [[ -d $KUBE_BIN_DIR ]]; then
        # A folder that holds some programs keeps them; each new one arrives with a rename.
        mv -n "$work"/bin/* "$KUBE_BIN_DIR/"
    else
        mv "$work/bin" "$KUBE_BIN_DIR"
    fi
}

build() {
    local cache started=$SECONDS
    cache=$(dirname "$KUBE_BIN_DIR")
    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock 9
    complete && return 0
    [[ $KUBE_VERSION == 1.20.2 ]] || {
        echo "no source known for Kubernetes $KUBE_VERSION: fill $KUBE_BIN_DIR by hand" >&2
        return 1
    }
    apt_need golang-1.19-go dpkg-dev xz-utils patch ca-certificates debian-archive-keyring
    remove_leftovers "$cache"
    work=$(mktemp -d "$cache/.build.XXXXXX")
    trap remove_work EXIT
    echo "fetching the Kubernetes $KUBE_VERSION source" >&2
    fetch_tree
    (compile)
    install_result
    echo "Kubernetes $KUBE_VERSION built in $((SECONDS - started)) s" >&2
}

complete || build
echo "$KUBE_BIN_DIR"
