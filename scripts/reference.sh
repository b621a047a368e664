#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes docs/reference.md: every option, metric, name, reason and Event, from the programs and their
# source. --stdout prints it instead (scripts/check.sh reference compares). Builds what is missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/lib/apt.sh
. scripts/lib/apt.sh
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh

main() {
    local dir
    apt_need python3 curl openssl
    build_project "$root" release gpushare-extender gpushare-device-plugin gpushare-sim \
        kubectl-inspect-gpushare
    dir=$(mktemp -d)
    # shellcheck disable=SC2064  # the folder as it is now
    trap "rm -rf '$dir'" EXIT
    tests/monitoring/pages.sh "$root/build" "$dir"
    python3 tests/reference/reference.py "$root/build" "$dir" >"$dir/reference.md"
    if [[ ${1:-} == --stdout ]]; then
        cat "$dir/reference.md"
    else
        cp "$dir/reference.md" docs/reference.md
    fi
}

main "$@"
