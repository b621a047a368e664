#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# k9s.
#
#   tests/e2e/k9s_build.sh [--cached]     module_build.sh
set -euo pipefail
# shellcheck source=tests/e2e/module_build.sh
. "$(dirname "${BASH_SOURCE[0]}")/module_build.sh"

module_build k9s github.com/derailed/k9s v0.50.16 . "" "$@"
