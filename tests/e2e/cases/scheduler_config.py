#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Doctor calls those configurations wrong with which this release's kube-scheduler does not start."""

import os
import subprocess
import sys

from harness.case import check, run
from harness.control_plane import ROOT, built_program, kube_program

KUBE = ">=1.20"


def body():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/integration/scheduler_config/run.py"),
                           os.path.dirname(built_program("gpushare-extender")), kube_program("kube-scheduler")],
                          check=False)
    check(done.returncode == 0, "tests/integration/scheduler_config/run.py")


run(body)
