#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How long pods wait when kube-scheduler's own sample of the nodes holds none with room, with and without
# nominations. Options: see measure.py --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
exec "$root/scripts/e2e.sh" --exec "$root/tests/bench/e2e_sampling/measure.py" "$@"
