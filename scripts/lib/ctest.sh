# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by scripts: run the tests of a build folder and count what happened.
#
#   run_ctest "$root/build" [ctest option...]          three times as many at a time as there are cores
#   ctest_is_whole "$root/build" "$root/tests/list.txt"
#   echo "$ctest_passed passed, $ctest_failed failed, $ctest_skipped skipped"
#
# Sourced after apt.sh. A test whose program is missing counts as failed, a test that could not run is
# named and counts as skipped.

# shellcheck disable=SC2034  # read by those who source this
ctest_passed=0 ctest_failed=0 ctest_skipped=0

# Programs that tests call.
test_packages=(openssl python3)

# 0: every test passed, and there was one. The long tests mostly wait, for what is slow on purpose.
run_ctest() {
    local build=$1 junit=$1/junit.xml rc=0
    shift
    apt_need "${test_packages[@]}"
    # not installed: it would replace the kubectl of whoever runs this
    [[ -x $build/kubernetes-client/usr/bin/kubectl ]] || apt_extract kubernetes-client "$build/kubernetes-client"
    rm -f "$junit"
    (cd "$build" && ctest --output-on-failure --no-tests=error --output-junit "$junit" \
        -j "$((3 * $(nproc)))" --timeout 300 "$@") || rc=$?
    ctest_passed=0 ctest_failed=0 ctest_skipped=0
    [[ -f $junit ]] && count_junit "$junit"
    ((rc == 0 && ctest_failed == 0 && ctest_passed > 0))
}

# A line per test: what became of it, and its name. ctest's own totals call a missing program "skipped".
read_junit() {
    awk '
        /<testcase / {
            skip = 0
            status = name = $0
            sub(/.* status="/, "", status); sub(/".*/, "", status)
            sub(/.*<testcase name="/, "", name); sub(/".*/, "", name)
        }
        /<skipped message="SKIP_/ { skip = 1 }
        /<\/testcase>/ {
            if (status == "run") print "passed", name
            else if (status == "disabled" || skip) print "skipped", name
            else print "failed", name
        }' "$1"
}

# shellcheck disable=SC2034
count_junit() {
    local what name
    while read -r what name; do
        case $what in
        passed) ctest_passed=$((ctest_passed + 1)) ;;
        skipped)
            ctest_skipped=$((ctest_skipped + 1))
            echo "not run: $name"
            ;;
        *) ctest_failed=$((ctest_failed + 1)) ;;
        esac
    done < <(read_junit "$1")
}

long_tests() {
    ctest --test-dir "$1" -N -L long | sed -n 's/^ *Test *#.*: //p'
}

# What run_ctest ran, and the long tests that it was not asked for, is what the list names: a test that CMake left
# out is missing, and counts as failed; one that the list does not know could go without a word.
ctest_is_whole() {
    local build=$1 list=$2 name whole=0
    while IFS= read -r name; do
        case $name in
        $'\t'*) echo "not in tests/list.txt: ${name#?}" ;;
        *) echo "missing: $name" ;;
        esac
        ctest_failed=$((ctest_failed + 1)) whole=1
    done < <(comm -3 "$list" <({ read_junit "$build/junit.xml" | cut -d' ' -f2 && long_tests "$build"; } | LC_ALL=C sort -u))
    ((whole == 0)) ||
        echo "the list: ctest --test-dir build -N | sed -n 's/^ *Test *#.*: //p' | LC_ALL=C sort"
    return "$whole"
}
