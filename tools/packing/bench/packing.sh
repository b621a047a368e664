#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packing quality and the cost of a decision, measured by replaying Alibaba's openb trace (which is
# not part of this project). Prints the tables of tools/packing/README.md; fails when a figure is worse than what
# the project claims. Options: see packing.py --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
exec python3 "$root/tools/packing/bench/packing.py" "$@"
