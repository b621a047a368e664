#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the virtual node's disk, once, into a cache outside the checkout, and prints the folder that it
# is in: Debian 13 with systemd, runc, crun, CNI plug-ins, an ssh server and the containerd of the
# end-to-end tests. What differs from run to run comes on a second disk (machine.py), as /payload.
#
# As root: the files of a root file system belong to many users. The result appears with one rename.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/debian.sh
. "$root/scripts/lib/debian.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare
key=$(cat "$here/disk.sh" "$here"/units/* | sha256sum | cut -c1-12)
result=$cache/node-$key
packages=systemd-sysv,dbus,openssh-server,runc,crun,containernetworking-plugins,nftables,iproute2,kmod,mount,python3
work=""

# Nothing of it is needed to run programs.
unwanted=(/usr/share/{doc,man,locale}/\*)

fetch_debian() {
    local path
    local -a options=()
    for path in "${unwanted[@]}"; do
        options+=("--dpkgopt=path-exclude=$path")
    done
    echo "fetching Debian 13 with systemd, runc and crun" >&2
    nice mmdebstrap --quiet --variant=minbase --include="$packages" "${options[@]}" trixie "$work/root" \
        "$(debian_mirror)" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2 && return 1; }
}

add_programs() {
    local containerd debian
    containerd=$("$root/tests/e2e/containerd_build.sh")
    debian=$("$root/tests/e2e/node_fetch.sh")
    install -t "$work/root/usr/local/bin" "$containerd"/* "$debian/usr/bin/ctr"
    install -m 644 -t "$work/root/etc/systemd/system" "$here"/units/*.service
    install -D -m 644 "$here/units/containerd.toml" "$work/root/etc/containerd/config.toml"
    install -d "$work"/root/{opt/cni,payload,lib/modules}
    ln -s /usr/lib/cni "$work/root/opt/cni/bin"
}

# Nothing that a clock starts, no login but ours, nothing that is kept of the log.
configure() {
    local unit
    echo real >"$work/root/etc/hostname"
    tr -d - </proc/sys/kernel/random/uuid >"$work/root/etc/machine-id"
    echo "127.0.0.1 localhost real" >"$work/root/etc/hosts"
    ssh-keygen -q -t ed25519 -N "" -f "$work/key"
    install -D -m 600 "$work/key.pub" "$work/root/root/.ssh/authorized_keys"
    for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
        e2scrub_reap.service fstrim.timer systemd-networkd.service systemd-pstore.service; do
        ln -sf /dev/null "$work/root/etc/systemd/system/$unit"
    done
    chroot "$work/root" systemctl --quiet enable payload containerd ssh
    mkdir -p "$work/root/etc/systemd/journald.conf.d"
    printf '[Journal]\nStorage=volatile\n' >"$work/root/etc/systemd/journald.conf.d/volatile.conf"
}

build() {
    mkdir -p "$cache"
    exec 9>"$cache/.node.lock"
    flock 9
    [[ ! -e $result/disk ]] || return 0
    work=$cache/.node.work
    trap 'rm -rf "$work"' EXIT
    rm -rf "$work"
    mkdir "$work"
    fetch_debian
    add_programs
    configure
    truncate -s 6G "$work/disk"
    mke2fs -q -t ext4 -E lazy_itable_init=1,nodiscard -d "$work/root" "$work/disk"
    rm -rf "$work/root" "$work/log"
    mv "$work" "$result"
}

[[ ${1:-} != --cached ]] || {
    [[ -e $result/disk ]] && echo "$result"
    exit
}
[[ -e $result/disk ]] || {
    ((EUID == 0)) || { echo "the virtual node's disk is made as root" >&2 && exit 1; }
    apt_need mmdebstrap e2fsprogs openssh-client
    (build) >&2
}
echo "$result"
