#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--hook-library: real containers get the library, what preloads it and their limit, and can change neither;
its word on every surface. A changed library is preloaded into nobody: the word is none, other pods start
without it, and one that insists is held until it is what was pinned again. The library is a mock
(20 to 35 s)."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile

from harness.case import check, run
from harness.control_plane import built_program
from harness.node import NodeCluster, real_pod
from harness.objects import INVENTORY, NAMESPACE, annotation
from harness.processes import wait_for

BYTES = "LIBRARY=mock\n"
PRELOAD = "/usr/local/vgpu/libvgpu.so"
LOOK = (f"echo PRELOAD=$(cat /etc/ld.so.preload); cat {PRELOAD}; "
        "{ echo x >/etc/ld.so.preload; } 2>/dev/null && echo OPEN=preload; "
        f"{{ echo x >{PRELOAD}; }} 2>/dev/null && echo OPEN=library; "
        "echo x >/usr/local/vgpu/mine && echo FOLDER=writable; echo x >/tmp/vgpulock/lock && echo LOCK=writable; "
        "env; exec sleep 1000000")
INSISTS = {"aliyun.com/gpu-enforce": "required"}


def install(path, text):
    with open(f"{path}.new", "w", encoding="ascii") as out:
        out.write(text)
    os.chmod(f"{path}.new", 0o644)
    os.rename(f"{path}.new", path)


def gpu(cluster):
    return json.loads(annotation(cluster.node_object(), INVENTORY))["gpus"][0]


def inspect(cluster, *words):
    return subprocess.run([built_program("kubectl-inspect-gpushare"), "--kubeconfig",
                           cluster.control_plane.kubeconfig("admin"), *words],
                          check=True, capture_output=True, text=True).stdout


def hook_pod(name, units, **kwargs):
    return real_pod(name, units, script=LOOK, **kwargs)


def check_container(cluster, name, gib, hooked):
    cluster.running(name)
    seen = cluster.environment(name)["c0"]
    expected = {"CUDA_DEVICE_MEMORY_LIMIT_0": f"{gib * 1024}m", "FOLDER": "writable", "LOCK": "writable",
                "OPEN": None, "PRELOAD": PRELOAD if hooked else "", "LIBRARY": "mock"}
    for key, value in expected.items():
        check(seen.get(key) == value, f"{name}: {key} is {seen.get(key)}, not {value}")


def steps(cluster, library):
    wait_for("the GPU's word", lambda: gpu(cluster)["enforced"] == "hook")
    cluster.create_pods([hook_pod("a", 8), hook_pod("insists", 2, annotations=INSISTS)])
    check_container(cluster, "a", 8, hooked=True)
    check_container(cluster, "insists", 2, hooked=True)
    check("  hook  " in inspect(cluster, "why", f"{NAMESPACE}/a"), "why of a")

    install(library, BYTES.replace("mock", "another"))
    wait_for("the word is none", lambda: gpu(cluster)["enforced"] == "none")
    check(gpu(cluster)["enforcedReason"] == "hook-unavailable", "another reason")
    cluster.delete_pod("insists")
    cluster.create_pods([hook_pod("b", 4)])
    check_container(cluster, "b", 4, hooked=False)
    cluster.create_pods([hook_pod("held", 2, annotations=INSISTS)])
    wait_for("the start of held is blocked",
             lambda: "start blocked: the pod may require" in cluster.plugin.process.log_text())
    check(not any("running" in state["state"] for state in
                  cluster.pod("held")["status"].get("containerStatuses", ())), "held runs")
    install(library, BYTES)
    check_container(cluster, "held", 2, hooked=True)
    wait_for("the word is back", lambda: gpu(cluster)["enforced"] == "hook")
    cluster.wait_inspect_agrees()


def body():
    folder = tempfile.mkdtemp(prefix="hook")
    os.chmod(folder, 0o755)
    library = f"{folder}/libvgpu.so"
    install(library, BYTES)
    flags = ("--fake-gpus", "1x16GiB", "--hook-library", library, "--hook-sha256",
             hashlib.sha256(BYTES.encode()).hexdigest(), "--hook-root", f"{folder}/root")
    try:
        with NodeCluster(plugin_flags=flags) as cluster:
            steps(cluster, library)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


run(body)
