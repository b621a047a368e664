#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every test that needs no Kubernetes: installs what is missing, builds, runs. Ends with the line
# "N passed, N failed"; exit code 0 only when all passed.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/ctest.sh
. "$root/scripts/lib/ctest.sh"

main() {
    local rc=0
    if (($#)); then
        echo "Usage: scripts/test.sh" >&2
        [[ $1 == --help || $1 == -h ]] && exit 0
        exit 2
    fi
    build_project "$root" release
    run_ctest "$root/build" || rc=1
    ((ctest_skipped == 0)) || echo "$ctest_skipped skipped"
    echo "$ctest_passed passed, $ctest_failed failed"
    return "$rc"
}

main "$@"
