#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every figure of docs/performance.md, measured here and now: a table of target and measured, or
# JSON. Options: see --help. Rows about a real control plane need the programs that scripts/e2e.sh
# fetches: they are measured when these are there, or with --cluster.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"

main() {
    local word
    for word in "$@"; do
        [[ $word == --help || $word == -h ]] && exec python3 "$root/tests/bench/bench.py" --help
    done
    apt_need python3 curl
    build_project "$root" release synthetic-api gpushare-extender gpushare-packing bench_load noop_extender \
        kubectl-inspect-gpushare
    exec python3 "$root/tests/bench/bench.py" "$@"
}

main "$@"
