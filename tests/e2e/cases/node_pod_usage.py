#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pods use by the driver's list of processes: a mock for the driver's library lists processes of real
containers, and the plugin, in a cgroup namespace of its own as its container has one, tells two pods on one GPU
apart; one leaves; the PID of one is taken by another pod's process, and counts for nobody until the driver no
longer names it; who is over its request has an Event (95 s)."""

import glob
import json
import os

from harness.case import check, run
from harness.control_plane import built_program
from harness.node import NodeCluster, real_pod
from harness.objects import NAMESPACE
from harness.processes import Failure, wait_for

MIB = 1 << 20
IN_USE = 4096 * MIB  # as the mock has it: a quarter of the card
OWN_CGROUP = "kubepods/besteffort/plugin/c"  # beside the pods, as a DaemonSet's pod would be
UNIFIED = "/sys/fs/cgroup"
HIERARCHIES = [UNIFIED] if os.path.exists(f"{UNIFIED}/cgroup.controllers") else [
    path for path in glob.glob(f"{UNIFIED}/*") if os.path.exists(f"{path}/cgroup.procs")]
SECLUDE = """
for h in {hierarchies}; do
    mkdir -p $h/{own}
    for f in cpuset.cpus cpuset.mems; do [ ! -e $h/{own}/$f ] || for d in kubepods/besteffort/plugin {own}; do
        cat $h/$f >$h/$d/$f; done; done
    echo $$ >$h/{own}/cgroup.procs
done
exec unshare -C "$@"
"""


class Driver:
    """What the mock for the driver's library shows."""

    def __init__(self):
        self.path = os.path.join(os.environ["GPUSHARE_RUN_DIR"], "driver")
        os.environ["GS_FAKE_NVML"] = self.path
        self.show()

    def show(self, *processes):
        """(PID, MiB, list, whether it ends with its process)"""
        lines = ["gpu GPU-a 16384 0 00000000:3B:00.0"]
        lines += [f"{'live' if ends else 'process'} {where} {pid} {mib * MIB} -1"
                  for pid, mib, where, ends in processes]
        with open(f"{self.path}.new", "w", encoding="ascii") as out:
            out.write("\n".join(lines) + "\n")
        os.rename(f"{self.path}.new", self.path)


class UsageCluster(NodeCluster):
    """Its plugin is in a cgroup namespace of its own."""

    def prepare_plugin(self):
        super().prepare_plugin()
        argv = self.plugin.argv
        script = SECLUDE.format(hierarchies=" ".join(HIERARCHIES), own=OWN_CGROUP)
        self.plugin.argv = lambda *more: ["sh", "-c", script, "sh", *argv(*more)]

    def __exit__(self, *rest):
        try:
            return super().__exit__(*rest)
        finally:
            for path in HIERARCHIES:
                for folder in (OWN_CGROUP, os.path.dirname(OWN_CGROUP)):
                    if os.path.isdir(f"{path}/{folder}"):
                        os.rmdir(f"{path}/{folder}")

    def pids_of(self, name):
        """Of its containers: the sandbox runs the same program, and was given no GPU."""
        uid = self.pod(name)["metadata"]["uid"]
        found = []
        for path in glob.glob("/proc/[0-9]*/cgroup"):
            try:
                folder = os.path.dirname(path)
                with open(path, encoding="ascii") as cgroup, open(f"{folder}/cmdline", "rb") as words, \
                        open(f"{folder}/environ", "rb") as environment:
                    if uid in cgroup.read() and words.read().startswith(b"sleep\0") and \
                            b"ALIYUN_COM_GPU_MEM_IDX=" in environment.read():
                        found.append(int(folder.split("/")[2]))
            except OSError:
                continue
        return found

    def pid_of(self, name):
        return wait_for(f"{name} has a process", lambda: self.pids_of(name))[0]

    def usage(self):
        page = json.loads(self.plugin.ask("/usage")[1])
        pods = {one["name"]: (one["gpus"][0].get("usedBytes", -MIB) // MIB,
                              one["gpus"][0].get("peakBytes", -MIB) // MIB)
                for one in page["pods"]}
        return page["gpus"][0], pods

    def wait_usage(self, what, **expected):
        """MiB that each pod uses, and has ever used; no others are named."""
        def probe():
            pods = self.usage()[1]
            return pods == expected
        try:
            wait_for(what, probe, 45, interval_s=0.5)
        except Failure as failure:
            raise Failure(f"{failure}: {self.usage()}") from failure
        gpu = self.usage()[0]
        by_pods = sum(max(used, 0) for used, _ in expected.values()) * MIB
        check(gpu["usedBytes"] == IN_USE, f"in use: {gpu}")
        check(gpu["usedByPodsBytes"] == by_pods, f"by pods: {gpu}")
        check(gpu["usedByOthersBytes"] == IN_USE - by_pods, f"by others: {gpu}")


def cgroups_of(pid):
    """Paths of the files by which a process gets into the same cgroups."""
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for hierarchy in HIERARCHIES:
                if hierarchy == UNIFIED or os.path.basename(hierarchy) in controllers.split(",") \
                        or controllers == f"name={os.path.basename(hierarchy)}":
                    yield f"{hierarchy}{path}/cgroup.procs"


def take_pid(pid, cgroups):
    """A process with that PID, in these cgroups; False: somebody else was quicker."""
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as last:
        last.write(str(pid - 1))
    child = os.fork()
    if child == 0:
        os.execvp("sleep", ["sleep", "1000000"])
    if child != pid:
        os.kill(child, 9)
        os.waitpid(child, 0)
        return False
    for path in cgroups:
        with open(path, "w", encoding="ascii") as procs:
            procs.write(str(pid))
    return True


def two_pods(cluster, driver):
    pids = {}
    for name in ("a", "b"):
        cluster.running(name)
        pids[name] = cluster.pid_of(name)
    check(os.readlink(f"/proc/{cluster.plugin.process.pid}/ns/cgroup") != os.readlink("/proc/self/ns/cgroup"),
          "the plugin is in our cgroup namespace")
    # a also draws; this process is the host's
    driver.show((pids["a"], 1024, "compute", True), (pids["a"], 1024, "graphics", True),
                (pids["b"], 2048, "mps", True), (os.getpid(), 512, "compute", True))
    cluster.wait_usage("two pods on one GPU are told apart", a=(1024, 1024), b=(2048, 2048))
    driver.show((pids["a"], 256, "compute", True), (pids["b"], 2048, "compute", True))
    cluster.delete_pod("b")
    cluster.wait_usage("one lets go of memory, and one leaves", a=(256, 1024))
    return pids["a"]


def pid_is_taken(cluster, driver, pid):
    cluster.create_pods([real_pod("c", 4)])
    cluster.running("c")
    cgroups = list(cgroups_of(cluster.pid_of("c")))
    check(cgroups, "no cgroup of c is known")
    driver.show((pid, 256, "compute", False))
    cluster.wait_usage("c uses nothing", a=(256, 1024), c=(0, 0))
    os.kill(pid, 9)  # a's container; the driver goes on naming it
    wait_for("its PID is free", lambda: not os.path.exists(f"/proc/{pid}"))
    wait_for("another has its PID", lambda: take_pid(pid, cgroups), 60, interval_s=0.05)
    try:
        cluster.wait_usage("what another's PID holds is nobody's", a=(0, 1024), c=(0, 0))
        restarted = cluster.pid_of("a")
        driver.show((restarted, 128, "compute", True))
        cluster.wait_usage("a's new process is its own", a=(128, 1024), c=(0, 0))
        driver.show((pid, 64, "compute", True), (restarted, 128, "compute", True))
        cluster.wait_usage("the PID had left the list", a=(128, 1024), c=(64, 64))
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def replica_set_of(name, pod):
    template = {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}}


def above_its_share(cluster, driver):
    """And so is its controller, in kubectl describe's words: by name, namespace, kind and UID."""
    cluster.control_plane.start_controllers("replicaset")
    made = cluster.api.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets",
                              replica_set_of("small", real_pod("small", 2)))
    name = wait_for("the ReplicaSet has its pod", lambda: [
        pod["metadata"]["name"] for pod in cluster.api.pods() if pod["metadata"]["name"].startswith("small-")])[0]
    cluster.running(name)
    driver.show((cluster.pid_of(name), 3584, "compute", True), (cluster.pid_of("c"), 512, "compute", True))
    wait_for("who is over its request is told so", lambda: "GpuMemoryOverRequest" in cluster.events(name), 45)
    told = wait_for("its controller is told, too", lambda: [
        one for one in cluster.api.events(NAMESPACE, "small") if one["reason"].startswith("Gpu")], 15)
    check([(one["involvedObject"]["apiVersion"], one["involvedObject"]["kind"], one["involvedObject"]["uid"],
            one["reason"], one["message"].startswith(f"pod {name} uses 1.5 GiB more")) for one in told] ==
          [("apps/v1", "ReplicaSet", made["metadata"]["uid"], "GpuMemoryOverRequest", True)], f"told: {told}")
    check("GpuMemoryOverRequest" not in cluster.events("c"), "who is not is told so, too")


def body():
    driver = Driver()
    flags = ("--nvml-library", built_program("tests/libfake_nvml.so"), "--pod-usage=on",
             "--pod-usage-from=nvml")
    with UsageCluster(plugin_flags=flags) as cluster:
        cluster.create_pods([real_pod("a", 4), real_pod("b", 4)])
        pid = two_pods(cluster, driver)
        pid_is_taken(cluster, driver, pid)
        above_its_share(cluster, driver)


run(body)
