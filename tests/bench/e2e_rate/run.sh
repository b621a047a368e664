#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Scheduling rate of a real kube-scheduler on 1,000 simulated nodes: without an extender, with one
# that decides nothing, with ours. Options: see measure.py --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
exec "$root/scripts/e2e.sh" --exec "$root/tests/bench/e2e_rate/measure.py" "$@"
