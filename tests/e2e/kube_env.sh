# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced: which Kubernetes the tests run, and where its programs are. Both releases are pinned, so
# that a run next year tests what this one does.

KUBE_OLDEST=1.20.2 # Debian 12's
KUBE_NEWEST=1.36.3
case ${KUBE_VERSION:=$KUBE_OLDEST} in
oldest | "${KUBE_OLDEST%.*}") KUBE_VERSION=$KUBE_OLDEST ;;
newest | latest | "${KUBE_NEWEST%.*}") KUBE_VERSION=$KUBE_NEWEST ;;
esac
KUBE_BIN_DIR=${KUBE_BIN_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/kube-$KUBE_VERSION/bin}
export KUBE_VERSION KUBE_BIN_DIR
