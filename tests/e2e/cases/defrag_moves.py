#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `kubectl inspect gpushare defrag` prints, carried out: the pod that waited starts, and those that
moved have a place again."""

import os
import re
import subprocess

from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import built_program, kube_program
from harness.objects import bound_node, node, pod
from harness.processes import wait_for

KUBE = ">=1.20"  # evictions are policy/v1beta1, then policy/v1


def replica_set(name, mem):
    labels = {"app": name}
    template = pod("ignored", mem)
    template["metadata"] = {"labels": labels}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                     "template": {"metadata": template["metadata"], "spec": template["spec"]}}}


def bound_of(cluster, app, besides=()):
    """The pod of a ReplicaSet once it has a node."""
    def probe():
        for found in cluster.api.pods():
            meta = found["metadata"]
            if (meta.get("labels", {}).get("app") == app and meta["name"] not in besides
                    and bound_node(found)):
                return found
        return None
    return wait_for(f"a pod of {app} is bound", probe)


def environment(cluster):
    programs = os.path.dirname(kube_program("kubectl"))
    return {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"],
            "KUBECONFIG": cluster.control_plane.kubeconfig("admin")}


def plan(cluster):
    done = subprocess.run([built_program("kubectl-inspect-gpushare"), "defrag"], check=False,
                          env=environment(cluster), capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"defrag: {done.stderr}")
    return done.stdout


def commands_of(text):
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  kubectl cordon "))
    last = next(i for i, line in enumerate(lines) if line.startswith("  kubectl uncordon "))
    return "\n".join(lines[first:last + 1])


def carry_out(cluster, commands):
    """By hand, as it were; pods that are told to end do, as if a kubelet said so."""
    shell = subprocess.Popen(["bash", "-eu", "-o", "pipefail", "-c", commands],
                             env=environment(cluster), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)

    def ended():
        for found in cluster.api.pods():
            if found["metadata"].get("deletionTimestamp"):
                cluster.delete_pod(found["metadata"]["name"])
        return shell.poll() is not None
    wait_for("the commands end", ended, 60, interval_s=1)
    check(shell.returncode == 0, f"a command failed: {shell.stdout.read()}")


def body():
    with Cluster(nodes=[node("n1", [16])]) as cluster:
        cluster.control_plane.start_controllers("replicaset")
        cluster.api.create("/apis/apps/v1/namespaces/default/replicasets", replica_set("a", 6))
        first = bound_of(cluster, "a")
        cluster.create_pods([pod("filler", 10)])
        cluster.wait_bound("filler")
        cluster.add_nodes([node("n2", [16])])
        cluster.api.create("/apis/apps/v1/namespaces/default/replicasets", replica_set("b", 6))
        second = bound_of(cluster, "b")
        check((bound_node(first), bound_node(second)) == ("n1", "n2"), "not one on each node")
        cluster.delete_pod("filler")
        cluster.create_pods([pod("big", 16)])
        cluster.wait_refused("big")

        text = plan(cluster)
        check(re.search(r"^default +big +16 .* 1 +fits after these moves$", text, re.M), text)
        before = {first["metadata"]["name"], second["metadata"]["name"]}
        moved = next(name for name in before if f"pods/{name}/eviction" in text)
        app = "a" if moved == first["metadata"]["name"] else "b"
        carry_out(cluster, commands_of(text))

        big = cluster.wait_bound("big")
        check(re.search(rf"^default +big +16 +{bound_node(big)} +0 ", text, re.M), f"big is on {bound_node(big)}: {text}")
        again = bound_of(cluster, app, besides=before)
        check(bound_node(again) != bound_node(big), "the pod that moved came back")
        cluster.wait_inspect_agrees()
        cluster.wait_settled(30)
        check("No pod with GPU memory is pending" in plan(cluster), "somebody still waits")


run(body)
