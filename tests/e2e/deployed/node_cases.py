#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the cases of a real node show holds with everything in pods, behind a Service with mutual
TLS."""

import time

from cases import node_containers, node_foreign, node_many, node_restarts
from harness.case import run
from harness.deployed import DeployedCluster
from harness.install import BehindService

SHOWN = (node_containers, node_many, node_foreign, node_restarts)


def body():
    with DeployedCluster() as cluster:
        cluster.install(BehindService(cluster), SHOWN[0].GPUS)
        for case in SHOWN:
            began = time.monotonic()
            if case is not SHOWN[0]:
                cluster.clear_pods()
                cluster.use_gpus(case.GPUS)
            case.show(cluster)
            print(f"note: {case.__name__}: {time.monotonic() - began:.0f} s")


run(body)
