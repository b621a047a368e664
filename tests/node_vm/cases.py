#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What has to be so on such a node: one function per case, its first line says what it shows. A line
PASS or FAIL for each promise, with what the kernel, the kubelet or the container said."""

import os
import re

from harness.objects import GPU_MEM
from harness.processes import wait_for

from cluster import GIB, NODE, PODS_SLICE, REGIONS, SYSTEM
from pods import USER, share_pod

FAILED = []
CASES = {}  # on a kernel with dmem
STOCK = {}  # on Debian's


def case(function):
    CASES[function.__name__] = function
    return function


def stock(function):
    STOCK[function.__name__] = function
    return function


def check(true, words, evidence=""):
    print(f"{'PASS' if true else 'FAIL'}  {words}" + (f": {evidence}" if evidence else ""), flush=True)
    if not true:
        FAILED.append(words)


def limit_of(cluster, name, gib, gpu=0):
    """The kernel's own word, in the systemd slice of the pod."""
    line = f"{REGIONS[gpu]} {gib * GIB}"
    text = cluster.cgroup(name, "dmem.max")
    check(line in text.splitlines(), f"{name}: {gib} GiB in dmem.max of its slice",
          f"{cluster.slice_of(name)}/dmem.max: {line_of(text, gpu)}")


def line_of(text, gpu=0):
    return next((line for line in text.splitlines() if line.startswith(REGIONS[gpu])), "no line")


def uses(cluster, name, gib, gpu=0):
    text = cluster.cgroup(name, "dmem.current")
    check(line_of(text, gpu) == f"{REGIONS[gpu]} {gib * GIB}", f"{name}: it uses {gib} GiB",
          f"dmem.current: {line_of(text, gpu)}")


def plain(line):
    """Without the errno."""
    return line.split(" (")[0]


def says(cluster, name, container, *words):
    """What the container's program wrote, by kubectl logs."""
    log = cluster.logs(name, container, len(words))
    check([plain(line) for line in log] == list(words), f"{name}/{container}: {', '.join(words)}", "; ".join(log))


def told(cluster, name, container, command, word):
    """What a program says that kubectl exec starts there."""
    said = cluster.exec(name, container, command)
    check(plain(said) == word, f"kubectl exec {name} -c {container}: {word}", said)


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
    for name, folder in (("effort", "kubepods-besteffort.slice"), ("burst", "kubepods-burstable.slice"),
                         ("sure", "")):
        cluster.running(name)
        place = cluster.slice_of(name).removeprefix(PODS_SLICE + "/")
        check(os.path.dirname(place) == folder, f"{name} is in {folder or 'kubepods.slice itself'}", place)
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


# What, how, and whether the plugin registers anew.
RESTARTS = (("sigkill", "kill -KILL $(pidof gpushare-device-plugin)", True),
            ("kubelet", "systemctl restart kubelet", True),
            ("containerd", "systemctl restart containerd", False),
            ("daemon-reload", "systemctl daemon-reload", False),
            ("daemon-reexec", "systemctl daemon-reexec", False))


def restart(cluster, command, again):
    if not again:
        cluster.machine.do(command)
        return
    with cluster.registers_again():
        cluster.machine.do(command)


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
    cluster.set_mode("observe")
    limit_of(cluster, "runs", 4, 0)
    told(cluster, "runs", "c0", "charge 1", "refused 1")
    cluster.create(share_pod("free", 4, "charge 4; charge 2"))
    cluster.running("free")
    says(cluster, "free", "c0", "given 4", "given 2")
    wait_for("observe tells whom a limit would break",
             lambda: "GpuMemoryWouldBeRefused" in cluster.events("free"), 90, interval_s=1)
    check("GpuMemoryWouldBeRefused" not in cluster.events("runs"),
          "observe names who would be refused, and nobody else", cluster.event("free"))
    cluster.set_mode("preferred")
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
def insists(cluster):
    """A pod that insists on its limit (gpu-enforce: required) starts, and has it."""
    made = share_pod("insists", 4, "charge 4; charge 1")
    made["metadata"]["annotations"]["aliyun.com/gpu-enforce"] = "required"
    cluster.create(made)
    cluster.running("insists")
    limit_of(cluster, "insists", 4, int(cluster.gpu_of("insists")))
    says(cluster, "insists", "c0", "given 4", "refused 1")
    labels = cluster.node_object()["metadata"]["labels"]
    check(labels.get("aliyun.com/gpu-enforced") == "dmem", "the node's label says so",
          f"aliyun.com/gpu-enforced: {labels.get('aliyun.com/gpu-enforced')}")


@case
def usage(cluster):
    """What the CLI says that pods use, through the API server's proxy, is what they took."""
    cluster.create(share_pod("took", 8, "charge 3"))
    cluster.running("took")
    said = wait_for("inspect usage tells it", lambda: re.search(
        r"^default +took +real +8\.0 +3\.0 +3\.0 +5\.0 +dmem", cluster.inspect("usage", "--by", "pod"),
        re.M), 60, interval_s=2)
    check(bool(said), "8 GiB given, 3 used", said.group(0))


@case
def fifteen(cluster):
    """Fifteen pods at once, each with its limit before its first program takes."""
    names = [f"many-{number}" for number in range(15)]
    cluster.create(*(share_pod(name, 2, "charge 2; charge 1") for name in names))
    for name in names:
        cluster.running(name, 600)
        limit_of(cluster, name, 2, int(cluster.gpu_of(name)))
        says(cluster, name, "c0", "given 2", "refused 1")


@stock
def as_deployed(cluster):
    """A pod applied with kubectl runs in its systemd slice, with the device of the GPU that it was given."""
    cluster.create(share_pod("runs", 4, "charge 4", requests={"cpu": "10m"}), share_pod("next", 8, "charge 8"))
    for name, folder in (("runs", "kubepods-burstable.slice"), ("next", "kubepods-besteffort.slice")):
        made = cluster.running(name)
        place = cluster.slice_of(name)
        check(os.path.dirname(place) == f"{PODS_SLICE}/{folder}", f"{name} is in a slice of its class", place)
        scopes = cluster.machine.do(f"ls {place} | grep scope").split()
        check(len(scopes) == 2 and all(scope.startswith("cri-containerd-") for scope in scopes),
              "its sandbox and its container are scopes of systemd's there", " ".join(scopes))
        gpu = cluster.gpu_of(name)
        said = cluster.exec(name, "c0", "ls /dev | grep fakegpu; echo $ALIYUN_COM_GPU_MEM_IDX")
        check(said.split() == [f"fakegpu{gpu}", gpu], f"kubectl exec {name}: only its GPU's device", said)
        says(cluster, name, "c0", f"given {made['spec']['containers'][0]['resources']['limits'][GPU_MEM]}")
    check(cluster.problems(complete=False) == [], "the ledger, computed from the API alone, is right")


@stock
def no_controller(cluster):
    """Without dmem in the kernel nothing is limited, and everybody is told why."""
    cluster.create(share_pod("free", 4, "charge 4; charge 2"))
    cluster.running("free")
    says(cluster, "free", "c0", "given 4", "given 2")
    labels = cluster.node_object()["metadata"]["labels"]
    check("aliyun.com/gpu-enforced" not in labels, "the node's label does not say that limits hold")
    doctor = cluster.inspect("doctor")
    told = [line for line in doctor.splitlines() if "limits" in line]
    check(any("no dmem controller" in line for line in told), "doctor says why", " | ".join(told))


@stock
def insists_in_vain(cluster):
    """A pod that insists on its limit is not started where there is none."""
    made = share_pod("insists", 4, "charge 4")
    made["metadata"]["annotations"]["aliyun.com/gpu-enforce"] = "required"
    cluster.create(made)
    message = wait_for("the kubelet says why", lambda: waiting(cluster.pod("insists")), 180, interval_s=1)
    check("dmem" in message, "its container waits", message)


def waiting(made):
    states = made["status"].get("containerStatuses") or [{"state": {}}]
    return states[0]["state"].get("waiting", {}).get("message")


def goes_on(cluster, what):
    """The pod that runs is not restarted, and a new one gets its GPU."""
    name = f"after-{what}"
    cluster.create(share_pod(name, 2, "charge 2"))
    cluster.running(name)
    says(cluster, name, "c0", "given 2")
    told(cluster, "runs", "c0", "charge 1", "given 1")
    state = cluster.pod("runs")["status"]["containerStatuses"][0]
    check(state["restartCount"] == 0, f"after {what} the pod that ran before runs on")


@stock
def restarted(cluster):
    """SIGKILL of the plugin, restart of kubelet and containerd, daemon-reload: pods and ledger stay."""
    cluster.create(share_pod("runs", 4, "charge 4"))
    cluster.running("runs")
    for what, command, again in RESTARTS:
        restart(cluster, command, again)
        goes_on(cluster, what)
    check(cluster.problems(complete=False) == [], "the ledger, computed from the API alone, is right")


def facts(cluster):
    """What this node is."""
    machine = cluster.machine
    for command in ("uname -r", "stat -fc %T /sys/fs/cgroup", "systemctl --version | head -n 1",
                    "containerd --version", "runc --version | head -n 1", "crun --version | head -n 1",
                    "cat /sys/fs/cgroup/kubepods.slice/cgroup.controllers",
                    "cat /sys/fs/cgroup/dmem.capacity 2>&1"):
        print(f"# {command}: {machine.ask(command).stdout.strip()}")
    info = cluster.node_object()["status"]["nodeInfo"]
    print(f"# kubelet {info['kubeletVersion']}, {info['containerRuntimeVersion']}", flush=True)


def show(cluster):
    """For docs/enforce.md."""
    cluster.create(share_pod("held", 4, "charge 3; charge 2"),
                   share_pod("idle", 8, "charge 1"))
    for name in ("held", "idle"):
        cluster.running(name)
    wait_for("usage is told", lambda: re.search(r"held.* 3\.0 .*dmem", cluster.inspect(
        "usage", "--by", "pod")), 120, interval_s=2)
    print("$ kubectl describe pod held\n" + cluster.kubectl("describe", "pod", "held"))
    print("$ kubectl logs held\n" + cluster.kubectl("logs", "held"))
    for words in (["-o", "wide"], ["usage", "--by", "pod"], ["why", "default/held"], ["doctor"]):
        print("$ kubectl inspect gpushare " + " ".join(words) + "\n" + cluster.inspect(*words))
    print("$ cat " + cluster.slice_of("held") + "/dmem.max\n" + cluster.cgroup("held", "dmem.max"))
    print(cluster.kubectl("-n", SYSTEM, "get", "pods", "-o", "wide"))


if __name__ == "__main__":
    for name, function in (CASES | STOCK).items():
        print(f"{name:18} {'--stock' if name in STOCK else '':8} {function.__doc__.splitlines()[0]}")
