# SPDX-License-Identifier: Apache-2.0
"""Namespaces of a cluster's own, in which pods can reach the API server: an address that is not
loopback, the kubelet's folders in their usual places, and nothing of it on the machine itself.
scripts/e2e.sh --as-deployed starts its cases inside (unshare); they vanish with the case."""

import os
import subprocess

from harness.processes import Failure

ADDRESS = "172.30.0.1"  # the node's, and the API server's
GATEWAY = "172.30.0.2"  # nobody: programs look for a default route, and nothing leaves
# The node's folders, as the shipped manifests name them.
KUBELET_DIR = "/var/lib/kubelet"
PRIVATE = (KUBELET_DIR, "/var/log/pods", "/var/log/containers", "/var/lib/cni", "/run")


def must(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")


def network():
    """One pair of veth ends: the node's address is on the first, nobody uses the second."""
    if sorted(os.listdir("/proc/sys/net/ipv4/conf")) != ["all", "default", "lo"]:
        raise Failure("this is no network namespace of its own: start the case by "
                      "scripts/e2e.sh --as-deployed")
    for words in (("link", "set", "lo", "up"),
                  ("link", "add", "node0", "type", "veth", "peer", "name", "outside"),
                  ("addr", "add", f"{ADDRESS}/24", "dev", "node0"),
                  ("link", "set", "node0", "up"), ("link", "set", "outside", "up"),
                  ("route", "add", "default", "via", GATEWAY, "dev", "node0")):
        must("ip", *words)


def own_folder(run_dir, path):
    return os.path.join(run_dir, "private", path.lstrip("/").replace("/", "-"))


def folders(run_dir):
    """The fixed folders of a node become folders of the case."""
    for path in PRIVATE:
        own = own_folder(run_dir, path)
        os.makedirs(own)
        os.makedirs(path, exist_ok=True)
        must("mount", "--bind", own, path)


def enter(run_dir):
    network()
    folders(run_dir)
