#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three replicas behind a Service: the leader is killed, then the next one frozen, in mid-burst."""

import json
import signal

from harness import ledger
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import pod
from harness.processes import wait_for
from harness.replicas import Outage, Replicas
from harness.watch import PodWatch
from harness.workload import random_nodes, random_pods

KUBE = ">=1.20"
LONG = True
SEED = 31
NODES = 40
OUTAGE_S = 20


def must_refuse(cluster, replica, name):
    """Asked behind the Service's back, a replica that does not lead binds nothing."""
    waiting = cluster.create_pods([pod(name, 1, schedulerName="nobody")])[0]
    meta = waiting["metadata"]
    answer = replica.verb("bind", {"PodName": name, "PodNamespace": meta["namespace"],
                                   "PodUID": meta["uid"], "Node": "node-000"})
    check("standby" in answer["Error"], f"a replica that does not lead answered {answer}")
    cluster.delete_pod(name)


def other_leader(replicas, old):
    def probe():
        names = [name for name in replicas.labelled() if replicas.replicas[name] is not old]
        return replicas.replicas[names[0]] if names else None
    return wait_for("another replica is the leader", probe, OUTAGE_S + 10)


def lose(cluster, replicas, watch, name, number):
    """The leader gets a signal while pods are being bound. Returns it and its successor."""
    leader = replicas.leader()
    for index, replica in enumerate(replicas.replicas.values()):
        if replica is not leader and replica.process.running():
            must_refuse(cluster, replica, f"standby-{name}-{index}")
    before = len(watch.bound_at)
    cluster.create_pods(random_pods(120, f"{SEED}{name}", name))
    check(watch.wait(lambda w: len(w.bound_at) >= before + 20, 60),
          f"20 more than {before} pods were never bound, only {len(watch.bound_at)}")
    leader.process.signal(number)
    return leader, other_leader(replicas, leader)


def body():
    question = {"Pod": pod("question", 1), "NodeNames": ["node-000"]}
    with Cluster(nodes=random_nodes(NODES, SEED), extender=False, scheduler=None) as cluster:
        with Replicas(cluster, 3) as replicas, \
                PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())) as watch:
            cluster.scheduler.start(replicas.service.url)
            with Outage(replicas.service, json.dumps(question).encode()) as killed:
                dead, _ = lose(cluster, replicas, watch, "kill", signal.SIGKILL)
                cluster.wait_settled(150)
            # its Deployment would replace the pod: its label goes with it
            cluster.api.delete("/api/v1/namespaces/gpushare-system/pods/" +
                               next(n for n, r in replicas.replicas.items() if r is dead), 0)
            with Outage(replicas.service, json.dumps(question).encode()) as frozen:
                sleeper, _ = lose(cluster, replicas, watch, "freeze", signal.SIGSTOP)
                sleeper.process.signal(signal.SIGCONT)
                must_refuse(cluster, sleeper, "woken")
                cluster.wait_settled(150)
            wait_for("one label is left", lambda: len(replicas.labelled()) == 1, 10)
            for replica in (sleeper, replicas.leader()):
                cluster.extender = replica
                cluster.wait_inspect_agrees(15)
            cluster.extender = None
            print(f"note: without a leader: {killed.longest:.1f} s after SIGKILL, "
                  f"{frozen.longest:.1f} s after SIGSTOP; {len(watch.bound_at)} pods bound")
            for outage in (killed, frozen):
                check(outage.answers > 2 and outage.longest <= OUTAGE_S,
                      f"{outage.longest:.1f} s without service, {outage.answers} answers")


run(body)
