#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The quick start of docs/install.md, and of docs/operate.md what concerns a node, followed
literally: drain it, close a GPU, let go of the driver, each time back again; then docs/limits.md's
way to what pods use (some 20 s); nothing of it is left at the end."""

import json

from harness.case import check, run
from harness.containers import IMAGE
from harness.deployed import DeployedCluster
from harness.documents import Operator, commands
from harness.install import SecondScheduler
from harness.node import NODE, real_pod
from harness.processes import wait_for

PAGE, LIMITS = "docs/operate.md", "docs/limits.md"
# of the blocks of that section: images are made before, by the harness
_, INSTALL, USE, REMOVE = commands("docs/install.md", "Quick start, without a GPU")
AT_NODE = [("NODE", NODE)]
CLIENT = "nvidia.com/gpu.deploy.client"
INVENTORY = "aliyun.com/gpu-inventory"
LONG = True


def inventory(cluster):
    return json.loads(cluster.node_object()["metadata"]["annotations"][INVENTORY])["gpus"]


def used(operator):
    """Of all GPUs together, as the CLI shows it."""
    shown = json.loads(operator.run("kubectl inspect gpushare -o json"))
    return sum(node["usedGPU"] for node in shown["nodes"])


def wait_used(operator, units):
    wait_for(f"{units} units are charged", lambda: used(operator) == units, 90)


def quick_start(cluster, operator, layout):
    overlay = [("overlays/second-scheduler", f"overlays/{layout.overlay}")]
    cluster.kubectl("label", "node", NODE, "gpushare-")  # the reader has yet to do that
    cluster.containerd.ctr("images", "tag", IMAGE, "registry.k8s.io/pause:3.9")
    operator.run(INSTALL, overlay)
    cluster.plugin = layout.plugin
    cluster.start_plugin()
    # what scripts/package.sh has for laptops is tests/packages' business
    operator.run("install build/kubectl-inspect-gpushare /usr/local/bin/")
    shown = operator.run(USE)
    for words in ("18/32", "too-large", "no GPU large enough"):
        check(words in shown, f"the quick start does not show '{words}': {shown}")
    print(shown)


def drain(operator):
    there, back = commands(PAGE, "Drain a GPU node")
    shown = operator.run(there, AT_NODE)
    check("share-" in shown, f"who is there: {shown}")
    check(used(operator) == 0, f"{used(operator)} units are charged on the drained node")
    operator.run(back, AT_NODE)
    wait_used(operator, 18)


def emptiest(cluster, operator):
    """The GPU with most free memory: the index is that of the inventory."""
    shown = json.loads(operator.run("kubectl inspect gpushare -o json"))["nodes"][0]["devs"]
    idx = min(shown, key=lambda gpu: gpu["usedGPU"])["id"]
    return [gpu["uuid"] for gpu in inventory(cluster) if gpu["idx"] == int(idx)][0]


def close_gpu(cluster, operator):
    """Pods of 6 lie two on one GPU and one on the other: 8 more fit on that one alone."""
    close, back = commands(PAGE, "Take a GPU out of service, or replace it")
    operator.run(close, [*AT_NODE, ("UUID", emptiest(cluster, operator))])
    cluster.create_pods([real_pod("after", 8, schedulerName="gpushare-scheduler")])
    cluster.wait_refused("after")
    check(used(operator) == 18, "closing a GPU moved who ran on it")
    print(operator.run(back, AT_NODE))
    cluster.wait_true_record("after", 90)
    cluster.kubectl("delete", "pod", "after")


def driver_events(cluster):
    found = cluster.api.items("/api/v1/namespaces/default/events",
                              fieldSelector="involvedObject.kind=Node")
    return [event for event in found if event["reason"] == "GpuDriverReleased"]


def let_go_of_driver(cluster, operator):
    away, back = commands(PAGE, "Upgrade the driver")
    operator.run(away, AT_NODE)
    wait_for("the driver is let go", lambda: driver_events(cluster), 70)
    check(not any(gpu["schedulable"] for gpu in inventory(cluster)), "the GPUs take pods meanwhile")
    operator.run(back, AT_NODE)
    wait_used(operator, 18)


def gpu_operator_pauses(cluster, operator):
    """The label that NVIDIA's GPU Operator changes before it unloads the driver, and back."""
    def plugins():
        return operator.run("kubectl get pods -A -o name -l app.kubernetes.io/name=gpushare-device-plugin").split()

    cluster.kubectl("label", "node", NODE, f"{CLIENT}=paused-for-driver-upgrade")
    wait_for("the plugin's pod has left the node", lambda: not plugins(), 90)
    cluster.kubectl("label", "node", NODE, "--overwrite", f"{CLIENT}=true")
    wait_for("the plugin is back", lambda: plugins() and cluster.plugin.ready(), 90)
    cluster.kubectl("label", "node", NODE, f"{CLIENT}-")
    wait_used(operator, 18)


def sizes(operator):
    """{owner: (pods, GiB asked for, GiB used)} of the command's table; the plugin is read through the
    API server."""
    head, *lines = [line.split() for line in operator.run("kubectl inspect gpushare pods").splitlines()]
    rows = [dict(zip(head, line)) for line in lines if len(line) == len(head)]
    return {row["OWNER"]: (int(row["PODS"]), float(row["REQUEST(GiB)"]), row["USED"]) for row in rows}


def what_pods_use(operator):
    """Pretended GPUs are counted by no kernel: what is given is told, what is used is '-'."""
    operator.run(commands(LIMITS, "What pods use")[0])
    wait_for("the pods' owner is told", lambda: sizes(operator).get("Deployment/share"), 60)
    check(sizes(operator)["Deployment/share"] == (3, 18.0, "-"), f"{sizes(operator)}")
    print(operator.run("kubectl inspect gpushare pods --by pod"))


def body():
    with DeployedCluster() as cluster:
        cluster.scheduler.start(None)
        operator, layout = Operator(cluster), SecondScheduler(cluster)
        quick_start(cluster, operator, layout)
        drain(operator)
        close_gpu(cluster, operator)
        let_go_of_driver(cluster, operator)
        gpu_operator_pauses(cluster, operator)
        what_pods_use(operator)
        cluster.verify_logs()
        cluster.installed = False
        operator.run(REMOVE, [("overlays/second-scheduler", f"overlays/{layout.overlay}")])
        left = [name for name in cluster.node_object()["metadata"]["annotations"] if "gpu" in name]
        check(not left, f"left on the node: {left}")


run(body)
