#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packing through a real kube-scheduler: the first arrivals of Alibaba's openb trace (which is not
# part of this project), each a pod, on 200 simulated nodes: stock placement, binpack, rollout.
# Options: see measure.py --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../.." && pwd)
exec "$root/scripts/e2e.sh" --exec "$root/tools/packing/bench/e2e_packing/measure.py" "$@"
