#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two kube-schedulers with different profiles fill the same nodes through one extender: no GPU is
booked twice, and who lost the race for a place is bound when there is another (15 to 25 s)."""

from harness import ledger
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod
from harness.scheduler import Scheduler, replace_once
from harness.watch import PodWatch

KUBE = ">=1.20"
FIRST, SECOND = "default-scheduler", "gpushare-scheduler"
NODES, ROOM, PODS = 10, 40, 60  # nodes of two GPUs, each of which has room for two pods
ROUNDS, ROUNDS_MAX = 2, 8  # more while the two have not met: on few processors one often waits for the other
ATTEMPTS = 'gpushare_bind_attempts_total{{outcome="{}"}}'
# It neither spreads nor balances: of the scores only the extender's is left.
PROFILE = f"""profiles:
- schedulerName: {SECOND}
  plugins:
    score:
      disabled:
      - name: "*"
"""


def second_profile(config):
    return replace_once(config, "leaderElect: true", "leaderElect: false") + PROFILE


def by_scheduler(watch):
    """How many of the pods that are there now each of the two has bound."""
    bound = [p["spec"]["schedulerName"] for p in watch.pods.values() if bound_node(p)]
    return {name: bound.count(name) for name in (FIRST, SECOND)}


def one_round(cluster, watch, turn):
    before = len(watch.bound_at)
    cluster.create_pods([pod(f"p-{turn}-{i}", 8, schedulerName=(FIRST, SECOND)[i % 2])
                         for i in range(PODS)])
    check(watch.wait(lambda w: len(w.bound_at) == before + ROOM, 60),
          f"round {turn}: room for {ROOM}, {len(watch.bound_at) - before} pods are bound")
    shares = by_scheduler(watch)
    check(min(shares.values()) > 0, f"round {turn}: one scheduler had it all: {shares}")
    for placed in [p for p in list(watch.pods.values()) if bound_node(p)]:
        cluster.delete_pod(placed["metadata"]["name"])
    check(watch.wait(lambda w: len(w.bound_at) == before + PODS, 60),
          f"round {turn}: {before + PODS - len(watch.bound_at)} pods were never bound")
    cluster.wait_inspect_agrees()
    for placed in list(watch.pods.values()):
        cluster.delete_pod(placed["metadata"]["name"])
    return shares


def body():
    with Cluster(nodes=[node(f"n{i}", [16, 16]) for i in range(NODES)]) as cluster:
        Scheduler(cluster.processes, cluster.control_plane, SECOND).start(
            cluster.extender.url, edit=second_profile)
        with PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())) as watch:
            shares, refused = [], 0
            while len(shares) < ROUNDS or (not refused and len(shares) < ROUNDS_MAX):
                shares.append(tuple(one_round(cluster, watch, len(shares)).values()))
                metrics = cluster.extender.metrics()
                refused, conflict = (int(metrics[ATTEMPTS.format(why)]) for why in ("rejected", "conflict"))
        check(refused, "no bind was refused: the two never met, and the case shows nothing")
        print(f"note: {len(shares) * PODS} pods bound, by each of the first {ROOM} of a round {shares}; "
              f"{refused} binds refused because the other was faster, {conflict} conflicts")


run(body)
