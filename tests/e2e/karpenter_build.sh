#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Karpenter with the cloud of its own tests (kwok), whose machines are Node objects.
#
#   tests/e2e/karpenter_build.sh [--cached]     module_build.sh
set -euo pipefail
# shellcheck source=tests/e2e/module_build.sh
. "$(dirname "${BASH_SOURCE[0]}")/module_build.sh"

# It has no option for the address that its metrics and probes listen on.
prepare_module() {
    sed -i 's/Address: *fmt.Sprintf(":%d"/Address: fmt.Sprintf("127.0.0.1:%d"/' pkg/operator/operator.go
}

module_build karpenter sigs.k8s.io/karpenter v1.14.0 kwok "pkg/apis/crds kwok/apis/crds" "$@"
