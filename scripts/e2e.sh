#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# End-to-end tests: a real etcd, kube-apiserver and kube-scheduler on loopback, simulated nodes, and
# this project's extender between them. Installs and builds what is missing; the first run compiles
# Kubernetes once (minutes) into a cache outside the checkout.
set -euo pipefail

export GPUSHARE_INVARIANTS=fatal # base/invariant.h
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
e2e=$root/tests/e2e
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=tests/e2e/kube_env.sh
. "$e2e/kube_env.sh"

programs+=(noop_extender under_profile pod_cgroups fake_nvml)
case_limit_s=600
cases=$e2e/cases
seclude=() # what starts a case in namespaces of its own
keep=0
only=()
select=()
selected=()
others=0
logs=""

usage() {
    cat <<'EOF'
Usage: scripts/e2e.sh [--as-deployed] [--only NAME]... [--keep] [--list]
       scripts/e2e.sh --cluster [--nodes N] [--gpus 16,16] ...
       scripts/e2e.sh --exec FILE.py [ARGUMENT]...

  --as-deployed the cases of tests/e2e/deployed instead: this project in pods, from its own images
                and manifests, on a cluster with a controller manager, kube-proxy and real rights
  --only NAME   run this case (a file of tests/e2e/cases without its ending); may be repeated
  --keep        keep every case's logs; those of failed cases are always kept
  --release-dependent   only the cases whose outcome depends on the Kubernetes release
  --list        name the cases, the releases they are for, and what each shows
  --cluster     no tests: start a cluster to play with, until Ctrl-C
  --exec        no tests: run a Python program that uses the harness, e.g. a measurement

  KUBE_VERSION       1.20 (the default, from Debian's source), newest, 1.NN or 1.NN.P (need Go)
  KUBE_BIN_DIR       folder with ready-made Kubernetes programs
  GPUSHARE_FILTER_NAMES the extender's --filter-names, all (the default) or one
  GPUSHARE_BUILD_DIR folder with this project's programs, built already (default: build, built now)
EOF
}

list_cases() {
    apt_need python3
    python3 "$e2e/select_cases.py" --list "${select[@]}"
}

# A case for other releases is named, and counts as nothing. So is one whose program is not built here,
# unless it was asked for by name.
select_cases() {
    local listed verdict name releases why
    listed=$(python3 "$e2e/select_cases.py" "${select[@]}")
    while read -r verdict name releases; do
        ((${#only[@]})) && [[ " ${only[*]} " != *" $name "* ]] && continue
        if [[ $verdict == run ]] || { [[ $verdict == needs ]] && ((${#only[@]})); }; then
            selected+=("$name")
        elif [[ $verdict == needs ]]; then
            if why=$("$e2e/$releases" --cached); then
                selected+=("$name")
            else
                others=$((others + 1))
                echo "other $name: $why"
            fi
        else
            others=$((others + 1))
            echo "other $name: for Kubernetes $releases, this is $KUBE_VERSION"
        fi
    done <<<"$listed"
}

prepare() {
    apt_need python3 openssl ca-certificates util-linux
    [[ -n ${GPUSHARE_BUILD_DIR:-} ]] || build_project "$root" release "${programs[@]}"
    KUBE_BIN_DIR=$("$e2e/kube_build.sh")
    ETCD=$("$e2e/etcd_fetch.sh")
    NODE_DIR=$("$e2e/node_fetch.sh")
    export KUBE_BIN_DIR ETCD NODE_DIR PYTHONPATH=$e2e PYTHONDONTWRITEBYTECODE=1
    # A user's own cluster and proxy are none of our business.
    unset KUBECONFIG http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
}

# A case has a network, mounts and processes of its own: whatever happens to it, nothing stays.
prepare_deployed() {
    apt_need iproute2 iptables mount
    seclude=(unshare --net --mount --pid --fork --kill-child --mount-proc)
    export GPUSHARE_IMAGES=$logs/images
    "$root/scripts/image.sh" --out "$GPUSHARE_IMAGES" >&2
}

# The case prints why it failed; the programs' last words follow, for machines whose logs are lost.
report_failure() {
    local dir=$1 log
    tail -n 20 "$dir/case.log"
    for log in "$dir"/{gpushare-extender,gpushare-device-plugin,kube-scheduler}.log \
        "$dir"/pod-logs/*.log; do
        [[ -f $log ]] || continue
        echo "--- ${log##*/}"
        tail -n 10 "$log" | cut -c1-400
    done
    echo "--- logs: $dir"
}

# What a case could not remove before its last process had ended. The name is the whole folder's: what
# begins with it may be another case's, whose kubelet is just looking at its empty cgroup.
remove_cgroup() {
    local attempt
    for attempt in 1 2 3 4 5; do
        find /sys/fs/cgroup -depth -type d \( -path "*/$1" -o -path "*/$1/*" \) -exec rmdir {} + \
            2>/dev/null || true
        find /sys/fs/cgroup -maxdepth 2 -name "$1" | grep -q . || return 0
        sleep "$attempt"
    done
}

run_case() {
    local name=$1 dir=$logs/$1 started=$SECONDS
    mkdir -p "$dir"
    if GPUSHARE_RUN_DIR=$dir timeout -k 30 "$case_limit_s" "${seclude[@]}" \
        python3 "$cases/$name.py" >"$dir/case.log" 2>&1; then
        echo "ok   $name ($((SECONDS - started)) s)"
        sed -n 's/^note: /       /p' "$dir/case.log"
        ((keep)) || rm -rf "$dir"
    else
        echo "FAIL $name ($((SECONDS - started)) s)"
        report_failure "$dir" | sed 's/^/       /'
    fi
    ((${#seclude[@]} == 0)) || remove_cgroup "${logs##*/}-$name"
}

# A machine has room for one kubelet: one lane runs the cases that start one after each other, and then
# helps the others, as many as there are processors: cases mostly wait. As deployed they share nothing.
needs_machine() {
    [[ $cases != "$e2e/deployed" ]] && grep -q '^from harness.node import' "$cases/$1.py"
}

# The next one's name; nothing when there is none.
take_case() {
    local queue
    for queue in "$@"; do
        (
            flock 8
            head -n 1 "$queue"
            sed -i 1d "$queue"
        ) 8>"$logs/.lock" | grep . && return
    done
}

# What one case prints stays together. The cases of a lane share a control plane (harness/shared.py).
run_lane() {
    local name report plane_dir plane=""
    while name=$(take_case "$@"); do
        if [[ -z $plane && $cases != "$e2e/deployed" ]]; then
            plane_dir=$logs/.plane-$BASHPID
            mkdir "$plane_dir"
            setpriv --pdeathsig TERM python3 "$e2e/harness/shared.py" "$plane_dir" &
            plane=$!
            export GPUSHARE_CONTROL_PLANE=$plane_dir
        fi
        report=$(run_case "$name")
        (
            flock 8
            printf '%s\n' "$report" | tee -a "$logs/results"
        ) 8>"$logs/.lock"
    done
    [[ -z $plane ]] || { kill "$plane" && wait "$plane"; }
}

run_cases() {
    local name
    local -a lanes=()
    touch "$logs/.queue-machine" "$logs/.queue"
    for name in "$@"; do
        if needs_machine "$name"; then
            echo "$name" >>"$logs/.queue-machine"
        else
            echo "$name" >>"$logs/.queue"
        fi
    done
    run_lane "$logs/.queue-machine" "$logs/.queue" &
    lanes+=($!)
    for _ in $(seq "$(nproc)"); do
        run_lane "$logs/.queue" &
        lanes+=($!)
    done
    wait "${lanes[@]}"
}

summarise() {
    local passed failed
    passed=$(grep -c '^ok ' "$logs/results" || true)
    failed=$(grep -c '^FAIL ' "$logs/results" || true)
    rm -rf "$logs/results" "$logs"/.{lock,queue,queue-machine,plane-*} "$logs/images"
    if ((keep)); then echo "logs: $logs"; fi
    rmdir "$logs" 2>/dev/null || true
    echo "$passed passed, $failed failed, $others for other releases than Kubernetes $KUBE_VERSION"
    ((failed == 0 && passed == $1 && passed > 0))
}

parse_options() {
    while (($#)); do
        case $1 in
        --only)
            [[ -f $cases/${2:-}.py ]] || { echo "no case '${2:-}'" >&2 && exit 2; }
            only+=("$2")
            shift
            ;;
        --as-deployed)
            cases=$e2e/deployed
            select+=(--as-deployed)
            ;;
        --keep) keep=1 ;;
        --release-dependent) select+=(--release-dependent) ;;
        --list) list_cases && exit 0 ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
}

main() {
    case ${1:-} in
    --cluster)
        prepare
        exec python3 "$e2e/run_cluster.py" "${@:2}"
        ;;
    --exec)
        prepare
        exec python3 "${@:2}"
        ;;
    esac
    parse_options "$@"
    prepare
    logs=$(mktemp -d "${TMPDIR:-/tmp}/gpushare-e2e.XXXXXX")
    select_cases
    [[ $cases == "$e2e/cases" ]] || prepare_deployed
    run_cases "${selected[@]}"
    summarise "${#selected[@]}"
}

main "$@"
