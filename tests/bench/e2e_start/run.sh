#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Start of the extender beside curl's download of the same lists, both from a real API server.
# Options: see measure.py --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
exec "$root/scripts/e2e.sh" --exec "$root/tests/bench/e2e_start/measure.py" "$@"
