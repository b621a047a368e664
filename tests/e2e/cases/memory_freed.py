#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that are deleted or finish free their memory; one that is being deleted does not yet."""

import time

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod


def replaced_when(cluster, name, leave):
    """A pod waits for a full GPU; leave() makes the holder go; then the waiting one is bound."""
    waiting = f"after-{name}"
    cluster.create_pods([pod(waiting, 16)])
    cluster.wait_refused(waiting)
    leave()
    cluster.wait_bound(waiting, timeout_s=10)
    cluster.wait_inspect_agrees()
    return waiting


def deletion_alone_frees_nothing(cluster, name):
    """Nobody confirms the end of the containers here, so the object stays, marked for deletion."""
    cluster.delete_pod(name, grace_s=3600)
    check(cluster.pod(name)["metadata"].get("deletionTimestamp"), "the pod is not being deleted")
    cluster.create_pods([pod("too-early", 16)])
    cluster.wait_refused("too-early")
    time.sleep(3)
    check(not bound_node(cluster.pod("too-early")), "a GPU was given away while its pod still ran")
    cluster.wait_inspect_agrees()
    cluster.delete_pod(name, grace_s=0)
    cluster.wait_bound("too-early", timeout_s=10)
    cluster.wait_inspect_agrees()


def body():
    with Cluster(nodes=[node("n1", [16])]) as cluster:
        cluster.create_pods([pod("first", 16)])
        cluster.wait_bound("first")
        second = replaced_when(cluster, "deletion", lambda: cluster.delete_pod("first"))
        third = replaced_when(cluster, "success", lambda: cluster.finish_pod(second))
        fourth = replaced_when(cluster, "failure", lambda: cluster.finish_pod(third, "Failed"))
        deletion_alone_frees_nothing(cluster, fourth)


run(body)
