# SPDX-License-Identifier: Apache-2.0
"""The mock for the driver's library on the node: tests/support/fake_nvml.c."""

from harness.control_plane import built_program


class Driver:
    """Four cards; the processes that it lists are of the first. limits: what it says of limits."""

    def __init__(self, cluster, *limits):
        self.cluster, self.limits = cluster, limits
        cluster.machine.send(built_program("tests/libfake_nvml.so"), "mkdir -p /etc/cards; cat >/etc/cards/libnvidia-ml.so")
        self.show()

    def show(self, *processes):
        """(PID, MiB, list)"""
        lines = [f"process {where} {pid} {mib << 20} -1" for pid, mib, where in processes]
        cards = [f"gpu GPU-{idx} 16384 0 0000{pci}" for idx, pci in enumerate(self.cluster.pci)]
        self.cluster.put("/etc/cards/new", "\n".join([cards[0], *lines, *cards[1:], *self.limits]) + "\n")
        self.cluster.machine.do("mv /etc/cards/new /etc/cards/driver")
