#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who has the role `edit` in his namespace moves no claim: not by another index, not by a number of
GPUs that is taken off or changed, not by the index of another pod. What was free stays free, and
what was taken is given to nobody."""

import json
import time

from harness.api import pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import GPU_COUNT, IDX, INVENTORY, MOVED, NAMESPACE, annotation, node, pod
from harness.policies import user_of

KUBE = ">=1.20"


def spoken_for(name, sizes):
    """A node whose device plugin tells who moved: nobody."""
    made = node(name, sizes)
    notes = made["metadata"]["annotations"]
    notes[INVENTORY] = json.dumps({**json.loads(notes[INVENTORY]), "reassignments": True})
    notes[MOVED] = "{}"
    return made


def notes(**more):
    return {"metadata": {"annotations": more}}


def labels(**more):
    return {"metadata": {"labels": more}}


def edits(uids):
    """(pod, patch), in this order."""
    other = "1" if annotation(uids["x"], IDX) == "0" else "0"
    own = annotation(uids["x"], IDX)
    return (
        ("two", labels(**{GPU_COUNT: None})), ("two", labels(**{GPU_COUNT: "1"})),
        ("two", labels(**{GPU_COUNT: "16"})), ("two", notes(**{GPU_COUNT: "4"})),
        ("two", notes(**{IDX: "2"})), ("two", notes(**{IDX: None})),
        ("one", notes(**{IDX: "99"})), ("one", notes(**{IDX: "0,1,2"})), ("one", notes(**{IDX: "0"})),
        ("x", notes(**{IDX: other})), ("x", notes(**{IDX: own})), ("y", notes(**{IDX: own})),
    )


def body():
    with Cluster(nodes=[spoken_for("n1", [8, 8, 16]), spoken_for("n2", [8, 8])]) as cluster:
        cluster.create_pods([pod("two", 16, gpu_count=2, nodeSelector={"kubernetes.io/hostname": "n1"})])
        cluster.wait_bound("two")
        cluster.create_pods([pod("one", 8, nodeSelector={"kubernetes.io/hostname": "n1"})] +
                            [pod(name, 8, nodeSelector={"kubernetes.io/hostname": "n2"})
                             for name in ("x", "y")])
        bound = {name: cluster.wait_bound(name) for name in ("two", "one", "x", "y")}
        before = cluster.extender.inspect()
        tenant = user_of(cluster, "tenant")
        for name, patch in edits(bound):
            tenant.patch(pod_path(NAMESPACE, name), patch)
        time.sleep(2)  # nothing is to happen
        after = cluster.extender.inspect()
        check(after == before, f"charged {after}, not {before}")
        cluster.create_pods([pod("fits", 8)])
        cluster.wait_bound("fits")
        cluster.create_pods([pod("waits", 1)])
        cluster.wait_refused("waits")


run(body)
