#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--device-list-strategy volume-mounts: containers' mounts name their GPUs, no environment does; and
the next plugin finds in the kubelet's checkpoint who has which, whatever the records say. With
--pass-device-specs containers have their GPU's device node and those that all share (20 to 28 s)."""

import json
import os

from harness.api import pod_path
from harness.case import check, run
from harness.node import VISIBLE, NodeCluster, real_pod
from harness.objects import IDX, NAMESPACE, annotation
from harness.processes import wait_for

KUBE = ">=1.20"
ROOT = "/var/run/nvidia-container-devices"
PODS = ("a", "b")
NODES = ("nvidia7", "nvidia5", "nvidiactl", "nvidia-uvm")
LOOK = (f"for at in {ROOT}/*; do [ -c $at ] && echo MOUNT=$at; done; "
        "for at in /dev/nvidia*; do [ -c $at ] && [ -w $at ] && nodes=$nodes,$at; done; "
        "echo NODES=$nodes; env; exec sleep 1000000")


def make_gpus(folder):
    """The flags for two GPUs whose device nodes lie below a root of their own, as a driver's
    container has them: each is another name of one that every machine has."""
    dev = os.path.join(folder, "driver/dev")
    os.makedirs(dev)
    for name in NODES:
        os.symlink("/dev/null", os.path.join(dev, name))
    path = os.path.join(folder, "gpus.json")
    with open(path, "w", encoding="ascii") as out:
        json.dump({"v": 1, "unit": "GiB", "gpus": [
            {"idx": idx, "uuid": f"GPU-{idx}", "mem": 16, "memMiB": 16384, "minor": minor}
            for idx, minor in ((0, 7), (1, 5))]}, out)
    return ("--gpu-file", path, "--pass-device-specs", "--nvidia-dev-root",
            os.path.dirname(dev), "--device-list-strategy", "volume-mounts")


def place(cluster, name):
    return wait_for(f"{name} has a record", lambda: annotation(cluster.pod(name), IDX))


def check_container(cluster, name):
    uuid = cluster.uuids()[int(place(cluster, name))]
    seen = cluster.environment(name)["c0"]
    own = f"/dev/nvidia{(7, 5)[int(place(cluster, name))]}"
    expected = {"NODES": ",".join(("", "/dev/nvidia-uvm", own, "/dev/nvidiactl")), VISIBLE: ROOT, "MOUNT": f"{ROOT}/{uuid}", "ALIYUN_COM_GPU_MEM_GPUS": uuid}
    for key, value in expected.items():
        check(seen.get(key) == value, f"{name}: {key} is {seen.get(key)}, not {value}")


def body():
    flags = make_gpus(os.environ["GPUSHARE_RUN_DIR"])
    with NodeCluster(plugin_flags=flags) as cluster:
        cluster.create_pods([real_pod(name, 16, script=LOOK) for name in PODS])
        for name in PODS:
            cluster.running(name)
            check_container(cluster, name)
        places = {name: place(cluster, name) for name in PODS}
        check(sorted(places.values()) == ["0", "1"], f"they are on {places}")
        cluster.plugin.kill()
        for name, other in zip(PODS, reversed(PODS)):
            cluster.api.patch(pod_path(NAMESPACE, name),
                              {"metadata": {"annotations": {IDX: places[other]}}})
        cluster.start_plugin()
        wait_for("the records are true again",
                 lambda: {name: place(cluster, name) for name in PODS} == places)
        cluster.wait_inspect_agrees()


run(body)
