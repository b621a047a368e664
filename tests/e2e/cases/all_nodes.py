#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is shown of kube-scheduler as shipped holds as well where it looks at all nodes
(percentageOfNodesToScore: 100) and pods are not nominated. 137 s beside other work."""

import os
import runpy

from harness.case import check, run

KUBE = ">=1.23"  # below it that is what is shipped
LONG = True
CASES = ("affinity_kept", "placement_policies", "preemption", "full_cluster")


def run_case(name):
    folder = os.path.join(os.environ["GPUSHARE_RUN_DIR"], name)
    os.makedirs(folder)
    outside = os.environ["GPUSHARE_RUN_DIR"]
    os.environ["GPUSHARE_RUN_DIR"] = folder
    try:
        runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py"))
    except SystemExit as end:
        check(end.code == 0, f"{name} failed")
    finally:
        os.environ["GPUSHARE_RUN_DIR"] = outside


def body():
    os.environ["GPUSHARE_ALL_NODES"] = "1"
    for name in CASES:
        run_case(name)


run(body)
