#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpushare-mps as the chart installs it, on a node with the label: a new template changes nothing under its
clients (OnDelete); who deletes its pod there has the new one. The plugin's own rollout touches no daemon.
NVIDIA's daemon is a mock. 86 s: with .ci/run --long, on the oldest release."""

import json
import os
import re
import shutil

from chart import Helm
from harness import seclusion
from harness.case import check, run
from harness.control_plane import ROOT, may_have_helm
from harness.deployed import DeployedCluster
from harness.install import PLUGIN, SYSTEM, DeployedPlugin, SecondScheduler
from harness.node import NODE, real_pod
from harness.processes import wait_for

KUBE = "<1.21"
STAND_IN = os.path.join(ROOT, "tests/support/mps/nvidia-cuda-mps-control")
DAEMONSET = "daemonset/gpushare-mps"
STARTED = "/run/gpushare/mps/GPU-fake-0/log/started"
FAKE = {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--fake-gpus=1x16GiB"}


def prepare_host():
    """The driver's root is this machine's, with the mock; what is mounted there is seen in pods."""
    seclusion.must("mount", "--make-rshared", "/")
    seclusion.must("mount", "-t", "tmpfs", "tmpfs", "/opt")
    os.mkdir("/opt/bin")
    shutil.copy(STAND_IN, "/opt/bin")


def install(cluster, helm):
    layout = SecondScheduler(cluster)
    with open(os.path.join(ROOT, "manifests/overlays", layout.overlay, "kustomization.yaml"),
              encoding="utf-8") as text:
        scheduler = re.search(r"newTag: (\S+)", text.read())[1]
    cluster.scheduler.start(None)
    cluster.kubectl("label", "node", NODE, "aliyun.com/gpu-mps=true")
    helm.must("install", os.path.join(ROOT, "manifests/chart"), "--create-namespace", "--wait", "--timeout=120s", "--set",
              f"kubeScheduler.tag={scheduler},mps.enabled=true,mps.byLabel=true,"
              "devicePlugin.extraArgs={--fake-gpus=1x16GiB}")
    cluster.plugin = DeployedPlugin(cluster)
    cluster.start_plugin()


def mps_pod(cluster):
    pods = [pod for pod in cluster.api.pods(labelSelector="app.kubernetes.io/name=gpushare-mps")
            if not pod["metadata"].get("deletionTimestamp")]
    return pods[0] if len(pods) == 1 and pods[0]["status"].get("phase") == "Running" else None


def change_template(cluster, *operations):
    """The controller has seen it."""
    cluster.kubectl("-n", SYSTEM, "patch", DAEMONSET, "--type=json", "-p", json.dumps(operations))

    def seen():
        made = cluster.api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets/gpushare-mps")
        return made["status"].get("observedGeneration") == made["metadata"]["generation"] and \
            made["status"].get("updatedNumberScheduled", 0) == 0
    wait_for("the controller knows the new template", seen)


def replace(cluster):
    """As an operator does on a node without clients."""
    old = mps_pod(cluster)["metadata"]
    cluster.kubectl("-n", SYSTEM, "delete", "pod", old["name"])
    wait_for("another pod of gpushare-mps runs",
             lambda: (mps_pod(cluster) or {"metadata": old})["metadata"]["uid"] != old["uid"], 60)


def starts():
    with open(STARTED, encoding="ascii") as lines:
        return len(lines.readlines())


def body():
    if not may_have_helm():
        return
    with DeployedCluster() as cluster:
        prepare_host()
        install(cluster, Helm(cluster))
        wait_for("gpushare-mps runs", lambda: mps_pod(cluster), 60)
        change_template(cluster, FAKE)
        replace(cluster)
        wait_for("the daemon has started", lambda: os.path.exists(STARTED), 60)
        cluster.create_pods([real_pod("client", 8, schedulerName="gpushare-scheduler")])
        cluster.wait_true_record("client", timeout_s=60)
        seen = cluster.environment("client")["c0"]
        check(seen.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") == "0=8192M", f"the client's limit: {seen}")
        before = (mps_pod(cluster)["metadata"]["uid"], starts(),
                  cluster.running("client")["status"]["containerStatuses"][0]["containerID"])
        change_template(cluster, {"op": "add", "path": "/spec/template/metadata/annotations",
                                  "value": {"changed": "yes"}})
        cluster.kubectl("-n", SYSTEM, "rollout", "restart", PLUGIN)
        cluster.kubectl("-n", SYSTEM, "rollout", "status", PLUGIN, "--timeout=120s")
        after = (mps_pod(cluster)["metadata"]["uid"], starts(),
                 cluster.running("client")["status"]["containerStatuses"][0]["containerID"])
        check(after == before, f"not left alone: {before}, then {after}")
        cluster.delete_pod("client")
        replace(cluster)
        check(mps_pod(cluster)["metadata"].get("annotations", {}).get("changed") == "yes", "the old template")
        wait_for("its daemon has started anew", lambda: starts() == before[1] + 1, 60)


if __name__ == "__main__":
    run(body)
