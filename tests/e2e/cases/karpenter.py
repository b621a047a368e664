#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Karpenter with the NodeOverlay of docs/with.md: it brings a node of the right type for a pod, one too
few for a pod that fits its sum and no GPU, none for a pod that is offered a node."""

import json

from harness.api import node_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import built_by
from harness.documents import commands
from harness.objects import GPU_MEM, IDX, annotation, inventory, node, pod
from harness.processes import wait_for

KUBE = ">=1.34"
NEEDS = "karpenter_build.sh"
TYPES = {"g5.xlarge": [22], "p4d.24xlarge": [39] * 8}
PRICES = {"g5.xlarge": 1, "p4d.24xlarge": 32}


def instance_types():
    """As a cloud sells them: of GPU memory it says nothing."""
    where = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
             {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]
    return [{"name": name, "architecture": "amd64", "operatingSystems": ["linux"],
             "offerings": [{"Price": price, "Available": True, "Requirements": where}],
             "resources": {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi"}} for name, price in PRICES.items()]


POOL = [{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}},
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpus"}, "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
            "template": {"metadata": {"labels": {"gpushare": "true"}}, "spec": {
                "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}}}}]


class Karpenter:
    def __init__(self, cluster):
        self.cluster, self.kubectl = cluster, cluster.control_plane.kubectl
        self.path = cluster.control_plane.path

    def apply(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        self.kubectl("apply", "-f", self.path(name))

    def start(self):
        built = built_by(NEEDS)
        self.kubectl("create", "-f", f"{built}/crd")
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        for made in POOL:
            self.apply("pool.yaml", json.dumps(made))
        with open(self.path("types.json"), "w", encoding="ascii") as out:
            json.dump(instance_types(), out)
        self.cluster.processes.start("karpenter", [
            f"{built}/karpenter", "--feature-gates=NodeOverlay=true", "--disable-leader-election=true",
            "--metrics-port=0", "--health-probe-port=0", f"--instance-types-file-path={self.path('types.json')}"],
            {"KUBECONFIG": self.cluster.control_plane.kubeconfig("admin"), "SYSTEM_NAMESPACE": "kube-system"})
        self.kubectl("wait", "--for=condition=Ready", "nodepool/gpus", "--timeout=60s")

    def claims(self):
        """The units that each node was bought for."""
        return sorted(claim["spec"]["resources"]["requests"][GPU_MEM]
                      for claim in self.cluster.api.items("/apis/karpenter.sh/v1/nodeclaims"))

    def wait_node(self, kind):
        """The node of a type, once it has what its kubelet and our device plugin say. This cloud's
        machines have only what the pods that they were bought for ask for."""
        def probe():
            return next((one for one in self.cluster.api.nodes()
                         if one["metadata"]["labels"]["node.kubernetes.io/instance-type"] == kind), None)
        name = wait_for(f"a {kind} is bought", probe, 60)["metadata"]["name"]
        status = node(name, TYPES[kind])["status"]
        self.cluster.api.patch(node_path(name, "status"), {"status": status})
        self.cluster.api.patch(node_path(name), {"metadata": {"annotations": {
            "aliyun.com/gpu-inventory": inventory(TYPES[kind], name)}}})
        return name

    def wait_event(self, name, words):
        """What Karpenter says about a pod."""
        def probe():
            return next((one["message"] for one in self.cluster.api.events("default", name)
                         if words in one.get("message", "")
                         and "karpenter" in json.dumps([one.get("source"), one.get("reportingComponent")])), None)
        return wait_for(f"Karpenter says {words!r} of {name}", probe, 60)


def overlays():
    """The document's template, filled in for each type."""
    template, = commands("docs/with.md", "Karpenter", "yaml")
    made = []
    for name, gpus in TYPES.items():
        text = template
        for old, new in (("p4d.24xlarge", name), ('"312"', f'"{sum(gpus)}"'), ('"8"', f'"{len(gpus)}"'),
                         ('"800"', f'"{len(gpus)}00"')):
            check(old in template, f"the template has {old}")
            text = text.replace(old, new)
        made.append(text)
    return "---\n".join(made)


def offer(cluster, name, to):
    """A pod that kube-scheduler refused, with a node nominated for it or, to=None, with none any more."""
    cluster.api.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": {
        "nominatedNodeName": to, "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "by the case"}]}})


def body():
    with Cluster() as cluster:
        karpenter = Karpenter(cluster)
        karpenter.start()
        # Without overlays no type has the resource.
        cluster.create_pods([pod("early", 20)])
        print(karpenter.wait_event("early", "no instance type has enough resources"))
        cluster.delete_pod("early")
        karpenter.apply("overlays.yaml", overlays())
        karpenter.kubectl("wait", "--for=condition=Ready", "nodeoverlay", "--all", "--timeout=60s")
        # A pod that is offered a node is passed over; nobody else places it.
        cluster.create_pods([pod("offered", 21, schedulerName="nobody")])
        offer(cluster, "offered", "somewhere")
        cluster.create_pods([pod("small", 20)])
        karpenter.wait_node("g5.xlarge")
        check(annotation(cluster.wait_bound("small", 60), IDX) == "0", "small has a GPU")
        check(karpenter.claims() == ["20"], f"the offered one is passed over: {karpenter.claims()}")
        offer(cluster, "offered", None)
        wait_for("a node for who was offered one", lambda: karpenter.claims() == ["20", "21"], 60)
        # A sum that no GPU has: a node comes, and the pod waits there and is told.
        cluster.create_pods([pod("wide", 40)])
        karpenter.wait_node("p4d.24xlarge")
        print(wait_for("why says that no GPU has 40",
                       lambda: "2  no GPU large enough" in (said := cluster.why("wide")) and said, 60))
        check(karpenter.claims() == ["20", "21", "40"], f"a node for each: {karpenter.claims()}")
        cluster.wait_inspect_agrees()


run(body)
