#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The idle plugin stays within 12 MiB resident and 3 MiB private memory."""

import time

from harness.case import check, run
from harness.node import NodeCluster, real_pod

KUBE = ">=1.20"


def body():
    with NodeCluster(gpus="8x80GiB") as cluster:
        cluster.create_pods([real_pod("one", 8)])
        cluster.wait_true_record("one")
        time.sleep(12)
        resident, private = cluster.plugin.memory_kib()
        print(f"note: {resident} KiB resident, {private} KiB private")
        check(resident <= 12 << 10, f"{resident} KiB are resident")
        check(private <= 3 << 10, f"{private} KiB are private")


run(body)
