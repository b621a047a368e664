#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A container's GPUs as CDI devices: with each --device-list-strategy that names them so a container
runtime that knows CDI gives the container just those, and one that does not changes nothing. Told by
the environment alone (envvar) such a runtime gives none: it is another runtime's word (38 s)."""

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
PLACEMENT = "aliyun.com/gpu-placement"
BOTH = ("--device-list-strategy", "envvar,cdi-cri")
CRI = ("--device-list-strategy", "cdi-cri")
NOTE = ("--device-list-strategy", "cdi-annotations")
ENVVAR = ("--device-list-strategy", "envvar")
LOOK = "; ".join(f"[ -c /dev/e2e{gpu} ] && echo DEVICE_{gpu}=there" for gpu in range(GPUS))


def specification(gpu):
    """As nvidia-ctk writes them, for a device that every machine has."""
    return {"name": f"GPU-fake-{gpu}", "containerEdits": {
        "env": [f"EDITED={gpu}"],
        "deviceNodes": [{"path": f"/dev/e2e{gpu}", "hostPath": "/dev/null"}]}}


def check_container(cluster, name, gives):
    mine = annotation(cluster.pod(name), IDX)
    environment = cluster.environment(name)["c0"]
    seen = [gpu for gpu in range(GPUS) if f"DEVICE_{gpu}" in environment]
    check(seen == ([int(mine)] if gives else []), f"{name} on GPU {mine} sees {seen}")
    check(environment.get("EDITED") == (mine if gives else None),
          f"{name} on GPU {mine} has {environment.get('EDITED')}")


def show(name, flags, gives):
    run_dir = os.path.join(os.environ["GPUSHARE_RUN_DIR"], name)
    os.makedirs(run_dir)
    with NodeCluster(gpus=f"{GPUS}x16GiB", plugin_flags=flags[0], run_dir=run_dir) as cluster:
        for turn, more in enumerate(flags):
            if turn:
                cluster.plugin.verify_and_stop()
                cluster.plugin.flags = ["--fake-gpus", f"{GPUS}x16GiB", *more]
                cluster.start_plugin()
            names = [f"p{turn}-{gpu}" for gpu in range(GPUS)]
            cluster.create_pods([real_pod(name, 4, script=f"{LOOK}; env; exec sleep 1000000",
                                          annotations={PLACEMENT: "spread"}) for name in names])
            for name in names:
                cluster.running(name)
                check_container(cluster, name, more in gives)
            places = {annotation(cluster.pod(name), IDX) for name in names}
            check(places == {"0", "1"}, f"they run on {places}")


def body():
    show("debian", (BOTH,), ())
    Containerd.programs = subprocess.run(
        [os.path.join(ROOT, "tests/e2e/containerd_build.sh")], check=True, text=True,
        stdout=subprocess.PIPE).stdout.strip()
    specs = os.path.join(os.environ["GPUSHARE_RUN_DIR"], "cdi")
    os.makedirs(specs)
    with open(os.path.join(specs, "gpus.json"), "w", encoding="ascii") as out:
        json.dump({"cdiVersion": "0.5.0", "kind": KIND,
                   "devices": [specification(gpu) for gpu in range(GPUS)]}, out)
    Containerd.more = f'  enable_cdi = true\n  cdi_spec_dirs = ["{specs}"]\n'
    show("newer", (BOTH, CRI, NOTE, ENVVAR), (BOTH, CRI, NOTE))


run(body)
