#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Scheduler extenders of others beside ours, each in its own words, through one real kube-scheduler on
# the same nodes. The programs are the user's; nothing is fetched. Options: see measure.py --help.
#
#   KUBE_VERSION=newest tests/bench/rivals/run.sh --hami PROGRAM --original PROGRAM
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
exec "$root/scripts/e2e.sh" --exec "$root/tests/bench/rivals/measure.py" "$@"
