#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CLI through this release's kubectl: accounts, sign-ins on a terminal, failures, kill -9 and ^C."""

import os
import subprocess
import sys

from harness.case import check, run
from harness.control_plane import ROOT, built_program, kube_program

KUBE = ">=1.20"


def body():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/integration/kubectl/run.py"), "--build",
                           os.path.dirname(built_program("gpushare-extender"))], check=False,
                          env={**os.environ, "KUBECTL": kube_program("kubectl")})
    check(done.returncode == 0, "tests/integration/kubectl/run.py")


run(body)
