#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The idle plugin has no more than 3 MiB of memory of its own: pages that it has written to. Code is the
kernel's to drop, and shared by all copies of it."""

import time

from harness.case import check, run
from harness.node import NodeCluster, real_pod


def body():
    with NodeCluster(gpus="8x80GiB") as cluster:
        cluster.create_pods([real_pod("one", 8)])
        cluster.wait_true_record("one")
        time.sleep(12)
        resident, private = cluster.plugin.memory_kib()
        print(f"note: {resident} KiB resident, {private} KiB private")
        check(private <= 3 << 10, f"{private} KiB are private")


run(body)
