#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reproduction of docs/podgroup-preemption.md:

    KUBE_VERSION=newest scripts/e2e.sh --exec tests/e2e/podgroup_preemption.py

A single pod preempts, a PodGroup of two does not, and preemptVerb is not called for it."""

import time

from harness.case import run
from harness.gangs import GROUPS, GangCluster, gang
from harness.objects import pod
from harness.shapes import create_priorities

CALLS = 'gpushare_request_duration_seconds_count{verb="preempt"}'


def body():
    with GangCluster([[16, 16]]) as cluster:
        create_priorities(cluster, {"low": 10, "high": 100})
        cluster.create_pods([pod(f"low-{i}", 16, priorityClassName="low", terminationGracePeriodSeconds=0) for i in range(2)])
        for i in range(2):
            cluster.wait_bound(f"low-{i}")
        cluster.api.create(GROUPS, {**gang("g", 2), "spec": {**gang("g", 2)["spec"], "priorityClassName": "high"}})
        cluster.create_pods([pod(f"g-{i}", 16, schedulingGroup={"podGroupName": "g"}, priorityClassName="high")
                             for i in range(2)])
        time.sleep(20)
        before = cluster.extender.metrics().get(CALLS, 0)
        print(f"note: PodGroup: {cluster.bound('g')} of 2 bound, preemptVerb called {before:.0f} times")
        cluster.remove("g")
        cluster.create_pods([pod("single", 16, priorityClassName="high")])
        cluster.wait_bound("single")
        print(f"note: single pod: bound, preemptVerb called {cluster.extender.metrics()[CALLS] - before:.0f} times")


run(body)
