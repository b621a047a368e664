#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything about the code that a machine can judge. Installs what is missing. One line per step, as
# they end; all steps run even when one fails. Build folders stay, so that a second run is quick.
set -euo pipefail
exec </dev/null

export GPUSHARE_INVARIANTS=fatal # base/invariant.h
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/lib/apt.sh
. scripts/lib/apt.sh
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh
# shellcheck source=scripts/lib/ctest.sh
. scripts/lib/ctest.sh
# shellcheck source=scripts/lib/rules.sh
. scripts/lib/rules.sh
# shellcheck source=scripts/lib/hardening.sh
. scripts/lib/hardening.sh
# shellcheck source=scripts/lib/supply.sh
. scripts/lib/supply.sh

long=0
fuzz_seconds=2 # what the seeds reach is run through in one
for_release="images packages" # minutes, and only a release needs them; the end-to-end cases run images
only=()

steps=(
    "format   clang-format agrees with every line"
    "shell    shellcheck on every script"
    "banned   no call that cannot be checked"
    "layers   includes follow the arrows of cmake/Layers.cmake"
    "foreign  foreign headers stay in their layer"
    "size     no source file over 600 lines"
    "weight   no folder has more tokens than scripts/weight.txt allows, and no document more words"
    "complexity no function with more than 20 ways through it (pmccabe; a switch counts once)"
    "rings    files that call each other in a circle are those of docs/architecture.md"
    "spdx     every file names its licence"
    "todo     nothing is left for later"
    "words    private vocabulary that was replaced (scripts/words.txt) does not come back"
    "guards   each header says #pragma once"
    "alerts   metrics, alert rules and dashboard agree; every alert fires when it should, and only then; queries have rows"
    "reference docs/reference.md says what the programs say"
    "clang    clang builds it without a warning, clang-tidy agrees"
    "analyze  gcc's static analyser finds no double free, use after free or unchecked allocation"
    "asan     all tests under address and undefined-behaviour sanitizers, leaks included; char is unsigned, as on arm64"
    "tsan     tests with threads under the thread sanitizer"
    "docs     what the documents name exists; every line of the doctor has its cure"
    "chart    helm renders the same objects as the overlays"
    "images   two builds that share only the source give the same bytes and digests; images hold what they need (by name, or --long)"
    "packages the .debs go into a fresh Debian 12, run and leave nothing; a release is whole (by name, or --long)"
    "hardening RELRO, PIE, stack protector, FORTIFY and the rest are in the programs"
    "supply   docs/development.md lists what is linked, and under which licence; so does the SPDX document; corrections by Debian are found"
    "node     what limits containers, and the device plugin in random worlds, a minute and a half (--long: ten minutes)"
    "mutants  mistakes put into the code near the last changes are seen by tests, two minutes (all: tests/mutants/run.py)"
    "promises random attempts of one namespace on another and on memory that preemption freed, a minute or two (--long: an hour)"
    "web      the page of kubectl inspect gpushare web in a headless Chromium, on clusters of gpushare-sim"
    "callgrind filter takes as many instructions as it did"
    "fuzz     every fuzz target for a few seconds (--long: a minute)"
)

usage() {
    echo "Usage: scripts/check.sh [--long] [STEP]..."
    echo "       scripts/check.sh --prepare     build what these need, and judge nothing"
    echo
    printf '  %s\n' "${steps[@]}"
}

# --- steps ---

step_format() {
    apt_need clang-format
    c_files | xargs clang-format --dry-run -Werror
}

step_weight() {
    apt_need python3 git
    python3 scripts/lib/weight.py --check scripts/weight.txt
}

step_complexity() {
    apt_need pmccabe
    set +o pipefail
    rule_complexity
}

step_shell() {
    apt_need shellcheck
    local scripts
    mapfile -t scripts < <(files_of scripts tests tools .ci -- '*.sh' run)
    shellcheck -x "${scripts[@]}"
}

step_alerts() {
    local promtool dir page
    apt_need python3 python3-yaml curl openssl
    promtool=$(tests/e2e/prometheus_fetch.sh)/promtool
    build_project "$root" release gpushare-extender gpushare-device-plugin gpushare-sim synthetic-api
    dir=$(mktemp -d)
    # shellcheck disable=SC2064  # the folder as it is now
    trap "rm -rf '$dir'" EXIT
    tests/monitoring/pages.sh "$root/build" "$dir"
    for page in "$dir"/*.prom; do
        "$promtool" check metrics <"$page"
    done
    python3 tests/monitoring/names.py "$dir"
    "$promtool" check rules manifests/monitoring/rules.yaml
    scripts/monitoring.sh --stdout | diff - manifests/monitoring/prometheusrule.yaml
    python3 tests/monitoring/rules.py "$promtool" "$root/manifests/monitoring/rules.yaml"
    python3 tests/monitoring/scrape.py "$root/build" "${promtool%/*}/prometheus"
}

# Rings are seen in the objects' symbols.
step_rings() {
    apt_need python3 binutils
    build_project "$root" release "${programs[@]}"
    python3 scripts/lib/rings.py build docs/architecture.md
}

step_reference() {
    scripts/reference.sh --check
}

step_clang() {
    apt_need clang clang-tidy
    apt_need "${build_packages[@]}"
    cmake --preset clang -DCMAKE_C_CLANG_TIDY=clang-tidy >/dev/null
    cmake --build --preset clang -- -k0 --quiet
}

# Off: what gcc 12 gets wrong. It takes a pointer stored in an array's slot for leaked, does not see in
# another file that gs_fail() returns -1, and takes the number of a vector's lanes for the bits of one.
# Leaks and shifts are the sanitizers'.
step_analyze() {
    local targets
    local flags='-O1 -fanalyzer -Wno-format-truncation -Wno-analyzer-malloc-leak'
    flags+=' -Wno-analyzer-use-of-uninitialized-value -Wno-analyzer-null-dereference'
    flags+=' -Wno-analyzer-shift-count-overflow'
    apt_need "${build_packages[@]}"
    cmake -G Ninja -S . -B build-analyze -DCMAKE_BUILD_TYPE=Debug -DGS_WERROR=ON \
        -DCMAKE_C_FLAGS="$flags" >/dev/null
    mapfile -t targets < <(ninja -C build-analyze -t targets all 2>/dev/null |
        sed -nE 's/^(src\/.*\.o):.*/\1/p')
    ninja -C build-analyze -k0 --quiet "${targets[@]}"
}

step_asan() {
    export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
    export UBSAN_OPTIONS=print_stacktrace=1
    build_project "$root" asan
    run_ctest "$root/build-asan"
    echo "note: $ctest_passed tests" >&2
}

# Tests of programs that start neither a thread nor another program: without races, and half of the time.
single_threaded() {
    local program
    for program in "$1"/tests/*_*; do
        [[ -f $program && -x $program ]] || continue
        nm -D --undefined-only "$program" |
            grep -E ' (pthread_create|MHD_start_daemon|curl_easy_init|fork|vfork|posix_spawnp?|exec[a-z]+)(@|$)' >/dev/null ||
            echo "${program##*/}"
    done
}

step_tsan() {
    local single=""
    apt_need binutils
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    build_project "$root" tsan
    ((long)) || single=$(single_threaded "$root/build-tsan" | paste -sd '|')
    run_ctest "$root/build-tsan" -E "^($single)\$"
    tests/integration/device_plugin/node_limits.sh "$root/build-tsan" | sed 's/^/note: /'
    echo "note: $ctest_passed tests" >&2
}

step_docs() {
    apt_need python3
    python3 tests/docs/run.py | sed '/^FAIL/!s/^/note: /'
}

# A step that this machine cannot run says why and counts as nothing.
cannot_run=77

step_chart() {
    local why programs
    why=$(tests/charts/helm_fetch.sh --possible) || {
        echo "note: not run: $why"
        exit "$cannot_run"
    }
    apt_need python3 python3-yaml
    programs=$(tests/charts/helm_fetch.sh)
    python3 tests/charts/run.py "$programs" | sed '/^FAIL/!s/^/note: /'
}

step_images() {
    ((EUID == 0)) || {
        echo "note: not run: needs root, for chroot"
        exit "$cannot_run"
    }
    tests/images/run.sh | sed -E 's/^(gpushare|kubectl)/note: &/'
}

step_packages() {
    local dir
    ((EUID == 0)) || {
        echo "note: not run: needs root, for chroot"
        exit "$cannot_run"
    }
    build_project "$root" release "${programs[@]}"
    dir=$(mktemp -d)
    # shellcheck disable=SC2064  # the folder as it is now
    trap "rm -rf '$dir'" EXIT
    GPUSHARE_BUILD_DIR=$root/build scripts/release.sh --draft --out "$dir"
    tests/packages/run.sh "$dir"
}

step_hardening() {
    local program soft=0
    apt_need binutils
    build_project "$root" release "${programs[@]}"
    for program in "${programs[@]}"; do
        softness_of "build/$program" | sed "s/^/$program: /" | no_line || soft=1
    done
    ((soft == 0))
}

step_supply() {
    build_project "$root" release "${programs[@]}"
    supply "$root" | no_line
    tests/packages/security_pocket.sh | sed '/^FAIL/!s/^/note: /'
}

step_node() {
    local worlds=(--worlds 200) # 27 s
    ((!long)) || worlds=(--seconds 600 --seed "$(date +%s)")
    build_project "$root" release gpushare-device-plugin gpushare-sim device_plugin_node_worlds
    build/tests/device_plugin_node_worlds "${worlds[@]}"
    tests/integration/device_plugin/node_limits.sh "$root/build"
    python3 tests/integration/device_plugin/node_memory.py build # 22 s
}

step_web() {
    apt_need chromium fonts-dejavu-core python3
    build_project "$root" release kubectl-inspect-gpushare gpushare-sim synthetic-api
    local axe
    axe=$(tests/web/axe_fetch.sh) || axe=
    python3 tests/web/run.py build ${axe:+--axe "$axe"} | sed '/^FAIL/!s/^/note: /'
}

step_promises() {
    local seconds=40 seed=1
    ((!long)) || seconds=3600 seed=$(date +%s)
    apt_need python3
    build_project "$root" release gpushare-extender
    tests/integration/promise_attack/run.py --build build --seed "$seed" --seconds "$seconds"
}

step_mutants() {
    apt_need "${build_packages[@]}" "${test_packages[@]}"
    tests/mutants/run.py --seconds 120 | sed -E 's/^(all |[0-9]+ of)/note: &/'
}

step_callgrind() {
    apt_need valgrind
    build_project "$root" release filter_once
    "$root/tests/bench/callgrind.sh"
}

fuzz_targets() {
    files_of tests/fuzz -- '*_*.c' | sed -E 's|.*/(.*)\.c|fuzz_\1|'
}

build_fuzz() {
    apt_need clang libclang-rt-14-dev python3
    # shellcheck disable=SC2046  # names
    build_project "$root" fuzz $(fuzz_targets)
}

step_fuzz() {
    local targets
    build_fuzz
    mapfile -t targets < <(fuzz_targets)
    python3 tests/fuzz/campaign.py --unpack build-fuzz/grown
    export fuzz_seconds
    export -f fuzz_one
    printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}'
    echo "note: ${#targets[@]} targets, $fuzz_seconds s each" >&2
}

# New inputs go to a scratch folder that is kept, so that the next run starts where this one ended.
fuzz_one() {
    local target=$1 found=build-fuzz/found/$1 log=build-fuzz/$1.log
    local -a corpus=("$found")
    local folder
    for folder in {tests/fuzz/corpus,build-fuzz/grown}/"${1#fuzz_}"; do
        [[ ! -d $folder ]] || corpus+=("$folder")
    done
    mkdir -p "$found" build-fuzz/crashes
    if ! "build-fuzz/tests/$target" -max_total_time="$fuzz_seconds" -timeout=10 \
        -dict=tests/fuzz/words.dict -rss_limit_mb=1024 -artifact_prefix="build-fuzz/crashes/$target-" \
        "${corpus[@]}" >"$log" 2>&1; then
        echo "$target found something:"
        tail -n 40 "$log"
        return 1
    fi
}

for rule in banned layers foreign size spdx todo words guards; do
    eval "step_$rule() { set +o pipefail; rule_$rule; }"
done

# What fails here fails again in its step, and is said there.
prepare() {
    local what
    for what in "step_clang" "step_analyze" "build_project . asan" "build_project . tsan" \
        build_fuzz tests/charts/helm_fetch.sh "tests/mutants/run.py --prepare"; do
        (set -e && $what) >/dev/null 2>&1 || true
    done
}

# --- running them ---

run_step() {
    local name=$1 log started=$SECONDS word=ok
    log=$(mktemp)
    # a subshell with its own -e: "if" would switch it off
    (
        set -euo pipefail
        "step_$name"
    ) >"$log" 2>&1 &
    wait $! || { (($? == cannot_run)) && word=none || word=FAIL; }
    printf '%-4s %-10s %4d s  %s\n' "$word" "$name" "$((SECONDS - started))" \
        "$(sed -n 's/^note: //p' "$log" | paste -sd ';')"
    [[ $word != FAIL ]] ||
        grep -vE '^note: |^ +Start +[0-9]+: | Passed +[0-9.]+ sec$' "$log" | tail -n 100 | sed 's/^/     /'
    rm -f "$log"
}

# These keep all processors busy, and follow one another. What the others leave idle, while they wait
# for a browser, a download or a clock, is theirs.
wide=" clang analyze asan tsan fuzz mutants "

run_lane() {
    local name report
    for name in "$@"; do
        report=$(run_step "$name")
        flock "$results" tee -a "$results" <<<"$report"
    done
}

run_steps() {
    local name
    local -a lane=()
    for name in "${only[@]}"; do
        [[ $wide != *" $name "* ]] || lane+=("$name")
    done
    run_lane "${lane[@]}" &
    for name in "${only[@]}"; do
        [[ $wide == *" $name "* ]] || run_lane "$name"
    done
    wait $!
}

parse() {
    while (($#)); do
        case $1 in
        --long) long=1 fuzz_seconds=60 for_release="" ;;
        --help | -h) usage && exit 0 ;;
        *)
            grep -q "^$1 " <<<"$(printf '%s\n' "${steps[@]}")" || { usage >&2 && exit 2; }
            only+=("$1")
            ;;
        esac
        shift
    done
    ((${#only[@]})) || mapfile -t only < <(printf '%s\n' "${steps[@]}" | cut -d' ' -f1 | grep -vxF "${for_release// /$'\n'}")
}

main() {
    local passed
    local -a failed
    # a compiler cache makes clean checkouts cheap where there is one
    if command -v ccache >/dev/null; then
        export CMAKE_C_COMPILER_LAUNCHER=ccache
    fi
    if [[ ${1:-} == --prepare ]]; then
        prepare
        return
    fi
    parse "$@"
    results=$(mktemp)
    # shellcheck disable=SC2064  # the file as it is now
    trap "rm -f '$results'" EXIT
    run_steps
    mapfile -t failed < <(awk '$1 == "FAIL" { print $2 }' "$results")
    if ((${#failed[@]})); then
        echo "failed: ${failed[*]}"
        return 1
    fi
    passed=$(grep -c '^ok ' "$results" || true)
    echo "$passed steps passed, $((${#only[@]} - passed)) could not run here"
    ((passed + $(grep -c '^none ' "$results") == ${#only[@]}))
}

main "$@"
