# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by scripts: run the tests of a build folder and count what happened.
#
#   run_ctest "$root/build" [ctest option...]          three times as many at a time as there are cores
#   echo "$ctest_passed passed, $ctest_failed failed"
#
# Sourced after apt.sh. A test whose program is missing counts as failed. A test that skipped itself counts as neither.

# shellcheck disable=SC2034  # read by those who source this
ctest_passed=0 ctest_failed=0 ctest_skipped=0

# Programs that tests call.
test_packages=(openssl)

# 0: every test passed, and there was one. The long tests mostly wait, for what is slow on purpose.
run_ctest() {
    local build=$1 junit=$1/junit.xml rc=0
    shift
    apt_need "${test_packages[@]}"
    rm -f "$junit"
    (cd "$build" && ctest --output-on-failure --no-tests=error --output-junit "$junit" \
        -j "$((3 * $(nproc)))" --timeout 300 "$@") || rc=$?
    ctest_passed=0 ctest_failed=0 ctest_skipped=0
    [[ -f $junit ]] && count_junit "$junit"
    ((rc == 0 && ctest_failed == 0 && ctest_passed > 0))
}

# ctest's own totals call a missing program "skipped", so the cases are counted one by one.
count_junit() {
    local passed failed skipped
    read -r passed failed skipped < <(awk '
        /<testcase / { skip = 0; status = $0; sub(/.* status="/, "", status); sub(/".*/, "", status) }
        /<skipped message="SKIP_/ { skip = 1 }
        /<\/testcase>/ {
            if (status == "run") passed++
            else if (status == "disabled" || skip) skipped++
            else failed++
        }
        END { print passed + 0, failed + 0, skipped + 0 }' "$1")
    # shellcheck disable=SC2034
    ctest_passed=$passed ctest_failed=$failed ctest_skipped=$skipped
}
