# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced: which Kubernetes the tests run, and where its programs are.

KUBE_VERSION=${KUBE_VERSION:-1.20.2}
KUBE_BIN_DIR=${KUBE_BIN_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/kube-$KUBE_VERSION/bin}
export KUBE_VERSION KUBE_BIN_DIR
