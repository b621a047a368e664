#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--device-list-strategy volume-mounts: containers' mounts name their GPUs, no environment does; and
the next plugin finds in the kubelet's checkpoint who has which, whatever the records say (22 to 28 s)."""

from harness.api import pod_path
from harness.case import check, run
from harness.node import VISIBLE, NodeCluster, real_pod
from harness.objects import IDX, NAMESPACE, annotation
from harness.processes import wait_for

KUBE = ">=1.20"
ROOT = "/var/run/nvidia-container-devices"
PODS = ("a", "b")
LOOK = f"for at in {ROOT}/*; do [ -c $at ] && echo MOUNT=$at; done; env; exec sleep 1000000"


def place(cluster, name):
    return wait_for(f"{name} has a record", lambda: annotation(cluster.pod(name), IDX))


def check_container(cluster, name):
    uuid = cluster.uuids()[int(place(cluster, name))]
    seen = cluster.environment(name)["c0"]
    expected = {VISIBLE: ROOT, "MOUNT": f"{ROOT}/{uuid}", "ALIYUN_COM_GPU_MEM_GPUS": uuid}
    for key, value in expected.items():
        check(seen.get(key) == value, f"{name}: {key} is {seen.get(key)}, not {value}")


def body():
    with NodeCluster(gpus="2x16GiB",
                     plugin_flags=("--device-list-strategy", "volume-mounts")) as cluster:
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
