#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pod Security: every workload that is shipped is as restricted as docs/security.md says."""

import json

from harness.api import ApiError
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import ControlPlane

KUBE = ">=1.25"

LEVELS = ("restricted", "baseline", "privileged")
# overlay or base, workload, the strictest level that takes it, what stricter levels say against it
WORKLOADS = (
    ("overlays/ha-mtls", "gpushare-extender", "restricted", ()),
    ("overlays/original-nodeport", "gpushare-extender", "restricted", ()),
    ("overlays/second-scheduler", "gpushare-scheduler", "restricted", ()),
    # loopback of the node
    ("overlays/kubeadm", "gpushare-extender", "privileged", ("host namespaces", "hostPort")),
    # the kubelet's folders, which belong to root
    ("overlays/kubeadm", "gpushare-device-plugin", "privileged",
     ("hostPath volumes", "restricted volume types", "runAsNonRoot != true", "runAsUser=0")),
)


def workloads(cluster, kustomization):
    """{name: pod template} of what kubectl makes of the folder."""
    text = cluster.control_plane.kubectl("apply", "--dry-run=client", "-o", "json", "-k",
                                         ControlPlane.manifest(kustomization))
    return {item["metadata"]["name"]: item["spec"]["template"] for item in json.loads(text)["items"]
            if item["kind"] in ("Deployment", "DaemonSet")}


def objection(cluster, namespace, template):
    """What the API server says against a pod of it there, or None."""
    made = {"apiVersion": "v1", "kind": "Pod", **template}
    made["metadata"] = {**template["metadata"], "name": "probe", "namespace": namespace}
    try:
        cluster.api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", made)
    except ApiError as error:
        return str(error)
    return None


def complaints(message):
    """The controls that are violated, without their explanations."""
    listed = message.split(": ", 4)[-1]
    depth, parts = 0, [""]
    for char in listed:
        depth += char == "("
        if char == "," and depth == 0:
            parts.append("")
        elif depth == 0:
            parts[-1] += char
        depth -= char == ")"
    return {part.strip() for part in parts}


def body():
    with Cluster(scheduler=None, extender=False) as cluster:
        for level in LEVELS:
            cluster.api.create("/api/v1/namespaces", {
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": level, "labels": {
                    "pod-security.kubernetes.io/enforce": level}}})
        for folder, name, strictest, against in WORKLOADS:
            template = workloads(cluster, folder)[name]
            said = set()
            for level in LEVELS:
                message = objection(cluster, level, template)
                taken = LEVELS.index(level) >= LEVELS.index(strictest)
                check((message is None) == taken, f"{folder} {name} in {level}: {message}")
                said |= complaints(message) if message else set()
            check(said == set(against), f"{folder} {name}: refused for {sorted(said)}")
            print(f"note: {folder} {name}: {strictest}" +
                  (f" ({', '.join(against)})" if against else ""))


run(body)
