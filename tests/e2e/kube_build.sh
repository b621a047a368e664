#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Kubernetes programs the end-to-end tests run against, once, into a cache outside the
# checkout, and prints the folder they are in.
#
#   tests/e2e/kube_build.sh             builds what is missing; nothing when the cache is complete
#   tests/e2e/kube_build.sh --possible  says why not and exits 1 when this machine cannot have them
#
#   KUBE_VERSION   1.20 (Debian's source package, needs apt only), newest, or any release (1.NN,
#                  1.NN.P) that the Go module proxy has (needs a Go, from which the right one is had)
#   KUBE_BIN_DIR   folder of the binaries; ready-made ones may be put there by hand
#
# The result appears with one rename, so that a killed build leaves no half cache.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=tests/e2e/kube_env.sh
. "$here/kube_env.sh"

components=(kube-apiserver kube-scheduler kube-controller-manager kubelet kube-proxy kubectl)
work=""

# A source defines source_possible, prepare_source (packages), and build_programs (into $work/bin).
if [[ $KUBE_VERSION == "$KUBE_OLDEST" ]]; then
    # shellcheck source=tests/e2e/kube_from_debian.sh
    . "$here/kube_from_debian.sh"
else
    # shellcheck source=tests/e2e/kube_from_modules.sh
    . "$here/kube_from_modules.sh"
fi

complete() {
    local name
    for name in "${components[@]}"; do
        [[ -x $KUBE_BIN_DIR/$name ]] || return 1
    done
}

# -X flags for the two packages that know the release; $1: where the tree has k8s.io packages.
version_flags() {
    local package major minor
    IFS=. read -r major minor _ <<<"$KUBE_VERSION"
    for package in client-go/pkg/version component-base/version; do
        printf '%s ' "-X $1/$package.gitVersion=v$KUBE_VERSION" \
            "-X $1/$package.gitMajor=$major" "-X $1/$package.gitMinor=$minor"
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
    prepare_source
    remove_leftovers "$cache"
    work=$(mktemp -d "$cache/.build.XXXXXX")
    trap remove_work EXIT
    mkdir "$work/bin"
    (build_programs)
    install_result
    echo "Kubernetes $KUBE_VERSION built in $((SECONDS - started)) s" >&2
}

if [[ ${1:-} == --possible ]]; then
    complete || source_possible
    exit
fi
complete || build
echo "$KUBE_BIN_DIR"
