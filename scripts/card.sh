#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A whole cluster on one machine with a card, without a virtual machine and without a network: etcd,
# kube-apiserver, kube-scheduler with the extender, kubelet, containerd, runc and the device plugin with the
# real driver, and pods whose CUDA programs get what the ledger says. No setting of the card is changed.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
limit_s=360
part_mib=48
ours=(gpushare-extender gpushare-device-plugin gpushare-mps kubectl-inspect-gpushare tests/gpu/cuda_probe
    tests/gpu/gpu_source)
simulated=(tests/libfake_nvml.so tests/gpu/libfake_cuda.so)

usage() {
    cat <<'EOT'
Usage: scripts/card.sh --pack [DIR]      builds all programs and lays them into DIR (build/card): parts of at
                                         most 48 MiB, a busybox, and this script
       DIR/card.sh --unpack DIR          joins the parts beside this script in an empty folder
       DIR/scripts/card.sh [--out DIR]   there: what the machine has, then the cases, six minutes at most;
                                         DIR/seen.txt gets a line for each that passed
       scripts/card.sh --rehearse        all of that on this machine, with a simulated driver

Running needs root, a Linux of x86-64 with cgroup v2 (or v1) and the NVIDIA driver; of other programs a bash,
coreutils and util-linux (mount, umount, unshare). 77: there is no driver.
EOT
}

# ---- here ----

# The interpreter of the cases, with its library but for what they cannot need.
pack_python() {
    local module
    cp /usr/bin/python3.11 "$1/card-python"
    carry "$1/card-python" "$1"
    rm "$1/card-python"
    tar -C /usr/lib --exclude=__pycache__ --exclude='config-3*' --exclude=test --exclude=idlelib \
        --exclude=ensurepip --exclude=lib2to3 --exclude=pydoc_data -c python3.11 | tar -C "$1/lib" -x
    for module in "$1"/lib/python3.11/lib-dynload/*.so; do
        carry_libraries "$module" "$1"
    done
}

gather() {
    local tree=$1 kube containerd node runc program
    kube=$("$root/tests/e2e/kube_build.sh")
    containerd=$("$root/tests/e2e/containerd_build.sh")
    runc=$("$root/tests/e2e/runc_build.sh")
    node=$("$root/tests/e2e/node_fetch.sh")
    mkdir -p "$tree"/{bin,usr,tests/e2e,tests/support}
    cp "$kube"/{kube-apiserver,kube-scheduler,kubelet,kubectl} "$containerd"/* "$runc/runc" "$node/bin/busybox" \
        "$tree/bin"
    for program in "$("$root/tests/e2e/etcd_fetch.sh")" "$node/usr/bin/ctr" /usr/bin/{openssl,setpriv} \
        "${ours[@]/#/$root/build/}"; do
        carry "$program" "$tree"
    done
    cp "${simulated[@]/#/$root/build/}" "$tree/bin"
    pack_python "$tree"
    find "$tree/lib" -type f -exec strip --strip-unneeded {} + 2>/dev/null || true
    ln -s ../bin "$tree/usr/bin" # where the harness looks for what Debian has there
    cp -r "$root/tests/e2e/harness" "$tree/tests/e2e"
    cp -r "$root/tests/support/mps" "$tree/tests/support"
    cp -r "$root/tests/card" "$tree/tests"
    cp -r "$root"/{config,manifests} "$tree"
    install -D "$root/scripts/card.sh" "$tree/scripts/card.sh"
    printf '%s\n' "KUBE_VERSION=$KUBE_VERSION" \
        "COMMIT=$(git -C "$root" describe --always --dirty=+ --exclude='*')" >"$tree/packed"
    find "$tree" -name __pycache__ -exec rm -r {} +
}

pack() {
    local to=$1 library
    for library in apt build carry; do
        # shellcheck source=/dev/null
        . "$root/scripts/lib/$library.sh"
    done
    export KUBE_VERSION=newest
    # shellcheck source=tests/e2e/kube_env.sh
    . "$root/tests/e2e/kube_env.sh"
    apt_need python3 openssl util-linux xz-utils binutils git
    build_project "$root" release "${ours[@]##*/}" fake_nvml fake_cuda
    rm -rf "$to"
    gather "$to/tree"
    cp "$root/scripts/card.sh" "$to/tree/bin/busybox" "$to"
    tar -C "$to/tree" --sort=name --owner=0 --group=0 -c . | xz -6 -T2 --check=crc32 |
        split -b "${part_mib}M" -d - "$to/part."
    rm -rf "$to/tree"
    (cd "$to" && sha256sum part.* >parts.sha256 && du -b ./*)
}

# ---- there ----

unpack() {
    local from to=$1
    from=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    mkdir -p "$to"
    [[ -z $(ls -A "$to") ]] || { echo "card.sh: $to is not empty" >&2 && exit 2; }
    (cd "$from" && sha256sum --quiet -c parts.sha256)
    chmod +x "$from/busybox"
    cat "$from"/part.* | "$from/busybox" xz -dc | "$from/busybox" tar -C "$to" -xf -
}

# In namespaces of our own: mounts and, where there are such, a network. What is left of the cgroups goes.
run_cases() {
    local out run status=0 tries=0
    local -a own=(unshare --mount --propagation private)
    ((EUID == 0)) || { echo "card.sh: run this as root" >&2 && exit 1; }
    # shellcheck source=/dev/null
    . "$root/packed"
    ! unshare --net true 2>/dev/null || own+=(--net)
    mkdir -p "$1"
    out=$(cd "$1" && pwd)
    run=$(mktemp -d /tmp/card.XXXXXX)
    mkdir "$root/applets" 2>/dev/null && "$root/bin/busybox" --install -s "$root/applets"
    export PATH=$root/bin:$PATH:$root/applets PYTHONHOME=$root PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
    export PYTHONPATH=$root/tests/e2e KUBE_VERSION KUBE_BIN_DIR=$root/bin ETCD=$root/bin/etcd NODE_DIR=$root
    export GPUSHARE_BUILD_DIR=$root/bin GPUSHARE_RUN_DIR=$run OPENSSL_CONF=/dev/null GPUSHARE_INVARIANTS=fatal HOME=$run
    unset KUBECONFIG http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
    timeout -k 20 "$limit_s" "${own[@]}" "$root/bin/card-python" "$root/tests/card/run.py" "$out" "$COMMIT" \
        "${@:2}" 2>&1 | tee "$out/log" || status=$?
    until find /sys/fs/cgroup -depth -type d -path "*/tmp-${run##*/}*" -exec rmdir {} + 2>/dev/null || ((tries++ > 5)); do
        sleep 1 # a process of it is just ending
    done
    (cd "$run" && "$root/bin/busybox" tar -czf "$out/logs.tar.gz" ./*.log) || true
    rm -rf "$run"
    return "$status"
}

# On this machine, beginning with nothing but what was packed.
rehearse() {
    local there status=0
    there=$(mktemp -d /tmp/card-there.XXXXXX)
    rm -rf "$root/build/card-out"
    pack "$root/build/card"
    bash "$root/build/card/card.sh" --unpack "$there"
    echo "packed and unpacked after $SECONDS s"
    "$there/scripts/card.sh" --out "$root/build/card-out" --simulated || status=$?
    rm -rf "$there"
    echo "rehearsed in $SECONDS s"
    return "$status"
}

main() {
    local out=/tmp/card-out
    local -a more=()
    while (($#)); do
        case $1 in
        --pack) pack "${2:-$root/build/card}"; exit ;;
        --unpack) unpack "${2:?}"; exit ;;
        --rehearse) rehearse; exit ;;
        --simulated) more=(--rehearse) ;;
        --out) out=${2:?} && shift ;;
        --help | -h) usage; exit ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    [[ -x $root/bin/kubelet ]] || { echo "card.sh: here is nothing unpacked" >&2 && usage >&2 && exit 2; }
    if ((!${#more[@]})) && [[ ! -e /proc/driver/nvidia/version ]]; then
        echo "card.sh: there is no NVIDIA driver here"
        exit 77
    fi
    run_cases "$out" "${more[@]}"
}

main "$@"
