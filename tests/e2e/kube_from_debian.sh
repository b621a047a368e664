# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by kube_build.sh: Kubernetes from Debian 12's source package. The tree builds in GOPATH
# mode with Debian's Go 1.19 only: its go.mod no longer agrees with its vendor folder.
# shellcheck disable=SC2154 # work is kube_build.sh's

debian_release=bookworm
debian_key=/usr/share/keyrings/debian-archive-keyring.gpg
go_root=/usr/lib/go-1.19
programs=("${components[@]}")
# 1.20.2 forgets its extenders when it preempts (kubernetes/kubernetes#102971, corrected in 1.20.10):
# a second kube-scheduler, with that one line, serves the cases about the verb "preempt".
preempting=kube-scheduler-preempt
components+=("$preempting")
# Its copy of reflect2 walks maps in a way that Go left with 1.18 (modern-go/reflect2#26): an API
# server that writes JSON while memory is being collected falls over. Debian has the corrected one.
reflect2=/usr/share/gocode/src/github.com/modern-go/reflect2

source_possible() {
    return 0
}

prepare_source() {
    apt_need golang-1.19-go golang-github-modern-go-reflect2-dev dpkg-dev xz-utils patch \
        ca-certificates debian-archive-keyring
}

# The archive this machine already installs from.
debian_archive() {
    local site
    # shellcheck disable=SC2016 # apt's own placeholders
    site=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v release="$debian_release" '$2 == release && $3 == "main" { print $1; exit }')
    [[ -n $site ]] || echo "apt has no source of $debian_release main: add one, or run this on it" >&2
    echo "${site:?}"
}

# apt with a source list and package lists of its own: the machine's apt sources stay as they are.
source_apt() {
    local apt_dir=$work/apt archive
    archive=$(debian_archive) || return
    mkdir -p "$apt_dir/lists/partial"
    echo "deb-src [signed-by=$debian_key] $archive $debian_release main" \
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
    rm "${found[0]}"/vendor/github.com/modern-go/reflect2/*
    cp "$reflect2"/* "${found[0]}/vendor/github.com/modern-go/reflect2/"
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

build_programs() {
    local flags
    flags="-s -w $(version_flags k8s.io/kubernetes/vendor/k8s.io)"
    echo "fetching the Kubernetes $KUBE_VERSION source" >&2
    fetch_tree
    cd "$work/go/src/k8s.io/kubernetes" || return
    use_go
    echo "generating the OpenAPI definitions" >&2
    generate_openapi
    echo "compiling ${components[*]}" >&2
    go build -ldflags "$flags" -o "$work/bin/" "${programs[@]/#/./cmd/}"
    sed -i 's/^\t*frameworkruntime\.WithPodNominator(nominator),$/&\nframeworkruntime.WithExtenders(extenders),/' \
        pkg/scheduler/factory.go
    grep -q 'frameworkruntime.WithExtenders' pkg/scheduler/factory.go
    go build -ldflags "$flags" -o "$work/bin/$preempting" ./cmd/kube-scheduler
}
