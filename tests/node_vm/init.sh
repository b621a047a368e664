#!/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the initramfs for Debian's kernel, whose disk and network drivers are modules: loads them, sets
# the node's address, and hands over to the node's systemd.
/busybox mkdir -p /proc /new
/busybox mount -t devtmpfs dev /dev
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk \
    failover net_failover virtio_net; do
    /busybox insmod "/$module.ko"
done
/busybox ip link set eth0 up
/busybox ip addr add 172.30.0.2/24 dev eth0
/busybox ip route add default via 172.30.0.1
until [ -b /dev/vda ]; do
    /busybox sleep 1
done
/busybox mount -t ext4 /dev/vda /new
/busybox mount -t devtmpfs dev /new/dev
exec /busybox switch_root /new /sbin/init
