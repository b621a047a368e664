#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How long a plain pod waits for a real kube-scheduler while pods with huge lists wait beside it: with
# an extender that decides nothing, and with ours. Options: see measure.py --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
exec "$root/scripts/e2e.sh" --exec "$root/tests/bench/e2e_hostile/measure.py" "$@"
