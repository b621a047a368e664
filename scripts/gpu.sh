#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What only a card can show. It reads, allocates memory as any program does, and runs MPS daemons of its
# own; no setting of a card is changed, and no network is needed.
# shellcheck disable=SC2317 # each check_NAME is called by its name
set -uo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packed=$root/build/gpu
carried=(gpushare-device-plugin gpushare-mps gpushare-sim tests/gpu/crowd tests/gpu/cuda_probe
    tests/gpu/gpu_source tests/gpu/plugin_env)
checks=(
    "inventory  gpushare-device-plugin --print-inventory: cards with memory and a PCI address that the kernel knows, MIG as nvidia-smi has it"
    "source     the driver's library as the plugin reads it: events registered, what 1,000 reads leave behind"
    "plugin     memory of gpushare-device-plugin with that library, beside an embedded API server"
    "context    what a CUDA context takes of a card"
    "users      which process has how much of a card, and of which pod it is by its cgroup, as --pod-usage-from=nvml reads it"
    "limit      gpushare-mps with the driver's own daemon: a client is given 1 GiB of 2, and refused 3"
    "processes  the limit is each process's: two have it twice"
    "entry      an entry for a GPU that the client does not see drops its limits"
    "pipe       who does not find the daemon has no limit"
    "threads    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 leaves half of the processors"
    "container  environment and mounts as the plugin answers them for 2 GiB: 3 GiB are refused"
    "kill       kill -9 of a client at work: what becomes of the next"
)
bin=""
nvml_library=libnvidia-ml.so.1
cuda_library=libcuda.so.1
driver_root=""
sysfs=/sys
work=""
pids=()
failed=0
uuid=""
no_daemon=""
silent_s=""

usage() {
    cat <<'EOT'
Usage: scripts/gpu.sh [OPTION...]    on a machine with a card, as root; 77 where there is none
       scripts/gpu.sh --pack         builds the programs and lays them into build/gpu with all libraries
                                     they need, to be carried to a machine that has neither compiler nor
                                     network
       scripts/gpu.sh --list         what is looked at

  --silent SECONDS      instead of all that: what silent connections do to an MPS daemon with a client, which
                        are held so long (70: two minutes in all)
  --nvml-library FILE   instead of libnvidia-ml.so.1
  --cuda-library FILE   instead of libcuda.so.1
  --driver-root DIR     where nvidia-cuda-mps-control is run (as gpushare-mps)
  --sysfs DIR           instead of /sys
  --bin DIR             the programs, instead of those of build/gpu
EOT
}

# ---- the programs ----

pack() {
    local program
    # shellcheck source=scripts/lib/apt.sh
    . "$root/scripts/lib/apt.sh"
    # shellcheck source=scripts/lib/build.sh
    . "$root/scripts/lib/build.sh"
    # shellcheck source=scripts/lib/carry.sh
    . "$root/scripts/lib/carry.sh"
    build_project "$root" release gpushare-device-plugin gpushare-mps gpushare-sim cuda_probe gpu_source \
        plugin_env crowd || exit 1
    rm -rf "$packed"
    for program in "${carried[@]}"; do
        carry "$root/build/$program" "$packed" || exit 1
    done
}

# ---- what was seen ----

say() {
    printf '%-5s %-10s %s\n' "$1" "$2" "$3"
    [[ $1 != FAIL ]] || failed=1
}

# expect CHECK WHAT WANTED GOT
expect() {
    if [[ $4 == "$3" ]]; then
        say ok "$1" "$2"
    else
        say FAIL "$1" "$2: $4 instead of $3"
    fi
}

# yes_if TEST...: yes or no
yes_if() {
    if test "$@"; then echo yes; else echo no; fi
}

# In words, how a cuda_probe ended.
outcome() {
    case $1 in
    0) echo given ;;
    2) echo refused ;;
    *) echo "status $1: $(tail -n 1 "$work/probe.log")" ;;
    esac
}

# probe NAME=VALUE... -- OPTION...: how it ended
probe() {
    local -a told=()
    while [[ $1 != -- ]]; do
        told+=("$1")
        shift
    done
    shift
    env -u CUDA_MPS_PIPE_DIRECTORY -u CUDA_MPS_PINNED_DEVICE_MEM_LIMIT "${told[@]}" \
        timeout 60 "$bin/cuda_probe" --library "$cuda_library" "$@" >"$work/probe.log" 2>&1
    outcome $?
}

# The same in the background; its line is waited for, and its process id is $held.
hold() {
    local log=$work/held.$((${#pids[@]}))
    local -a told=()
    while [[ $1 != -- ]]; do
        told+=("$1")
        shift
    done
    shift
    env "${told[@]}" "$bin/cuda_probe" --library "$cuda_library" "$@" <"$work/hold" >"$log" 2>&1 &
    held=$!
    pids+=("$held")
    wait_for 60 test -s "$log"
    tail -n 1 "$log" >"$work/probe.log"
}

wait_for() {
    local tenths=$(($1 * 10))
    shift
    while ((tenths-- > 0)); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}

value_of() {
    sed -nE "s/.*\\b$1=([0-9]+).*/\\1/p" "$2" | head -n 1
}

end() {
    kill "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}

clean_up() {
    local pid
    for pid in "${pids[@]}"; do
        end "$pid"
    done
    rm -rf "$work"
}

# ---- the driver's library ----

check_inventory() {
    local pci count mib
    "$bin/gpushare-device-plugin" --print-inventory --nvml-library "$nvml_library" >"$work/inventory" 2>&1
    expect inventory "the program ends well" 0 $?
    grep '^GPU\|^left out' "$work/inventory" | sed 's/^/      /'
    count=$(grep -c '^GPU' "$work/inventory")
    mib=$(grep '^GPU' "$work/inventory" | grep -c ' [1-9][0-9]* MiB')
    expect inventory "all $count have memory" "$count" "$mib"
    while read -r pci; do
        expect inventory "the kernel knows $pci" yes "$(yes_if -e "$sysfs/bus/pci/devices/$pci")"
    done < <(sed -nE 's/^gpu .* pci=([^ ]*) .*/\1/p' "$work/source" | sort -u)
    command -v nvidia-smi >/dev/null || return 0
    expect inventory "MIG instances" "$(nvidia-smi -L | grep -c 'UUID: MIG-')" \
        "$(grep -c '^GPU.* MIG-' "$work/inventory")"
}

check_source() {
    sed 's/^/      /' "$work/source"
    expect source "events are registered" "events heard" "$(grep '^events' "$work/source")"
    expect source "900 reads leave less than 1 MiB behind" yes \
        "$(yes_if "$(sed -n 's/^left_kib //p' "$work/source")" -lt 1024)"
}

check_plugin() {
    local plugin
    mkdir "$work/plugins"
    "$bin/gpushare-sim" serve --listen 127.0.0.1:0 --kubeconfig-out "$work/kubeconfig" \
        >"$work/sim.log" 2>&1 &
    pids+=($!)
    wait_for 15 test -s "$work/kubeconfig" || { say FAIL plugin "no API server" && return; }
    "$bin/gpushare-device-plugin" --kubeconfig "$work/kubeconfig" --node-name node-0 \
        --nvml-library "$nvml_library" --device-plugin-dir "$work/plugins" \
        --cgroup-root "$work/plugins" >"$work/plugin.log" 2>&1 &
    plugin=$!
    pids+=("$plugin")
    wait_for 15 grep -q msg=serving "$work/plugin.log"
    sleep 1
    if kill -0 "$plugin" 2>/dev/null; then
        say seen plugin "$(tr -s '\t ' ' ' <"/proc/$plugin/status" | grep -E 'VmRSS|RssAnon|Threads' | paste -sd' ')"
    else
        say FAIL plugin "it has ended: $(tail -n 1 "$work/plugin.log")"
    fi
    end "$plugin"
}

# ---- CUDA ----

used_mib() {
    "$bin/gpu_source" "$nvml_library" 2>/dev/null | grep "uuid=$uuid " >"$work/used"
    value_of used_mib "$work/used"
}

check_context() {
    local before after
    before=$(used_mib)
    hold CUDA_VISIBLE_DEVICES="$uuid" -- --hold
    after=$(used_mib)
    say seen context "$((after - before)) MiB, by NVML; $(cat "$work/probe.log")"
    end "$held"
}

# The held process' line, "pid=7 mib=9 pod=-". It is in a cgroup of the name that a pod's has where one can
# be made.
user_line() {
    "$bin/gpu_source" "$nvml_library" 2>/dev/null | sed -nE "s/^process gpu=[0-9]+ (pid=$held .*)/\1/p"
}

check_users() {
    local line mib pod=- folder=/sys/fs/cgroup/kubepods/podgpu-sh
    hold CUDA_VISIBLE_DEVICES="$uuid" -- --mib 1024 --hold
    if [[ -e /sys/fs/cgroup/cgroup.procs ]] && mkdir -p "$folder/c" 2>/dev/null &&
        echo "$held" 2>/dev/null >"$folder/c/cgroup.procs"; then
        pod=gpu-sh
    fi
    line=$(user_line)
    mib=$(sed -nE 's/.* mib=([0-9]+) .*/\1/p' <<<"$line")
    say seen users "${line:-not listed}; the card has $(used_mib) MiB in use"
    expect users "it is listed once" 1 "$(grep -c . <<<"$line")"
    expect users "with the 1024 MiB that it took" yes "$(yes_if "${mib:-0}" -ge 1024)"
    expect users "its pod" "pod=$pod" "${line##* }"
    end "$held"
    expect users "when it has ended it is not listed" "" "$(user_line)"
    rmdir "$folder/c" "$folder" "${folder%/*}" 2>/dev/null
}

# ---- MPS ----

is_ready() {
    grep -qs '^ready' "$work/mps/$uuid/state"
}

has_no_program() {
    grep -q 'no MPS daemon yet' "$work/mps.log"
}

is_ready_or_hopeless() {
    is_ready || has_no_program
}

start_mps() {
    [[ -z $no_daemon && ! -d $work/mps ]] || return 0
    mkdir "$work/mps"
    "$bin/gpushare-mps" --root "$work/mps" --nvml-library "$nvml_library" \
        ${driver_root:+--driver-root "$driver_root"} >"$work/mps.log" 2>&1 &
    pids+=($!)
    wait_for 30 is_ready_or_hopeless
    is_ready || no_daemon="no MPS daemon: $(tail -n 1 "$work/mps.log")"
}

client=()
needs_mps() {
    start_mps
    client=("CUDA_MPS_PIPE_DIRECTORY=$work/mps/$uuid/pipe" CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M)
    [[ -z $no_daemon ]] || say skip "$1" "$no_daemon"
    [[ -z $no_daemon ]]
}

check_limit() {
    needs_mps limit || return
    expect limit "1 GiB of 2" given "$(probe "${client[@]}" -- --mib 1024)"
    expect limit "3 GiB of 2" refused "$(probe "${client[@]}" -- --mib 3072)"
}

check_processes() {
    needs_mps processes || return
    hold "${client[@]}" -- --mib 1280 --hold
    expect processes "2 x 1.25 GiB, each of 2" given "$(probe "${client[@]}" -- --mib 1280)"
    end "$held"
}

check_entry() {
    needs_mps entry || return
    expect entry "3 GiB of 2 and an entry for GPU 9" given \
        "$(probe "${client[0]}" CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M,9=2048M -- --mib 3072)"
}

check_pipe() {
    needs_mps pipe || return
    expect pipe "3 GiB of 2 without the pipes" given \
        "$(probe CUDA_MPS_PIPE_DIRECTORY="$work/nowhere" "${client[1]}" -- --mib 3072)"
}

check_threads() {
    local all half off
    needs_mps threads || return
    probe "${client[@]}" -- >/dev/null
    all=$(value_of processors "$work/probe.log")
    probe "${client[@]}" CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 -- >/dev/null
    half=$(value_of processors "$work/probe.log")
    off=$((half * 2 - all))
    say seen threads "$half of $all processors"
    expect threads "half of them, but for rounding" yes "$(yes_if "${off#-}" -le 4)"
}

# There is no container here: its mounts' sources take the place of their targets.
check_container() {
    local line host target
    local -a told=()
    needs_mps container || return
    "$bin/plugin_env" "$work/mps" "$uuid" 2 >"$work/container" || { say FAIL container "no answer" && return; }
    sed 's/^/      /' "$work/container"
    while read -r line; do
        read -r _ host target <<<"$line"
        [[ $line == *=* && $line != NVIDIA_* ]] && told+=("$line")
        [[ $line == mount* && $target == /tmp/nvidia-mps ]] && told+=("CUDA_MPS_PIPE_DIRECTORY=$host")
    done <"$work/container"
    expect container "1 GiB of 2" given "$(probe "${told[@]}" -- --mib 1024)"
    expect container "3 GiB of 2" refused "$(probe "${told[@]}" -- --mib 3072)"
}

check_kill() {
    needs_mps kill || return
    hold "${client[@]}" -- --mib 512 --work
    kill -9 "$held"
    wait "$held" 2>/dev/null
    say seen kill "the next client: $(probe "${client[@]}" -- --mib 512)"
}

# ---- silent connections ----

is_away() {
    grep -qs '^away' "$work/mps/$uuid/state"
}

state_now() {
    cut -d' ' -f1,3- "$work/mps/$uuid/state"
}

# Of the daemon that was started last.
daemon_pid() {
    sed -nE 's/.*MPS daemon .* pid=([0-9]+).*/\1/p' "$work/mps.log" | tail -n 1
}

# The processes that gpushare-mps takes for servers of this daemon (control_serves).
tell_servers() {
    local stat line pid
    local -a word
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        pid=${line%% *}
        read -ra word <<<"${line##*) }"
        [[ $pid != "$1" && (${word[1]} == "$1" || ${word[2]} == "$1") ]] || continue
        say seen silence "server $pid of daemon $1: state ${word[0]}, parent ${word[1]}, group ${word[2]}, session ${word[3]}, $(
            find "/proc/$pid/fd" -lname 'socket:*' 2>/dev/null | wc -l) sockets"
    done
}

# crowd_of COUNT: its process id is $crowd
crowd_of() {
    "$bin/crowd" "$work/mps/$uuid/pipe/control" "$1" >"$work/crowd" 2>&1 &
    crowd=$!
    pids+=("$crowd")
}

check_silence() {
    local crowd worker log rounds daemon since
    needs_mps silence || return
    hold "${client[@]}" -- --mib 1024 --work
    worker=$held
    log=$work/held.$((${#pids[@]} - 1))
    daemon=$(daemon_pid)
    sleep 4
    tell_servers "$daemon"
    crowd_of 1
    sleep 8
    say seen silence "one silent connection for 8 s: $(state_now); $(tail -n 1 "$work/crowd")"
    end "$crowd"
    wait_for 20 is_ready
    crowd_of 150
    wait_for 15 is_away
    expect silence "150 silent connections make the daemon silent" yes "$(is_away && echo yes || echo no)"
    say seen silence "$(head -n 1 "$work/crowd") at once"
    sleep "$silent_s"
    say seen silence "after $silent_s s: $(state_now); $(tail -n 1 "$work/crowd")"
    expect silence "the daemon was not ended" "$daemon" \
        "$(daemon_pid)"
    expect silence "it lives" yes "$(yes_if -e "/proc/$daemon/stat")"
    tell_servers "$daemon"
    rounds=$(tail -n 1 "$log")
    sleep 3
    expect silence "the client lives" yes "$(kill -0 "$worker" 2>/dev/null && echo yes || echo no)"
    expect silence "and goes on computing: $rounds, $(tail -n 1 "$log")" yes \
        "$([[ $rounds == rounds=* && $rounds != "$(tail -n 1 "$log")" ]] && echo yes || echo no)"
    end "$crowd"
    since=$SECONDS
    wait_for 20 is_ready
    expect silence "without them it answers, after $((SECONDS - since)) s" yes "$(is_ready && echo yes || echo no)"
    expect silence "the client lives still" yes "$(kill -0 "$worker" 2>/dev/null && echo yes || echo no)"
    if is_ready; then
        expect silence "the next client: 1 GiB of 2" given "$(probe "${client[@]}" -- --mib 1024)"
        expect silence "the next client: 3 GiB of 2" refused "$(probe "${client[@]}" -- --mib 3072)"
    fi
    { grep 'MPS daemon\|error' "$work/mps.log" && tail -n 6 "$work/mps/$uuid/log/control.log"; } 2>/dev/null |
        sed 's/^/      /'
}

# ---- in order ----

list() {
    printf '      %s\n' "${checks[@]}"
}

has_card() {
    [[ $nvml_library != libnvidia-ml.so.1 || -e /proc/driver/nvidia/version ]]
}

# What the driver's library says, for all that follow.
look_at_source() {
    if ! "$bin/gpu_source" "$nvml_library" >"$work/source" 2>"$work/source.err"; then
        echo "gpu.sh: $(cat "$work/source.err")"
        return 1
    fi
    uuid=$(sed -nE 's/^gpu .* uuid=([^ ]+) .*/\1/p' "$work/source" | head -n 1)
    [[ -n $uuid ]] || echo "gpu.sh: the driver has no GPU to share: $(grep '^refused' "$work/source")"
    [[ -n $uuid ]]
}

main() {
    local check
    while (($#)); do
        case $1 in
        --pack) pack && exit 0 ;;
        --list) list && exit 0 ;;
        --silent) silent_s=$2 checks=(silence) && shift ;;
        --nvml-library) nvml_library=$2 && shift ;;
        --cuda-library) cuda_library=$2 && shift ;;
        --driver-root) driver_root=$2 && shift ;;
        --sysfs) sysfs=$2 && shift ;;
        --bin) bin=$2 && shift ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    if ! has_card; then
        echo "gpu.sh: there is no NVIDIA driver here. With one it would look at:"
        list
        exit 77
    fi
    [[ -n $bin || -x $packed/bin/gpu_source ]] || (pack) || exit 1
    bin=${bin:-$packed/bin}
    work=$(mktemp -d /tmp/gpu.XXXXXX)
    trap clean_up EXIT
    mkfifo "$work/hold"
    exec 9<>"$work/hold"
    head -n 1 /proc/driver/nvidia/version 2>/dev/null
    uname -srm
    look_at_source || exit 77
    for check in "${checks[@]}"; do
        "check_${check%% *}"
    done
    ((failed)) && echo "gpu.sh: FAILED" || echo "gpu.sh: all as expected"
    exit "$failed"
}

main "$@"
