#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs interop.py against a built grpc_peer:
#
#   tests/integration/grpc/interop.sh BUILD/tests/grpc_peer [TEST...]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
support=$here/../../support

if (($# < 1)) || [[ ! -x $1 ]]; then
    echo "usage: $0 BUILD/tests/grpc_peer [TEST...]" >&2
    exit 2
fi

python=$("$support/grpcio.sh")
GS_PEER=$1 PYTHONPATH=$support exec "$python" "$here/interop.py" -v "${@:2}"
