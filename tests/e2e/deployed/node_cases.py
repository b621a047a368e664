#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the cases of a real node show holds with everything in pods, behind a Service with mutual
TLS, the extender under the shipped seccomp profile."""

import time

from cases import node_containers, node_foreign, node_many, node_restarts
from harness.case import check, run
from harness.deployed import DeployedCluster
from harness.install import PROGRAMS, BehindService, pids_of, place_profile

SHOWN = (node_containers, node_many, node_foreign, node_restarts)


class UnderProfile(BehindService):
    """As docs/security.md says."""

    local_profile = True


def is_confined(cluster):
    """The extender's pods by the profile, the device plugin's by the runtime's own."""
    for pod in cluster.api.pods(labelSelector="app.kubernetes.io/name=gpushare-extender"):
        profile = pod["spec"]["securityContext"]["seccompProfile"]
        check(profile["type"] == "Localhost", f"{pod['metadata']['name']} has {profile}")
    for pid in sum((pids_of(program) for program in PROGRAMS), []):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            check("Seccomp:\t2\n" in status, f"process {pid} has no filter")


def body():
    with DeployedCluster() as cluster:
        place_profile()
        cluster.install(UnderProfile(cluster), SHOWN[0].GPUS)
        is_confined(cluster)
        for case in SHOWN:
            began = time.monotonic()
            if case is not SHOWN[0]:
                cluster.clear_pods()
                cluster.use_gpus(case.GPUS)
            case.show(cluster)
            print(f"note: {case.__name__}: {time.monotonic() - began:.0f} s")


run(body)
