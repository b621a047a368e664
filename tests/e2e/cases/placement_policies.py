#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""binpack and spread, per service and per pod: for the node and for the GPU."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, bound_node, node, pod
from harness.shapes import resident

PLACEMENT = "aliyun.com/gpu-placement"
SEED = ("n1", "0")  # where something runs already


def place(cluster, name, policy):
    annotations = {PLACEMENT: policy} if policy else {}
    cluster.create_pods([pod(name, 4, annotations=annotations)])
    found = cluster.wait_bound(name)
    return bound_node(found), annotation(found, IDX)


def placed(cluster, prefix, policy, count):
    """One after the other, so that each sees where the last one went."""
    return [place(cluster, f"{prefix}-{i}", policy) for i in range(count)]


def one_service(own, other, *flags):
    """own: the service's policy, for pods that say nothing; other: for pods that name it."""
    nodes = [node(name, [16, 16]) for name in ("n1", "n2", "n3")]
    with Cluster(nodes=nodes, extender_flags=flags) as cluster:
        cluster.create_pods([resident("seed", SEED[0], 0, 8)])
        cluster.wait_inspect_agrees()
        for prefix, policy, expected in (("own", None, own), ("other", other, other)):
            places = placed(cluster, prefix, policy, 2)
            print(f"note: service {own}, pod {policy}: {places}")
            if expected == "binpack":
                check(places == [SEED, SEED], f"{expected}: {places}, not both on {SEED}")
            else:
                homes = {where for where, _gpu in places}
                check(homes == {"n2", "n3"}, f"{expected}: {places}, not one on each empty node")
            for i in range(2):
                cluster.delete_pod(f"{prefix}-{i}")
            cluster.wait_inspect_agrees()


def gpus_of_one_node():
    """With one node left, the policy chooses among its GPUs."""
    with Cluster(nodes=[node("n1", [16, 16])]) as cluster:
        cluster.create_pods([resident("seed", "n1", 0, 4)])
        cluster.wait_inspect_agrees()
        for policy, gpu in (("spread", "1"), ("spread", "0"), ("spread", "1"), ("binpack", "0"),
                            ("binpack", "0"), ("binpack", "1")):
            name = f"p{len(cluster.api.pods())}"
            found = place(cluster, name, policy)
            check(found == ("n1", gpu), f"{name}, {policy}: {found}, not GPU {gpu}")


def body():
    one_service("binpack", "spread", "--policy", "binpack")
    one_service("spread", "binpack", "--policy", "spread")
    gpus_of_one_node()


run(body)
