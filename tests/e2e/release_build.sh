#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a release goes through before it is installed: a registry, skopeo, Helm and krew. Prints krew's folder.
#
#   tests/e2e/release_build.sh [--cached]     module_build.sh
set -euo pipefail
e2e=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/module_build.sh
. "$e2e/module_build.sh"
# shellcheck source=scripts/lib/apt.sh
. "$e2e/../../scripts/lib/apt.sh"

absent=$(apt_missing docker-registry skopeo)
if [[ -n $absent && ${1:-} == --cached ]]; then
    echo "not installed: ${absent//$'\n'/, }"
    exit 1
fi
apt_need docker-registry skopeo >&2
[[ ${1:-} == --cached ]] || "$e2e/../charts/helm_fetch.sh" >&2
module_build krew sigs.k8s.io/krew v0.4.4 cmd/krew "" "$@"
