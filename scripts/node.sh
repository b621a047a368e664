#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A cluster whose one node is a virtual machine as production nodes are (systemd, cgroup v2, containerd,
# runc, a recent kubelet) on a kernel with dmem, whose only GPUs are those of the stand-in driver: this
# project is installed with kubectl, pods ask for gpu-mem, and the kernel keeps them to their share.
# Needs root, because it makes a root file system and a network namespace, and no KVM. Installs and builds
# what is missing; nothing of it stays on the machine but the cache.
set -euo pipefail
exec </dev/null

export GPUSHARE_INVARIANTS=fatal KUBE_VERSION=${KUBE_VERSION:-newest} # base/invariant.h
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
e2e=$root/tests/e2e
node=$root/tests/node_vm
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/stock_kernel.sh
. "$root/scripts/lib/stock_kernel.sh"
# shellcheck source=tests/e2e/kube_env.sh
. "$e2e/kube_env.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare
source=$root
work=""
kernel=""
stock=0
fresh=0
late=0
kind=()

usage() {
    cat <<'EOT'
Usage: scripts/node.sh [--stock | [--driver] [--cgroupfs] [--crun]] [--fresh] [--only CASE]... [--ten] [--late] [--record] [--keep]
       scripts/node.sh --list | --cached

  --stock       on Debian's own kernel, which has no dmem: such a node without limits. Compiles no kernel
  --driver      the driver's own call limits pods, and writes the kernel's files as r615's does
  --cgroupfs    the kubelet's cgroup driver is cgroupfs, not systemd
  --crun        containers are started by crun, not by runc
  --fresh       boots and registers anew: neither makes nor uses a snapshot of a node that is ready
  --only CASE   only this one; may be repeated
  --ten         the ten that are for every cgroup driver and container runtime
  --late        with a plugin that limits in PreStartContainer only: the case first_container has to fail
  --record      writes into tests/node_vm/seen.txt what passed, with seconds, date and commit
  --keep        keep the logs; those of a run that failed are always kept
  --list        name the cases
  --cached      exits 0 when such a node is saved; otherwise says so

  KUBE_VERSION  newest (the default), 1.NN or 1.NN.P, from 1.31 on
  KERNEL_ACCEL  tcg,thread=multi (the default) or kvm
EOT
}

# With what process 1 of the initramfs needs to find the disk and the network.
prepare_stock() {
    local name
    local -a files=("$node/init.sh:init" "$NODE_DIR/bin/busybox:busybox")
    apt_need kmod
    kernel=$work/kernel
    stock_kernel "$kernel"
    depmod -b "$kernel" "$(ls "$kernel/lib/modules")"
    mv "$kernel/lib/modules" "$kernel/modules"
    for name in virtio{,_ring,_pci,_pci_legacy_dev,_pci_modern_dev,_blk,_net} {net_,}failover; do
        files+=("$(find "$kernel/modules" -name "$name.ko"):$name.ko")
    done
    python3 "$root/tests/kernel/initramfs.py" "$kernel/initrd" "${files[@]}"
}

# The source with one mistake in it.
mistaken_source() {
    local file
    file=$(sed -n '1s/^# \([^:]*\):.*/\1/p' "$node/late_limit.sed")
    source=$work/source
    mkdir "$source"
    export GPUSHARE_BUILD_DIR=$source/build
    git -C "$root" ls-files -z | tar -C "$root" --null -T - -c | tar -C "$source" -x
    sed -i -f "$node/late_limit.sed" "$source/$file"
    ! cmp -s "$root/$file" "$source/$file" || { echo "the mistake cannot be made in $file" && return 1; }
}

prepare() {
    apt_need qemu-system-x86 qemu-utils python3 openssl openssh-client util-linux iproute2 ca-certificates
    ((!late)) || mistaken_source
    build_project "$source" release gpushare-extender gpushare-device-plugin gpushare-mps \
        kubectl-inspect-gpushare fake_nvml
    KUBE_PROXY=$(env -u KUBE_BIN_DIR KUBE_VERSION=newest "$e2e/kube_build.sh")/kube-proxy # older ones want IPv6
    KUBE_BIN_DIR=$("$e2e/kube_build.sh")
    ETCD=$("$e2e/etcd_fetch.sh")
    NODE_DIR=$("$e2e/node_fetch.sh")
    disk=$("$node/disk.sh")
    if ((stock)); then
        prepare_stock
    else
        kernel=$("$root/tests/kernel/kernel_build.sh")
    fi
    export GPUSHARE_IMAGES=$work/images GPUSHARE_RUN_DIR=/mnt KUBE_BIN_DIR KUBE_PROXY ETCD NODE_DIR \
        PYTHONPATH=$e2e:$node PYTHONDONTWRITEBYTECODE=1
    unset KUBECONFIG http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
    mkdir "$work/run"
    "$source/scripts/image.sh" --out "$GPUSHARE_IMAGES" >&2
}

# Where a node of this kernel and this disk is saved, ready, with nothing of ours on it.
snapshot() {
    local key
    key=$(cd "$root" && {
        basename "$kernel" "$disk" && qemu-system-x86_64 --version
        find tests/node_vm/{cluster,machine}.py tests/e2e/harness -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum
    } | sha256sum | cut -c1-12)
    echo "$cache/node-cluster-$KUBE_VERSION${kind[*]/--/-}.$key"
}

# The last one of its kind makes room.
make_room() {
    find "$cache" -maxdepth 1 -name "$(basename "${1%.*}").*" -not -path "$1" -exec rm -rf {} +
    find "$1" -maxdepth 0 -mtime +30 -exec rm -rf {} + 2>/dev/null || true
}

is_cached() {
    kernel=$("$root/tests/kernel/kernel_build.sh" --cached) && disk=$("$node/disk.sh" --cached) && [[ -d $(snapshot 2>/dev/null) ]]
}

# With a "+" where a file differs from it, the record itself apart.
commit() {
    printf '%s' "$(git -C "$root" rev-parse --short=8 HEAD)"
    git -C "$root" diff --quiet HEAD -- . ':!tests/node_vm/seen.txt' || printf +
}

main() {
    local keep=0 failed=0 made
    local -a words=()
    while (($#)); do
        case $1 in
        --only) words+=("$1" "$2") && shift ;;
        --stock) stock=1 ;;
        --cgroupfs | --crun) kind+=("$1") ;;
        --record) words+=("$1" "$(commit)") ;;
        --fresh) fresh=1 ;;
        --late) late=1 ;;
        --ten | --driver) words+=("$1") ;;
        --keep) keep=1 ;;
        --cached)
            is_cached && exit 0
            echo "no virtual node is saved that is as now; scripts/node.sh makes one"
            exit 1
            ;;
        --list) exec env PYTHONPATH="$e2e:$node" python3 "$node/cases.py" ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    ((EUID == 0)) || { echo "node.sh needs root" >&2 && exit 1; }
    work=$(mktemp -d "${TMPDIR:-/tmp}/gpushare-node.XXXXXX")
    prepare
    echo "prepared in $SECONDS s; kernel: $kernel; disk: $disk; Kubernetes $KUBE_VERSION"
    if ((!stock && !fresh)); then
        made=$(snapshot)
        make_room "$made"
        words+=(--snapshot "$made")
    fi
    # A snapshot has paths in it: those of a folder that is always called the same.
    # shellcheck disable=SC2016
    unshare --net --mount --pid --fork --kill-child --mount-proc \
        sh -c 'mount --bind "$0" "$GPUSHARE_RUN_DIR" && exec python3 "$@"' "$work/run" \
        "$node/run.py" "$kernel" "$disk" "${kind[@]}" "${words[@]}" || failed=1
    if ((keep || failed)); then echo "logs: $work/run"; else rm -rf "$work"; fi
    ((failed == 0)) || { echo "node.sh: FAILED" && exit 1; }
    echo "node.sh: all passed in $SECONDS s"
}

main "$@"; exit
