#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole main job without a Kubernetes and without a GPU: builds, starts an embedded cluster
# (gpushare-sim serve) and the real extender, plays kube-scheduler for the pods of examples/demo/,
# prints which pod got which GPU and why the others wait, and checks that all of it is right.
#
# On a bare Debian 12 it installs with apt what is missing. Everything listens on loopback, on ports
# that are free, and is stopped at the end.
#
#   scripts/demo.sh [--keep]     --keep: leave cluster, extender and a live page of them until Enter
#                                is pressed
#
# Exit status 0 only when every pod is where it has to be and no GPU holds more than it has.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"

keep=false
case ${1:-} in
    "") ;;
    --keep) keep=true ;;
    -h | --help)
        sed -n '4,15s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "usage: demo.sh [--keep]" >&2
        exit 2
        ;;
esac

work=$(mktemp -d)
api_pid='' extender_pid='' page_pid='' failed=false

# stop PID NAME: SIGTERM, and what does not leave within 10 s is killed and counted as a failure.
stop() {
    local pid=$1 name=$2 status=0 tenths=0
    [[ -n $pid ]] || return 0
    kill -TERM "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null && ((tenths++ < 100)); do
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || status=$?
    if ((status != 0)); then
        echo "$name ended with status $status" >&2
        failed=true
    fi
}

stop_all() {
    stop "$page_pid" "kubectl-inspect-gpushare web"
    page_pid=''
    stop "$extender_pid" gpushare-extender
    extender_pid=''
    stop "$api_pid" "gpushare-sim serve"
    api_pid=''
}

give_up() {
    echo "demo: $*" >&2
    tail -n 20 "$work"/*.log >&2 2>/dev/null || true
    exit 1
}

trap 'stop_all; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# answers PORT PATH: an HTTP server on that loopback port says 200.
answers() {
    local status=''
    { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' "$2" >&3
    read -r _ status _ <&3 || true
    exec 3<&- 3>&-
    [[ $status == 200 ]]
}

# A port of the unprivileged range that nobody listens on.
free_port() {
    local port
    for _ in {1..50}; do
        port=$((20000 + RANDOM % 12000))
        if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return 0
        fi
    done
    return 1
}

# wait_for PID SECONDS COMMAND...: until the command succeeds; fails when the process ends first.
wait_for() {
    local pid=$1 tenths=$(($2 * 10))
    shift 2
    until "$@"; do
        kill -0 "$pid" 2>/dev/null && ((tenths-- > 0)) || return 1
        sleep 0.1
    done
}

start_api() {
    "$root/build/gpushare-sim" serve --listen 127.0.0.1:0 \
        --load "$root/examples/demo/cluster.yaml" --kubeconfig-out "$work/kubeconfig" \
        2>"$work/api.log" &
    api_pid=$!
    wait_for "$api_pid" 20 test -e "$work/kubeconfig" || give_up "the embedded cluster does not start"
    api_url=$(sed -n 's/^ *server: //p' "$work/kubeconfig")
}

# Between looking for a free port and listening on it somebody else may take it: then another one.
start_extender() {
    local port
    for _ in 1 2 3; do
        port=$(free_port) || give_up "no free port"
        "$root/build/gpushare-extender" --kubeconfig "$work/kubeconfig" \
            --listen "127.0.0.1:$port" 2>"$work/extender.log" &
        extender_pid=$!
        if wait_for "$extender_pid" 20 answers "$port" /readyz; then
            extender_url=http://127.0.0.1:$port
            return 0
        fi
        kill -KILL "$extender_pid" 2>/dev/null || true
        wait "$extender_pid" 2>/dev/null || true
        extender_pid=''
    done
    give_up "the extender does not get ready"
}

start_page() {
    "$root/build/kubectl-inspect-gpushare" web --server "$api_url" \
        >"$work/page" 2>"$work/page.log" &
    page_pid=$!
    wait_for "$page_pid" 20 grep -q '^http' "$work/page" || give_up "the page does not start"
}

echo "building ..."
build_project "$root" release gpushare-extender gpushare-sim kubectl-inspect-gpushare
start_api
start_extender
echo "three nodes with four GPUs each at $api_url, the extender at $extender_url"
"$root/build/gpushare-sim" schedule --api "$api_url" --extender "$extender_url" \
    --pods "$root/examples/demo/pods.yaml" 2>"$work/schedule.log" || give_up "scheduling failed"
"$root/build/gpushare-sim" demo --api "$api_url" --extender "$extender_url" || failed=true
if $keep; then
    start_page
    echo
    echo "the page:     $(cat "$work/page")"
    echo "still there:  kubectl --server $api_url get pods -o wide"
    echo "              curl $extender_url/gpushare-scheduler/inspect"
    echo "              build/kubectl-inspect-gpushare --server $api_url"
    read -rp "Enter stops it. " _ || true
fi
stop_all
if $failed; then
    tail -n 20 "$work"/*.log >&2
    echo "demo: FAILED" >&2
    exit 1
fi
echo "demo: all as expected"
