# SPDX-License-Identifier: Apache-2.0
"""Namespaces of a cluster's own, in which pods can reach the API server: an address that is not
loopback, the kubelet's folders in their usual places, a cgroup, and nothing of it on the machine
itself. scripts/e2e.sh --as-deployed starts its cases inside (unshare); they vanish with the case."""

import contextlib
import glob
import os
import subprocess

from harness.processes import Failure

ADDRESS = "172.30.0.1"  # the node's, and the API server's
GATEWAY = "172.30.0.2"  # nobody (the node, where that is a virtual machine): nothing leaves
# The node's folders, as the shipped manifests name them.
KUBELET_DIR = "/var/lib/kubelet"
PRIVATE = (KUBELET_DIR, "/var/log/pods", "/var/log/containers", "/var/lib/cni", "/run")


def must(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")


VETH = ("link", "add", "node0", "type", "veth", "peer", "name", "outside")


def network(device=VETH):
    """The node's address is on the device node0. VETH: nobody uses the pair's other end."""
    if sorted(os.listdir("/proc/sys/net/ipv4/conf")) != ["all", "default", "lo"]:
        raise Failure("this is no network namespace of its own: start the case by "
                      "scripts/e2e.sh --as-deployed")
    for words in (("link", "set", "lo", "up"), device,
                  ("addr", "add", f"{ADDRESS}/24", "dev", "node0"),
                  ("link", "set", "node0", "up"),
                  *((("link", "set", "outside", "up"),) if device is VETH else ()),
                  ("route", "add", "default", "via", GATEWAY, "dev", "node0")):
        must("ip", *words)
    # Ports of ours that lie where the kernel takes those of outgoing connections from.
    with open("/proc/sys/net/ipv4/ip_local_reserved_ports", "w", encoding="ascii") as out:
        out.write("29997-29999")


def own_folder(run_dir, path):
    return os.path.join(run_dir, "private", path.lstrip("/").replace("/", "-"))


def folders(run_dir, paths=PRIVATE):
    """The fixed folders of a node become folders of the case."""
    for path in paths:
        own = own_folder(run_dir, path)
        os.makedirs(own)
        os.makedirs(path, exist_ok=True)
        must("mount", "--bind", own, path)


def enter(run_dir):
    network()
    folders(run_dir)


class Cgroup:
    """A cgroup for the kubelet's pods, in every hierarchy: two kubelets with one root would each
    end the other's pods."""

    def __init__(self, run_dir):
        self.name = "/" + "-".join(run_dir.rstrip("/").split("/")[-2:])
        unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.hierarchies = ["/sys/fs/cgroup"] if unified else [
            path for path in glob.glob("/sys/fs/cgroup/*")
            if os.path.isdir(path) and not os.path.islink(path)]

    def make(self):
        for hierarchy in self.hierarchies:
            path = hierarchy + self.name
            os.makedirs(path, exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):  # v1 leaves them empty, and so unusable
                if hierarchy.endswith("/cpuset"):
                    with open(os.path.join(hierarchy, name), encoding="ascii") as given, \
                            open(os.path.join(path, name), "w", encoding="ascii") as out:
                        out.write(given.read())

    def remove(self):
        """The innermost first. What still has a dying process stays until scripts/e2e.sh, outside,
        has seen the last one end."""
        for hierarchy in self.hierarchies:
            for folder, _, _ in os.walk(hierarchy + self.name, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
