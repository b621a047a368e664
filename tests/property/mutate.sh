#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# mutate.sh SED-SCRIPT SOURCE COPY: a copy of the source with a bug put in. A script that changes
# nothing gives an unbroken copy, so that its test fails for want of a difference.
set -eu

mkdir -p "$(dirname "$3")"
sed -f "$1" "$2" >"$3"
if cmp -s "$2" "$3"; then
    echo "$1 does not apply to $2" >&2
fi
