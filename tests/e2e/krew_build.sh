#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# krew, kubectl's installer of plugins.
#
#   tests/e2e/krew_build.sh [--cached]     module_build.sh
set -euo pipefail
# shellcheck source=tests/e2e/module_build.sh
. "$(dirname "${BASH_SOURCE[0]}")/module_build.sh"

module_build krew sigs.k8s.io/krew v0.4.5 cmd/krew "" "$@"
