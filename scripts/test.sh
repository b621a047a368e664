#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests that need no Kubernetes, but for the long ones, which scripts/check.sh runs: installs what is missing,
# builds, runs. Ends with the line "N passed, N failed, N skipped"; exit code 0 only when each test of tests/list.txt
# was there and none failed. What could not run is named.
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
    run_ctest "$root/build" -LE long || rc=1
    ctest_is_whole "$root/build" "$root/tests/list.txt" || rc=1
    echo "left to scripts/check.sh asan: $(long_tests "$root/build" | paste -sd ' ')"
    echo "$ctest_passed passed, $ctest_failed failed, $ctest_skipped skipped"
    return "$rc"
}

main "$@"
