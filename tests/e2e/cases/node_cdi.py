#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--cdi-kind: a container runtime that knows CDI gives a container just the devices of its GPU; for one
that does not the option changes nothing."""

import json
import os
import subprocess

from harness.case import check, run
from harness.containers import Containerd
from harness.control_plane import ROOT
from harness.node import NodeCluster, real_pod
from harness.objects import IDX, annotation

KUBE = ">=1.31"
KIND = "nvidia.com/gpu"
GPUS = 2
LOOK = "; ".join(f"[ -c /dev/e2e{gpu} ] && echo DEVICE_{gpu}=there" for gpu in range(GPUS))


def specification(gpu):
    """As nvidia-ctk writes them, for a device that every machine has."""
    return {"name": f"GPU-fake-{gpu}", "containerEdits": {
        "env": [f"EDITED={gpu}"],
        "deviceNodes": [{"path": f"/dev/e2e{gpu}", "hostPath": "/dev/null"}]}}


def show(name, knows_cdi):
    run_dir = os.path.join(os.environ["GPUSHARE_RUN_DIR"], name)
    os.makedirs(run_dir)
    with NodeCluster(gpus=f"{GPUS}x16GiB", plugin_flags=("--cdi-kind", KIND),
                     run_dir=run_dir) as cluster:
        cluster.create_pods([real_pod(f"p{gpu}", 16, script=f"{LOOK}; env; exec sleep 1000000")
                             for gpu in range(GPUS)])
        places = {cluster.wait_true_record(f"p{gpu}") for gpu in range(GPUS)}
        check(places == {"0", "1"}, f"they run on {places}")
        for name in (f"p{gpu}" for gpu in range(GPUS)):
            mine = annotation(cluster.pod(name), IDX)
            environment = cluster.environment(name)["c0"]
            seen = [gpu for gpu in range(GPUS) if f"DEVICE_{gpu}" in environment]
            check(seen == ([int(mine)] if knows_cdi else []), f"{name} on GPU {mine} sees {seen}")
            check(environment.get("EDITED") == (mine if knows_cdi else None),
                  f"{name} on GPU {mine} has {environment.get('EDITED')}")


def body():
    show("debian", False)
    Containerd.programs = subprocess.run(
        [os.path.join(ROOT, "tests/e2e/containerd_build.sh")], check=True, text=True,
        stdout=subprocess.PIPE).stdout.strip()
    specs = os.path.join(os.environ["GPUSHARE_RUN_DIR"], "cdi")
    os.makedirs(specs)
    with open(os.path.join(specs, "gpus.json"), "w", encoding="ascii") as out:
        json.dump({"cdiVersion": "0.5.0", "kind": KIND,
                   "devices": [specification(gpu) for gpu in range(GPUS)]}, out)
    Containerd.more = f'  enable_cdi = true\n  cdi_spec_dirs = ["{specs}"]\n'
    show("newer", True)


run(body)
