#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# node_attack.py with its Python packages: node_attack.sh --build DIR [--seconds S] [--seed N] [--sabotage all]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../../support/grpcio.sh")
PYTHONPATH=$here/../../support PYTHONDONTWRITEBYTECODE=1 exec "$python" "$here/node_attack.py" "$@"
