#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What has to be so on such a node: one function per case, its first line says what it shows."""

import json
import os
import re
import time

from harness.control_plane import ROOT
from harness.install import NEXT_TAG
from harness.objects import unschedulable_message
from harness.processes import wait_for

from checks import RESTARTS, check, limit_of, line_of, restart, says, told, uses
from cluster import GIB, NODE, REGIONS, SYSTEM, UUIDS
from pods import USER, share_pod
from stock import STOCK, waiting

MPS_STAND_IN = os.path.join(ROOT, "tests/support/mps/nvidia-cuda-mps-control")
TEN = ("share", "two_containers", "first_container", "init_and_sidecar", "exec_and_child", "classes", "leaf",
       "removed", "restarts", "static_pod")
NO_LIMIT = ("cdi", "mig", "mps")
CASES = {}  # on a kernel with dmem


def case(function):
    CASES[function.__name__] = function
    return function


@case
def share(cluster):
    """The share is given, a quarter more is refused, and the neighbour on the same GPU is untouched."""
    cluster.create(share_pod("held", 4, "charge 4; charge 1"), share_pod("neighbour", 8, "charge 8"))
    for name in ("held", "neighbour"):
        cluster.running(name)
    check(cluster.gpu_of("held") == cluster.gpu_of("neighbour") == "0", "both are on GPU 0")
    limit_of(cluster, "held", 4)
    limit_of(cluster, "neighbour", 8)
    says(cluster, "held", "c0", "given 4", "refused 1")
    says(cluster, "neighbour", "c0", "given 8")
    uses(cluster, "held", 4)
    uses(cluster, "neighbour", 8)
    told(cluster, "held", "c0", "charge 1", "refused 1")
    uses(cluster, "neighbour", 8)


@case
def two_containers(cluster):
    """Two containers share one limit, the pod's."""
    cluster.create(share_pod("two", [2, 2], "charge 3", "sleep 5; charge 2; charge 1; charge 1"))
    cluster.running("two")
    limit_of(cluster, "two", 4)
    says(cluster, "two", "c0", "given 3")
    says(cluster, "two", "c1", "refused 2", "given 1", "refused 1")


@case
def first_container(cluster):
    """A first container without gpu-mem, privileged, grabs before the second one starts."""
    cluster.create(share_pod("grab", [0, 4], "charge 12; charge 5; charge 1", "sleep 5; charge 4; charge 3",
                             privileged=(0,)))
    cluster.running("grab")
    limit_of(cluster, "grab", 4, int(cluster.gpu_of("grab")))
    says(cluster, "grab", "c0", "refused 12", "refused 5", "given 1")
    says(cluster, "grab", "c1", "refused 4", "given 3")


@case
def init_and_sidecar(cluster):
    """An init container and a sidecar are under the pod's limit, too."""
    made = share_pod("init", [4], "charge 3; charge 1")
    made["spec"]["initContainers"] = [
        {**share_pod("x", 4, "charge 5; charge 4", stays=False)["spec"]["containers"][0], "name": "i0"},
        {**share_pod("x", [0], "charge 5; charge 1", privileged=(0,))["spec"]["containers"][0],
         "name": "side", "restartPolicy": "Always"}]
    cluster.create(made)
    cluster.running("init")
    limit_of(cluster, "init", 4, int(cluster.gpu_of("init")))
    says(cluster, "init", "i0", "refused 5", "given 4")
    says(cluster, "init", "side", "refused 5", "given 1")
    says(cluster, "init", "c0", "given 3", "refused 1")


@case
def exec_and_child(cluster):
    """kubectl exec, an ephemeral container and a child that outlives its parent are under it, too."""
    cluster.create(share_pod("one", 4, "charge 2"))
    cluster.running("one")
    told(cluster, "one", "c0", "charge 3", "refused 3")
    cluster.exec("one", "c0", "(charge 2; exec sleep 1000) >/dev/null 2>&1 & sleep 3")
    uses(cluster, "one", 4)
    told(cluster, "one", "c0", "charge 1", "refused 1")
    cluster.kubectl("debug", "one", "--image=gpushare.e2e/box:1", "--image-pull-policy=Never",
                    "--container=late", "--profile=sysadmin", "--", "sh", "-c",
                    f"{USER}; charge 1; exec sleep 1000000")
    wait_for("the ephemeral container runs", lambda: cluster.logs("one", "late", 1), 120)
    says(cluster, "one", "late", "refused 1")


@case
def classes(cluster):
    """Pods of all three QoS classes, each in the slice of its class."""
    cluster.create(share_pod("effort", 2, "charge 2; charge 1"),
                   share_pod("burst", 2, "charge 2; charge 1", requests={"cpu": "10m"}),
                   share_pod("sure", 2, "charge 2; charge 1",
                             limits={"cpu": "100m", "memory": "64Mi"}))
    for name, qos in (("effort", "BestEffort"), ("burst", "Burstable"), ("sure", "Guaranteed")):
        cluster.running(name)
        place = cluster.slice_of(name).removeprefix(cluster.cgroups.root + "/")
        check(os.path.dirname(place) == cluster.cgroups.classes[qos], f"{name} is in the folder of {qos}", place)
        limit_of(cluster, name, 2, int(cluster.gpu_of(name)))
        says(cluster, name, "c0", "given 2", "refused 1")


@case
def leaf(cluster):
    """A program reads the pod's limit in its own cgroup, as a CUDA program would be told it."""
    cluster.create(share_pod("leaf", 4, "charge 1"))
    cluster.running("leaf")
    gpu = int(cluster.gpu_of("leaf"))
    text = wait_for("its own dmem.max", lambda: cluster.exec(
        "leaf", "c0", "cat /sys/fs/cgroup/dmem.max"), 30)
    check(line_of(text, gpu) == f"{REGIONS[gpu]} {4 * GIB}", "its own cgroup has the pod's limit",
          line_of(text, gpu))


@case
def removed(cluster):
    """A pod is deleted, and the next one's limit is its own."""
    cluster.create(share_pod("first", 12, "charge 12; charge 1"))
    cluster.running("first")
    limit_of(cluster, "first", 12, int(cluster.gpu_of("first")))
    cluster.kubectl("delete", "pod", "first", "--grace-period=1")
    cluster.create(share_pod("first", 2, "charge 2; charge 1"))
    cluster.running("first")
    limit_of(cluster, "first", 2, int(cluster.gpu_of("first")))
    says(cluster, "first", "c0", "given 2", "refused 1")


def still(cluster, what):
    """The pod that runs is refused as before, and a new one has its limit."""
    limit_of(cluster, "runs", 4, 0)
    told(cluster, "runs", "c0", "charge 1", "refused 1")
    name = f"after-{what}"
    cluster.create(share_pod(name, 2, "charge 2; charge 1"))
    cluster.running(name)
    limit_of(cluster, name, 2, int(cluster.gpu_of(name)))
    says(cluster, name, "c0", "given 2", "refused 1")
    cluster.kubectl("delete", "pod", name, "--grace-period=0", "--force")


@case
def restarts(cluster):
    """SIGKILL of the plugin, restart of kubelet and containerd, daemon-reload: limits and ledger stay."""
    cluster.create(share_pod("runs", 4, "charge 4; charge 1"))
    cluster.running("runs")
    for what, command, again in RESTARTS:
        restart(cluster, command, again)
        still(cluster, what)
    check(cluster.problems(complete=False) == [], "the ledger, computed from the API alone, is right")


@case
def rollout(cluster):
    """A rollout of the plugin, from preferred to observe and back, changes no running pod's limit."""
    cluster.create(share_pod("runs", 4, "charge 4; charge 1"))
    cluster.running("runs")
    cluster.roll_out("observe")
    limit_of(cluster, "runs", 4, 0)
    told(cluster, "runs", "c0", "charge 1", "refused 1")
    cluster.create(share_pod("free", 4, "charge 4; charge 2"))
    cluster.running("free")
    says(cluster, "free", "c0", "given 4", "given 2")
    wait_for("observe tells whom a limit would break",
             lambda: "GpuMemoryWouldBeBlocked" in cluster.events("free"), 90, interval_s=1)
    check("GpuMemoryWouldBeBlocked" not in cluster.events("runs"),
          "observe names who would be refused, and nobody else", cluster.event("free"))
    cluster.roll_out("preferred")
    wait_for("free is held at what it uses", lambda: line_of(
        cluster.cgroup("free", "dmem.max"), int(cluster.gpu_of("free"))).endswith(f" {6 * GIB}"), 60)
    told(cluster, "free", "c0", "charge 1", "refused 1")
    check(all(state["restartCount"] == 0 for name in ("free", "runs")
              for state in cluster.pod(name)["status"]["containerStatuses"]), "nobody was ended")


@case
def resize(cluster):
    """CPU and memory of a running pod are resized in place, and the limit stays."""
    cluster.create(share_pod("grows", 4, "charge 4", requests={"cpu": "10m", "memory": "32Mi"}))
    cluster.running("grows")
    cluster.kubectl("patch", "pod", "grows", "--subresource=resize", "-p",
                    '{"spec":{"containers":[{"name":"c0","resources":{"requests":'
                    '{"cpu":"20m","memory":"48Mi"}}}]}}')
    wait_for("the kubelet has resized it", lambda: cluster.pod("grows")["status"]["containerStatuses"]
             [0].get("resources", {}).get("requests", {}).get("cpu") == "20m", 90, interval_s=1)
    limit_of(cluster, "grows", 4, int(cluster.gpu_of("grows")))
    told(cluster, "grows", "c0", "charge 1", "refused 1")


@case
def static_pod(cluster):
    """A static pod, that only the kubelet knows at first."""
    cluster.static("fixed", share_pod("fixed", 4, "charge 4; charge 1"))
    name = f"fixed-{NODE}"
    cluster.running(name)
    limit_of(cluster, name, 4, int(cluster.gpu_of(name)))
    says(cluster, name, "c0", "given 4", "refused 1")


@case
def crun(cluster):
    """Another container runtime, crun, which knows no dmem: the pod's limit holds all the same."""
    cluster.runtime_class("crun")
    cluster.create(share_pod("crun", [0, 4], "charge 5; charge 1", "charge 3; charge 1",
                             privileged=(0,), runtimeClassName="crun"))
    cluster.running("crun")
    limit_of(cluster, "crun", 4, int(cluster.gpu_of("crun")))
    says(cluster, "crun", "c0", "refused 5", "given 1")
    says(cluster, "crun", "c1", "given 3", "refused 1")


@case
def requires_limit(cluster):
    """A pod that requires its limit (gpu-enforce: required) starts, and has it."""
    made = share_pod("insists", 4, "charge 4; charge 1")
    made["metadata"]["annotations"]["aliyun.com/gpu-enforce"] = "required"
    cluster.create(made)
    cluster.running("insists")
    limit_of(cluster, "insists", 4, int(cluster.gpu_of("insists")))
    says(cluster, "insists", "c0", "given 4", "refused 1")
    labels = cluster.node_object()["metadata"]["labels"]
    check(labels.get("aliyun.com/gpu-enforced") == cluster.word, "the node's label says so",
          f"aliyun.com/gpu-enforced: {labels.get('aliyun.com/gpu-enforced')}")


@case
def usage(cluster):
    """What the CLI says that pods use, through the API server's proxy, is what they took."""
    cluster.create(share_pod("took", 8, "charge 3"))
    cluster.running("took")
    said = wait_for("inspect pods reports it", lambda: re.search(
        rf"^default +took +real +8\.0 +3\.0 +3\.0 +5\.0 +4\.0 .*{cluster.word}", cluster.inspect("pods", "--by", "pod"),
        re.M), 60, interval_s=2)
    check(bool(said), "8 GiB given, 3 used", said.group(0))


@case
def fifty(cluster):
    """Fifty pods at once, each with its limit before its first program takes."""
    names = [f"many-{number}" for number in range(50)]
    cluster.create(*(share_pod(name, 1, "charge 1; charge 1") for name in names))
    for name in names:
        cluster.running(name, 900)
        limit_of(cluster, name, 1, int(cluster.gpu_of(name)))
        says(cluster, name, "c0", "given 1", "refused 1")
    check(cluster.problems(complete=False) == [], "the ledger, computed from the API alone, is right")


@case
def observe_names(cluster):
    """observe names exactly the pods that required then refuses memory: who takes more than its request."""
    takes = {"over": (4, "charge 4; charge 2"), "full": (4, "charge 4; true"),
             "under": (4, "charge 1; true"), "late": (2, "charge 2; sleep 5; charge 1")}

    def create():
        cluster.create(*(share_pod(name, gib, script) for name, (gib, script) in takes.items()))
        for name in takes:
            cluster.running(name)

    cluster.roll_out("observe")
    create()
    events = wait_for("the last one is named", lambda: "GpuMemoryWouldBeBlocked" in cluster.events("late"), 90)
    time.sleep(12)  # one more pass over all pods
    events = {name: cluster.events(name) for name in takes}
    named = {name for name, reasons in events.items() if "GpuMemoryWouldBeBlocked" in reasons}
    said = cluster.event("over")
    cluster.settle(restore=False)
    cluster.roll_out("required")
    create()
    time.sleep(8)
    refused = {name for name in takes if "refused" in cluster.kubectl("logs", name)}
    check(named == refused == {"over", "late"}, "who is named is who is refused",
          f"{sorted(named)}, {sorted(refused)}: {said}")


@case
def upgrade(cluster):
    """From observe to required, with the next images, under running pods: nobody is ended."""
    cluster.roll_out("observe")
    cluster.create(share_pod("runs", 4, "charge 4"), share_pod("over", 4, "charge 4; charge 2"))
    for name in ("runs", "over"):
        cluster.running(name)
    lives = {name: cluster.life_of(name) for name in ("runs", "over")}
    cluster.roll_out("required", tag=NEXT_TAG)
    limit_of(cluster, "runs", 4, int(cluster.gpu_of("runs")))
    limit_of(cluster, "over", 6, int(cluster.gpu_of("over")))
    for name, life in lives.items():
        told(cluster, name, "c0", "charge 1", "refused 1")
        check(cluster.life_of(name) == life, f"{name}: the same container, never restarted", life[0])
    cluster.create(share_pod("new", 2, "charge 2; charge 1"))
    cluster.running("new")
    says(cluster, "new", "c0", "given 2", "refused 1")
    check(cluster.problems(complete=False) == [], "the ledger, computed from the API alone, is right")


@case
def reboot(cluster):
    """The node reboots while the API server is away: limits and ledger are right once it is back."""
    cluster.create(share_pod("runs", 4, "charge 4; charge 1", restartPolicy="Always"))
    cluster.running("runs")
    born = cluster.machine.read("/proc/sys/kernel/random/boot_id")
    cluster.reboot(away_s=20)
    check(cluster.machine.read("/proc/sys/kernel/random/boot_id") != born, "the node has booted anew")
    wait_for("the plugin is back", cluster.plugin.ready, 300, interval_s=1)
    cluster.layout.wait_ready(300)
    wait_for("the kubelet offers the GPUs", lambda: cluster.gpu_memory() == cluster.units, 240, interval_s=1)
    made = wait_for("the kubelet has decided about the pod that ran", lambda: cluster.decided("runs"), 300,
                    interval_s=1)
    if made["status"]["phase"] == "Running":
        limit_of(cluster, "runs", 4, int(cluster.gpu_of("runs")))
        told(cluster, "runs", "c0", "charge 1", "refused 1")
    else:  # a kubelet starts no pod again whose devices nobody offers yet
        check(made["status"]["reason"] == "UnexpectedAdmissionError", "the kubelet ended the pod that ran",
              made["status"]["message"])
    cluster.create(share_pod("new", 12, "charge 12; charge 1"))
    cluster.running("new")
    limit_of(cluster, "new", 12, int(cluster.gpu_of("new")))
    says(cluster, "new", "c0", "given 12", "refused 1")
    check(cluster.problems(complete=False) == [], "the ledger, computed from the API alone, is right")


@case
def cdi(cluster):
    """The kubelet passes CDI's name of a GPU on, and containerd makes that one's device."""
    cluster.create(share_pod("first", 16, "charge 16"), share_pod("second", 4, "charge 4"))
    for name in ("first", "second"):
        cluster.running(name)
        gpu = cluster.gpu_of(name)
        said = cluster.exec(name, "c0", "echo /dev/fakegpu* $ALIYUN_COM_GPU_MEM_IDX")
        check(said == f"/dev/fakegpu{gpu} {gpu}", f"kubectl exec {name}: its GPU's device alone", said)
    log = cluster.machine.do("journalctl --no-pager -o cat -u containerd -g 'CDI devices from CRI.*GPU-' | tail -n 1")
    check("nvidia.com/gpu=GPU-" in log, "containerd was told by the kubelet", log.split('msg="')[-1].strip())


@case
def mig(cluster):
    """An instance of a card (MIG): its word is mig while one pod is there, none with two; no limit of the
    kernel stands there, and a pod that requires it on one does not start."""
    cluster.set_cards(("MIG-0", *UUIDS[1:]))
    on_it = {"aliyun.com/gpu-uuid": "MIG-0"}
    wait_for("the instance's word", lambda: cluster.gpu("MIG-0").get("enforced") == "mig", 60)
    cluster.create(share_pod("one", 4, "charge 4; charge 1", annotations=on_it))
    cluster.running("one")
    says(cluster, "one", "c0", "given 4", "given 1")
    text = line_of(cluster.cgroup("one", "dmem.max"))
    check(text == f"{REGIONS[0]} max", "no limit in its slice", text)
    said = shown(cluster, "MIG-0")
    check(said == "inspect: mig", "alone there: mig", said)
    cluster.create(share_pod("two", 4, "charge 4", annotations=on_it))
    cluster.running("two")
    said = wait_for("the word of two", lambda: shown(cluster, "MIG-0") == "inspect: none" and
                    shown(cluster, "MIG-0"), 60)
    check(bool(said), "two there: none", said)
    cluster.create(share_pod("insists", 4, "charge 4", annotations={
        **on_it, "aliyun.com/gpu-enforce": "required"}))
    said = wait_for("why it does not start", lambda: refusal(cluster, "insists"), 120, interval_s=1)
    check("MIG" in said or "instance" in said, "which requires a limit does not start there", said)


def shown(cluster, uuid):
    """What inspect says of it."""
    gpus = json.loads(cluster.inspect("-o", "json"))["nodes"][0]["devs"]
    return f"inspect: {next(gpu['enforced'] for gpu in gpus if gpu['uuid'] == uuid)}"


def refusal(cluster, name):
    """Why a pod does not start: kube-scheduler's word, the kubelet's, or an Event of ours."""
    made = cluster.pod(name)
    event = cluster.event(name)
    return (waiting(made) or (event if event != "no Event" else "") or
            unschedulable_message(made))


@case
def mps(cluster):
    """MPS: the daemons run as the shipped DaemonSet, the GPUs' word is theirs, and a pod is told its share;
    NVIDIA's daemon is a mock."""
    with open(MPS_STAND_IN, encoding="utf-8") as text:
        cluster.put("/usr/bin/nvidia-cuda-mps-control", text.read())
    cluster.machine.do("chmod 755 /usr/bin/nvidia-cuda-mps-control")
    cluster.roll_out("observe", mps=True)
    wait_for("every GPU has its daemon", lambda: all(
        cluster.gpu(uuid).get("enforced") == "mps" for uuid in UUIDS), 240, interval_s=1)
    said = cluster.inspect("-o", "wide")
    check("mps (per process, cooperative)" in said, "inspect -o wide has the word", shown(cluster, UUIDS[0]))
    cluster.create(share_pod("client", 4, "charge 4"))
    cluster.running("client")
    said = cluster.exec("client", "c0", "echo $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT "
                        "/tmp/nvidia-mps/control")
    check(said == "/tmp/nvidia-mps 0=4096M /tmp/nvidia-mps/control", "the pod is told its share", said)
    text = line_of(cluster.cgroup("client", "dmem.max"))
    check(text.endswith(" max"), "and the kernel has no limit of it", text)


if __name__ == "__main__":
    for name, function in (CASES | STOCK).items():
        print(f"{name:18} {'--stock' if name in STOCK else '':8} {function.__doc__.splitlines()[0]}")
