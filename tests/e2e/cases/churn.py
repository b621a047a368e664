#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods come, finish and go for a while: at no event of the API's watch is any GPU over its size."""

import random
import time

from harness import ledger
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node
from harness.watch import PodWatch
from harness.workload import random_nodes, random_pod

SECONDS = 30
NODES = 12
SEED = 23


def one_step(cluster, rng, step, live):
    if len(live) < 40 or rng.random() < 0.5:
        wanted = [random_pod(f"churn-{step}-{i}", rng) for i in range(rng.randint(1, 8))]
        made = cluster.create_pods(wanted)
        live.extend(p["metadata"]["name"] for p in made)
        return
    name = live.pop(rng.randrange(len(live)))
    if rng.random() < 0.3 and bound_node(cluster.pod(name)):
        cluster.finish_pod(name, rng.choice(("Succeeded", "Failed")))
    else:
        cluster.delete_pod(name)


def body():
    rng = random.Random(SEED)
    with Cluster(nodes=random_nodes(NODES, SEED)) as cluster:
        with PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())) as watch:
            live, step, until = [], 0, time.monotonic() + SECONDS
            while time.monotonic() < until:
                one_step(cluster, rng, step, live)
                step += 1
                time.sleep(0.02)
            cluster.wait_settled(120)
            check(len(watch.bound_at) > 100, f"only {len(watch.bound_at)} pods were ever bound")
            print(f"note: {step} steps, {len(watch.bound_at)} pods bound")
        cluster.wait_inspect_agrees()


run(body)
