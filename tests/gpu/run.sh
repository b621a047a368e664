#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD: scripts/gpu.sh with stand-ins for the driver's libraries and for NVIDIA's MPS program,
# that behave and that do not; and where there is no card. The MPS program lies in /opt/bin, in a mount
# namespace of our own; without the right to make one: 77.
set -uo pipefail

build=$1
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bad=0

if [[ -z ${GPUSHARE_GPU_TEST:-} ]]; then
    enter=(unshare -m)
    ((EUID == 0)) || enter=(unshare -r -m)
    "${enter[@]}" mount -t tmpfs tmpfs /opt 2>/dev/null || { echo "no mount namespace can be made here" && exit 77; }
    # shellcheck disable=SC2016 # its own arguments
    GPUSHARE_GPU_TEST=1 exec "${enter[@]}" sh -c 'mount -t tmpfs tmpfs /opt && exec "$@"' sh "$0" "$@"
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p /opt/bin "$folder/bin" "$folder/sys/bus/pci/devices/0000:3b:00.0"
cp "$source/tests/support/mps/nvidia-cuda-mps-control" /opt/bin
for program in gpushare-device-plugin gpushare-mps gpushare-sim tests/gpu/{crowd,cuda_probe,gpu_source,plugin_env}; do
    ln -s "$build/$program" "$folder/bin/"
done
export GS_FAKE_NVML=$folder/cards
echo "gpu GPU-a 16384 0 00000000:3B:00.0" >"$GS_FAKE_NVML"

options=() sysfs=$folder/sys looks=()
# judge NAME STATUS LINE...: gpu.sh with these options ends with it, and says these lines
judge() {
    local name=$1 status=$2 out=$folder/out.$BASHPID got line
    shift 2
    "$source/scripts/gpu.sh" --bin "$folder/bin" --nvml-library "$build/tests/libfake_nvml.so" \
        --cuda-library "$build/tests/gpu/libfake_cuda.so" --sysfs "$sysfs" "${options[@]}" >"$out" 2>&1
    got=$?
    for line in "$@"; do
        grep -q "$line" "$out" || { got="without \"$line\"" && break; }
    done
    [[ $got == "$status" ]] && echo "ok   $name" && return
    echo "FAIL $name: $got"
    cat "$out"
    return 1
}

# side by side: they mostly wait
look() {
    judge "$@" &
    looks+=($!)
}

wait_looks() {
    for pid in "${looks[@]}"; do
        wait "$pid" || bad=1
    done
    looks=()
}

look "a card and its daemon as documented" 0 "ok    users      it is listed once" "ok    users      its pod" \
    "ok    limit      3 GiB of 2" "ok    processes" "ok    entry" \
    "ok    pipe" "seen  threads    50 of 100" "ok    container  3 GiB of 2" "the next client: given"
GS_FAKE_CUDA=keeps-limit look "a wrong entry drops nothing" 1 "FAIL  entry .*refused instead of given"
sysfs=$folder/bin GS_FAKE_CUDA=no-limit,no-threads look "nothing limits a client, and the kernel knows no such card" 1 \
    "FAIL  limit      3 GiB of 2: given" "FAIL  container" "FAIL  threads" \
    "FAIL  inventory  the kernel knows 0000:3b:00.0"
options=(--silent 3)
look "a daemon with a client is silent" 0 "ok    silence    150 silent" "seen  silence    server [0-9]" \
    "ok    silence    the daemon was not ended" "ok    silence    and goes on" "ok    silence    without them" \
    "ok    silence    the next client: 3 GiB"
options=()
wait_looks
rm /opt/bin/nvidia-cuda-mps-control
GS_FAKE_CUDA=no-list look "a driver that lists no process" 1 "seen  users      not listed" "FAIL  users      it is listed once"
look "no MPS program" 0 "skip  limit .*no nvidia-cuda-mps-control" "ok    source"
wait_looks
: >"$GS_FAKE_NVML"
look "a driver without a card" 77 "has no GPU to share"
wait_looks

# A name, so that this machine's own driver, if it has one, is not asked.
mkdir "$folder/empty"
unshare -m sh -c "[ ! -e /proc/driver/nvidia ] || mount --bind $folder/empty /proc/driver/nvidia
    exec $source/scripts/gpu.sh" >"$folder/out"
status=$?
if ((status == 77)) && (($(grep -c '^      [a-z]' "$folder/out") == 12)); then
    echo "ok   no driver: 77, and what it would look at"
else
    echo "FAIL no driver: $status"
    cat "$folder/out"
    bad=1
fi
exit "$bad"
