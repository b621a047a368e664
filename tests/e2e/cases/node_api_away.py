#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin cannot reach the API server: containers start all the same, records follow later."""

from harness.case import check, run
from harness.delays import DelayedCluster
from harness.node import real_pod
from harness.objects import IDX, annotation


def body():
    with DelayedCluster(gpus="2x16GiB") as cluster:
        cluster.create_pods([real_pod("known", 10)])
        cluster.wait_true_record("known")
        cluster.plugin_api.set_away(True)
        cluster.create_pods([real_pod("unseen", 6), real_pod("unseen-2", 12)])
        for name in ("unseen", "unseen-2"):
            cluster.running(name)
        cluster.plugin_api.set_away(False)
        for name in ("known", "unseen", "unseen-2"):
            cluster.wait_true_record(name, timeout_s=60)
        check(annotation(cluster.pod("known"), IDX) != annotation(cluster.pod("unseen-2"), IDX),
              "10 and 12 units do not fit one GPU")
        check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
        cluster.wait_inspect_agrees()


run(body)
