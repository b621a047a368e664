# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced: which Kubernetes the tests run, and where its programs are. The releases that the README
# speaks of are pinned, so that a run next year tests what this one does; of another line (1.NN) it
# is the newest that the Go module proxy has.

KUBE_OLDEST=1.20.2 # Debian 12's
KUBE_NEWEST=1.37.2
case ${KUBE_VERSION:=$KUBE_OLDEST} in
oldest) KUBE_VERSION=$KUBE_OLDEST ;;
newest | latest) KUBE_VERSION=$KUBE_NEWEST ;;
1.*.*) ;;
1.*)
    for pinned in "$KUBE_OLDEST" 1.24.0 1.26.0 1.30.4 1.33.13 1.36.3 "$KUBE_NEWEST"; do
        [[ $KUBE_VERSION != "${pinned%.*}" ]] || KUBE_VERSION=$pinned
    done
    [[ $KUBE_VERSION == 1.*.* ]] ||
        KUBE_VERSION=$(cd / && go list -m "k8s.io/kubernetes@v$KUBE_VERSION" | sed 's/.* v//')
    ;;
esac
KUBE_BIN_DIR=${KUBE_BIN_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/kube-$KUBE_VERSION/bin}
export KUBE_VERSION KUBE_BIN_DIR
