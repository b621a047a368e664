#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Instructions of filter(1,000), compared with the number beside this script: more than 10 % either
# way fails. Instructions do not depend on how busy the machine is, but on the compiler and libc:
# the number is that of Debian 12. After a change that is meant: callgrind.sh --accept.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
program=${GPUSHARE_BUILD_DIR:-$root/build}/tests/filter_once
known=$here/filter_instructions
tolerance_pct=10

main() {
    local out counted expected
    out=$(mktemp -d)
    # the path is known now, and is not when the script ends
    # shellcheck disable=SC2064
    trap "rm -rf '$out'" EXIT
    if ! valgrind --tool=callgrind --callgrind-out-file="$out/profile" \
        --toggle-collect=gs_service_filter "$program" 2>"$out/log"; then
        cat "$out/log" >&2
        exit 1
    fi
    counted=$(sed -nE 's/^.*Collected : ([0-9]+).*/\1/p' "$out/log")
    if [[ ${1:-} == --accept ]]; then
        echo "$counted" >"$known"
    fi
    expected=$(<"$known")
    echo "note: $((counted / 10)) instructions per filter(1,000), $((expected / 10)) known"
    if ((counted * 100 > expected * (100 + tolerance_pct) ||
        counted * 100 < expected * (100 - tolerance_pct))); then
        callgrind_annotate "$out/profile" | head -n 40
        echo "differs by more than $tolerance_pct %"
        exit 1
    fi
}

main "$@"
