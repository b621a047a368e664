#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--mps-root: real containers are given their limit and their part of the compute, the pipes of their
GPU's daemon and its /dev/shm, unless the pod brings its own; 8/10 + 2/10 of a card, then 5/10 + 3/10 + 2/10,
without touching the plugin; it starts anew under them. The pod beyond maxPods waits and knows why; who sets
CUDA_MPS_* itself is named; without the daemon nobody new starts. NVIDIA's daemon is a mock (25 to 40 s)."""

import json
import os
import shutil
import subprocess
import tempfile

from harness.case import check, run
from harness.control_plane import built_program
from harness.node import NodeCluster, real_pod
from harness.objects import GPU_CORES, INVENTORY, NAMESPACE, annotation, with_cores
from harness.processes import wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
STAND_IN = f"{ROOT}/tests/support/mps/nvidia-cuda-mps-control"
UUID = "GPU-mps"
SPOILT = [{"name": "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "value": "100"}]
LOOK = ("[ -S /tmp/nvidia-mps/control ] && ! touch /tmp/nvidia-mps/x && echo PIPE=yes; touch /dev/shm/$(hostname)-$NAME; env; "
        "exec sleep 1000000")


def gpu_file(folder):
    path = os.path.join(folder, "gpus.json")
    with open(path, "w", encoding="ascii") as out:
        json.dump({"v": 1, "unit": "GiB", "gpus": [
            {"idx": 0, "uuid": UUID, "mem": 20, "memMiB": 20480, "maxPods": 3}]}, out)
    return path


def start_mps(cluster, root, gpus):
    """In a mount namespace whose /opt/bin has the mock; before, what the DaemonSet's first container does."""
    subprocess.run([built_program("gpushare-mps"), "--root", root, "--mount-shm"], check=True)
    shm = os.statvfs(f"{root}/shm")
    check(shm.f_blocks * shm.f_frsize == 1 << 30, "/dev/shm of clients has no size of its own")
    prepare = f"mount -t tmpfs tmpfs /opt && mkdir /opt/bin && cp {STAND_IN} /opt/bin && exec \"$@\""
    cluster.processes.start("gpushare-mps", [
        "unshare", "-m", "sh", "-c", prepare, "sh", built_program("gpushare-mps"), "--root", root,
        "--gpu-file", gpus])


def starts(root):
    with open(f"{root}/{UUID}/log/started", encoding="ascii") as lines:
        return len(lines.readlines())


def mps_pod(name, units, own_shm=False, env=()):
    made = real_pod(name, units, script=LOOK)
    container = made["spec"]["containers"][0]
    container["env"] = [{"name": "NAME", "value": name}, *env]
    if own_shm:
        made["spec"]["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
        container["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
    return made


def check_container(cluster, root, name, gib, own_shm=False, cores=None):
    cluster.running(name)
    seen = cluster.environment(name)["c0"]
    expected = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps", "PIPE": "yes",
                "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={gib * 1024}M",
                "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": cores}
    for key, value in expected.items():
        check(seen.get(key) == value, f"{name}: {key} is {seen.get(key)}, not {value}")
    touched = any(entry.endswith(f"-{name}") for entry in os.listdir(f"{root}/shm"))
    check(touched != own_shm, f"{name}: its /dev/shm is {'' if touched else 'not '}the daemons'")


def gpu_of(cluster):
    return json.loads(annotation(cluster.node_object(), INVENTORY))["gpus"][0]


def body():
    root = tempfile.mkdtemp(prefix="mps")
    os.chmod(root, 0o755)
    gpus = gpu_file(os.environ["GPUSHARE_RUN_DIR"])
    try:
        with NodeCluster(plugin_flags=("--gpu-file", gpus, "--mps-root", root)) as cluster:
            steps(cluster, root, gpus)
    finally:
        subprocess.run(["umount", "--lazy", f"{root}/shm"], check=False)
        shutil.rmtree(root, ignore_errors=True)


def why(cluster, name):
    return subprocess.run([built_program("kubectl-inspect-gpushare"), "--kubeconfig",
                           cluster.control_plane.kubeconfig("admin"), "why", f"{NAMESPACE}/{name}"],
                          check=True, capture_output=True, text=True).stdout


def waits_for(cluster, name, words):
    def reason():
        return any(words in condition.get("message", "")
                   for condition in cluster.pod(name)["status"].get("conditions", ()))
    wait_for(f"{name} waits: {words}", reason)


def steps(cluster, root, gpus):
    check(gpu_of(cluster)["enforcedReason"] == "mps-unavailable",
          "a GPU without its daemon says otherwise")
    start_mps(cluster, root, gpus)
    wait_for("the GPU has its daemon", lambda: gpu_of(cluster)["healthy"])
    wait_for("the GPU's word", lambda: gpu_of(cluster)["enforced"] == "mps")
    check(gpu_of(cluster)["maxPods"] == 3, "maxPods is another")

    check(cluster.node_object()["status"]["capacity"].get(GPU_CORES) == "100", "no compute is offered")
    cluster.create_pods([with_cores(mps_pod("a", 16), 30), mps_pod("b", 4, own_shm=True)])
    check_container(cluster, root, "a", 16, cores="30")
    check_container(cluster, root, "b", 4, own_shm=True)
    cluster.plugin.verify_and_stop()
    cluster.start_plugin()
    for name in ("a", "b"):
        cluster.running(name)
        cluster.delete_pod(name)
    check(starts(root) == 1, "the daemon was started anew")

    cluster.create_pods([mps_pod("c", 10), mps_pod("d", 6), mps_pod("e", 4, env=SPOILT)])
    for name, gib, cores in (("c", 10, None), ("d", 6, None), ("e", 4, "100")):
        check_container(cluster, root, name, gib, cores=cores)
    wait_for("e is named", lambda: "GpuEnvironmentOverridden" in cluster.events("e"))
    check("its limit is not enforced" in why(cluster, "e"), f"why says {why(cluster, 'e')}")
    cluster.delete_pod("e")
    cluster.create_pods([mps_pod("f", 2)])
    cluster.wait_bound("f")
    cluster.create_pods([mps_pod("g", 2)])
    waits_for(cluster, "g", "pod limit (MPS")
    cluster.delete_pod("f")
    cluster.delete_pod("d")
    cluster.running("g")

    log = f"{root}/{UUID}/log"
    for what in ("refuse", "die"):
        with open(f"{log}/{what}", "w", encoding="ascii"):
            pass
    wait_for("the GPU is without its daemon", lambda: not gpu_of(cluster)["healthy"])
    cluster.create_pods([mps_pod("i", 2)])
    waits_for(cluster, "i", "unhealthy or cordoned")
    os.unlink(f"{log}/refuse")
    check_container(cluster, root, "i", 2)
    cluster.wait_inspect_agrees()


run(body)
