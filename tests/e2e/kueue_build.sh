#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Kueue's controller.
#
#   tests/e2e/kueue_build.sh [--cached]     module_build.sh
set -euo pipefail
# shellcheck source=tests/e2e/module_build.sh
. "$(dirname "${BASH_SOURCE[0]}")/module_build.sh"

module_build kueue sigs.k8s.io/kueue v0.19.2 cmd/kueue config/components/crd/bases "$@"
