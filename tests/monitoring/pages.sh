#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The metrics pages of extender and device plugin, as they are in a small cluster on the simulated
# API server. Needs curl, openssl, and the three programs in BUILD. Nothing is left running.
#
#   pages.sh BUILD DIR        writes DIR/extender.prom and DIR/device-plugin.prom
set -euo pipefail

build=$1
dir=$2
pids=()

stop_all() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait
}

begin() {
    local name=$1
    shift
    "$@" >"$dir/$name.log" 2>&1 &
    pids+=($!)
}

wait_for() {
    local i
    for ((i = 0; i < 150; i++)); do
        "$@" && return 0
        sleep 0.1
    done
    echo "not within 15 s: $*" >&2
    tail -n 5 "$dir"/*.log >&2
    return 1
}

free_port() {
    local port
    for ((port = 20000 + RANDOM % 10000; ; port++)); do
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# The page is complete when its last family is there.
fetch() {
    local port=$1 name=$2 last=$3
    curl -sf "http://127.0.0.1:$port/metrics" >"$dir/$name.new" || return 1
    grep -q "^${last}[{ ]" "$dir/$name.new" && mv "$dir/$name.new" "$dir/$name.prom"
}

trap stop_all EXIT
mkdir -p "$dir/plugins"
begin sim "$build/tests/synthetic-api" nodes=4,gpus=4,mem=16,pods=40,pod_mem=3,pending=2 \
    --listen 127.0.0.1:0 --kubeconfig-out "$dir/kubeconfig"
wait_for test -s "$dir/kubeconfig"
# some families are there with TLS only
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost \
    -keyout "$dir/tls.key" -out "$dir/tls.crt" 2>"$dir/openssl.log"
extender_port=$(free_port)
begin extender "$build/gpushare-extender" --kubeconfig "$dir/kubeconfig" --listen 127.0.0.1:0 \
    --tls-cert "$dir/tls.crt" --tls-key "$dir/tls.key" --health-listen "127.0.0.1:$extender_port"
# stranded memory is told once enough pods were seen
wait_for fetch "$extender_port" extender gpushare_memory_stranded_bytes
plugin_port=$(free_port)
begin plugin "$build/gpushare-device-plugin" --kubeconfig "$dir/kubeconfig" \
    --node-name node-00000 --fake-gpus 2x16384MiB --device-plugin-dir "$dir/plugins" \
    --health-listen "127.0.0.1:$plugin_port" --pod-usage=on
wait_for fetch "$plugin_port" device-plugin gpushare_device_plugin_gpu_healthy
