#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints a Python interpreter that has grpcio and protobuf. They are installed into ~/.cache/gpushare
# (or $XDG_CACHE_HOME/gpushare) where they are missing; the source tree stays as it is. GS_PYTHON
# names the interpreter to build on (python3).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
grpcio=1.71.0
protobuf=5.29.5
python=${GS_PYTHON:-python3}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
venv=$cache/interop-py$version-grpcio$grpcio-protobuf$protobuf

# Made beside its place and moved there when complete: an interrupted run leaves no half one. A
# venv's programs name its first path, so only its interpreter is used, which does not mind.
if [[ ! -x $venv/bin/python ]]; then
    mkdir -p "$cache"
    new=$(mktemp -d "$cache/interop.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    if ! "$python" -m venv "$new" >/dev/null 2>&1; then
        # shellcheck source=scripts/lib/apt.sh
        . "$here/../../scripts/lib/apt.sh"
        apt_need python3-venv
        "$python" -m venv "$new"
    fi
    "$new/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
        "grpcio==$grpcio" "protobuf==$protobuf"
    mv -T "$new" "$venv" 2>/dev/null || [[ -x $venv/bin/python ]]
fi

echo "$venv/bin/python"
