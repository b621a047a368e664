#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kueue's real controller with examples/kueue.yaml: quota in units, flavors by model, what others leave and
its reclaiming, and a pod that is admitted and fits no GPU is explained."""

import json
import os
import subprocess

from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import ROOT, built_by
from harness.objects import GPU_MEM, IDX, annotation, bound_node, node, unschedulable_message
from harness.processes import free_port, wait_for

KUBE = ">=1.34"
NEEDS = "kueue_build.sh"
TEAMS = ("research", "serving")
PRODUCT = "nvidia.com/gpu.product"
PRODUCTS = {"a100": "NVIDIA-A100-SXM4-80GB", "t4": "Tesla-T4"}


def labelled(name, sizes):
    made = node(name, sizes)
    made["metadata"]["labels"][PRODUCT] = PRODUCTS[name.split("-")[0]]
    return made


def job(team, name, pods, mem, model=None):
    """As users write it; its pods go at once when Kueue takes their admission back, as no kubelet confirms it."""
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": team, "labels": {"kueue.x-k8s.io/queue-name": "gpus"}},
            "spec": {"suspend": True, "parallelism": pods, "completions": pods, "template": {"spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                "nodeSelector": {PRODUCT: PRODUCTS[model]} if model else {}, "containers": [
                    {"name": "main", "image": "busybox", "resources": {"limits": {GPU_MEM: mem}}}]}}}}


class Queues:
    def __init__(self, cluster):
        self.cluster = cluster

    def start(self):
        built = built_by(NEEDS)
        kubectl, path = self.cluster.control_plane.kubectl, self.cluster.control_plane.path
        for name in sorted(os.listdir(f"{built}/crd")):
            kubectl("create", "-f", f"{built}/crd/{name}")
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        os.makedirs(path("kueue"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=kueue",
                        "-keyout", path("kueue/tls.key"), "-out", path("kueue/tls.crt")], check=True, capture_output=True)
        with open(path("kueue/config.yaml"), "w", encoding="ascii") as out:
            json.dump({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": "kueue-system",
                       "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"}, "metrics": {"bindAddress": "0"},
                       "webhook": {"host": "127.0.0.1", "port": free_port(), "certDir": path("kueue")},
                       "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
                       "integrations": {"frameworks": ["batch/job"]}}, out)
        self.cluster.control_plane.start_controllers("job")
        # It wants certificates of its metrics at a fixed place.
        made = path("kueue/etc")
        os.makedirs(f"{made}/upper/kueue/metrics/certs")
        os.makedirs(f"{made}/work")
        for name in ("tls.key", "tls.crt"):
            os.link(path(f"kueue/{name}"), f"{made}/upper/kueue/metrics/certs/{name}")
        self.cluster.processes.start("kueue", [
            "unshare", "--mount", "sh", "-c",
            'mount -t tmpfs tmpfs "$0" && mkdir "$0/upper" "$0/work" && cp -r "$1" "$0/upper/" && '
            'mount -t overlay overlay -o "lowerdir=/etc,upperdir=$0/upper,workdir=$0/work" /etc && shift && exec "$@"',
            f"{made}/work", f"{made}/upper/kueue", f"{built}/kueue", f"--config={path('kueue/config.yaml')}",
            f"--kubeconfig={self.cluster.control_plane.kubeconfig('admin')}", "--feature-gates=VisibilityOnDemand=false"])

    def pods(self, team, name):
        return self.cluster.api.items(f"/api/v1/namespaces/{team}/pods", labelSelector=f"job-name={name}")

    def wait_bound(self, team, name, count):
        """So many of the job's pods have a GPU; all of them."""
        def probe():
            found = self.pods(team, name)
            return found if sum(bool(bound_node(one)) for one in found) == count else None
        return wait_for(f"{count} pods of {name} have a place", probe, 60)

    def why_refused(self, team, name, count):
        """What is told of one of so many pods of the job that kube-scheduler can place nowhere."""
        def probe():
            found = [one for one in self.pods(team, name) if not bound_node(one)]
            return found[0] if len(found) == count and all(map(unschedulable_message, found)) else None
        refused = wait_for(f"{count} pods of {name} are refused", probe, 60)["metadata"]["name"]
        told = self.cluster.why(refused, team)
        print(told)
        return told

    def submit(self, made):
        self.cluster.api.create(f"/apis/batch/v1/namespaces/{made['metadata']['namespace']}/jobs", made)

    def suspended(self, team, name):
        return self.cluster.api.get(f"/apis/batch/v1/namespaces/{team}/jobs/{name}")["spec"].get("suspend", False)


def example():
    """The file as it is, but that its Job is placed by the cluster's own scheduler."""
    with open(os.path.join(ROOT, "examples/kueue.yaml"), encoding="utf-8") as text:
        words = text.read().replace("schedulerName: gpushare-scheduler", "terminationGracePeriodSeconds: 0")
    return words


def body():
    nodes = [labelled(f"{kind}-{nth}", [size] * 4) for kind, size in (("a100", 80), ("t4", 15)) for nth in (1, 2)]
    with Cluster(nodes=nodes) as cluster:
        queues = Queues(cluster)
        for name in (*TEAMS, "kueue-system"):
            cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        queues.start()
        with open(cluster.control_plane.path("example.yaml"), "w", encoding="utf-8") as out:
            out.write(example())
        cluster.control_plane.kubectl("apply", "-f", cluster.control_plane.path("example.yaml"))
        placed = queues.wait_bound("research", "train", 4)
        check({bound_node(one)[:4] for one in placed} == {"a100"}, "the Job that names A100s is there")
        empty = 8 - len({(bound_node(one), annotation(one, IDX)) for one in placed})
        # Kueue admits by sums: two pods of 16 are no more than the T4s' quota, and no T4 has 16.
        queues.submit(job("serving", "careless", 2, 16))
        told = queues.why_refused("serving", "careless", 2)
        check("no GPU large enough for the request" in told, f"why says: {told}")
        # 560 of the 576 of A100s that are left in the cohort: what the other team does not use.
        queues.submit(job("research", "wide", 8, 70, "a100"))
        queues.wait_bound("research", "wide", empty)
        told = queues.why_refused("research", "wide", 8 - empty)
        check("nearest" in told and "a100" in told, f"why says: {told}")
        # The other team wants its own: Kueue takes back what was borrowed, and the GPUs follow.
        queues.submit(job("serving", "chat", 4, 80, "a100"))
        queues.wait_bound("serving", "chat", 4)
        wait_for("the borrower waits for quota", lambda: queues.suspended("research", "wide"), 60)
        wait_for("its pods are gone", lambda: not queues.pods("research", "wide"), 60)
        check(not queues.suspended("research", "train"), "who had not borrowed goes on")
        cluster.wait_inspect_agrees()
        check(cluster.problems(complete=False) == [], "no GPU is overfull")


run(body)
