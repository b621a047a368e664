#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's first pod, by kustomize, and the uninstall section of docs/install.md, followed literally: a
pod runs and is shown in between, nothing is left behind at the end."""

import contextlib
import glob
import json
import os
import re
import time

from harness import release
from harness.api import node_path
from harness.case import check, run
from harness.control_plane import ROOT
from harness.deployed import DeployedCluster
from harness.documents import Operator, commands
from harness.install import SecondScheduler
from harness.node import DEVICE_PLUGINS, IMAGE, NODE, real_pod
from harness.objects import GPU_MEM
from harness.processes import wait_for

KUBE = ">=1.21"  # kubectl reads our overlays
LONG = True

# Made anew all the time, by programs that are not ours.
PASSING = ("events", "events.events.k8s.io", "endpointslices.discovery.k8s.io", "pods",
           "leases.coordination.k8s.io")
GPUS = "2x16GiB"
FIRST = "examples/first-pod.yaml"


@contextlib.contextmanager
def timed(what):
    started = time.monotonic()
    yield
    print(f"note: {what}: {time.monotonic() - started:.1f} s")


def step(operator, what, block, changes=()):
    with timed(what):
        return operator.run(block, changes)


def first_pod(cluster):
    """The example with an image that the node has."""
    with open(os.path.join(ROOT, FIRST), encoding="utf-8") as text:
        edited = re.sub(r"image: .*", f"image: {IMAGE}\n    imagePullPolicy: Never", text.read())
    edited = edited.replace("spec:\n", "spec:\n  hostNetwork: true\n", 1)
    path = os.path.join(cluster.run_dir, "first-pod.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(edited)
    return path


def everything(cluster):
    """Names of all objects of all kinds."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    kinds = ",".join(kind for kind in kinds if kind not in PASSING)
    return set(cluster.kubectl("get", kinds, "-A", "-o", "jsonpath={range .items[*]}{.kind}/"
                               "{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}").split())


def node_traces(cluster):
    """What of the node's object speaks of us, and is not just the kubelet's 0."""
    made = cluster.node_object()
    meta, status = made["metadata"], made["status"]
    named = {**meta["labels"], **meta.get("annotations", {}), **status["capacity"]}
    return sorted(name for name in named if "gpushare" in name or
                  name.startswith("aliyun.com/") and name != GPU_MEM)


def install(cluster, operator, layout):
    images, _, apply, first, look = commands("README.md", "The first pod")
    step(operator, "images", images)
    step(operator, "install", apply, layout.readme_changes())
    layout.pretend_gpus(GPUS)
    with timed("ready"):
        layout.wait_ready()
        cluster.plugin = layout.plugin
        cluster.start_plugin()
    logs = step(operator, "first pod", first, [(FIRST, first_pod(cluster))])
    check("NVIDIA_VISIBLE_DEVICES=GPU-" in logs, f"the first pod says: {logs}")
    cluster.create_pods([real_pod("user", 12, schedulerName="gpushare-scheduler")])
    for name in ("first", "user"):
        cluster.wait_true_record(name)
    shown = step(operator, "look", look)
    check("20 of 32 GiB" in shown, f"kubectl inspect gpushare map shows: {shown}")
    print(shown)


def uninstall(cluster, operator, layout):
    blocks = commands("docs/install.md", "Uninstall")
    check(len(blocks) == 1, f"{len(blocks)} blocks of commands")
    changes = layout.uninstall_changes()
    patch = re.search(r"kubectl patch .* --subresource=status --type=merge -p '(.*)'", blocks[0])
    if release.MINOR < 24:  # "needs kubectl 1.24 or newer": the same without it
        changes.append((patch[0], ":"))
    cluster.verify_logs()
    cluster.installed = False
    operator.run(blocks[0], changes)
    if release.MINOR < 24:
        cluster.api.patch(node_path(NODE, "status"), json.loads(patch[1]))


def body():
    with DeployedCluster(preload=False) as cluster:
        cluster.scheduler.start(None)
        before, traces = everything(cluster), node_traces(cluster)
        check(not traces, f"the node had {traces} before")
        operator, layout = Operator(cluster), SecondScheduler(cluster)
        install(cluster, operator, layout)
        running = cluster.running("user")["status"]["containerStatuses"][0]["containerID"]
        uninstall(cluster, operator, layout)
        left = everything(cluster) - before
        check(not left, f"left behind: {sorted(left)}")
        wait_for("the kubelet offers no GPU memory", lambda: cluster.gpu_memory() == 0)
        check(not node_traces(cluster), f"left on the node: {node_traces(cluster)}")
        files = [os.path.basename(path) for path in glob.glob(f"{DEVICE_PLUGINS}/*gpushare*")]
        check(files == ["gpushare-aliyun.com"],  # the record of the node, as the document says
              f"left in the kubelet's folder: {files}")
        check(cluster.running("user")["status"]["containerStatuses"][0]["containerID"] == running,
              "a user's container was restarted")


run(body)
