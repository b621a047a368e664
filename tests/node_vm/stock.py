# SPDX-License-Identifier: Apache-2.0
"""What has to be so on Debian's own kernel, which has no dmem."""

import json
import os

from harness.objects import GPU_MEM, NAMESPACE
from harness.processes import wait_for

from checks import RESTARTS, check, restart, says, told
from driver import Driver
from pods import share_pod

STOCK = {}
LIMITED = 'gpushare_device_plugin_pods_by_limit{state="limited"}'


def stock(function):
    STOCK[function.__name__] = function
    return function


@stock
def as_deployed(cluster):
    """A pod applied with kubectl runs in its systemd slice, with the device of the GPU that it was given."""
    cluster.create(share_pod("runs", 4, "charge 4", requests={"cpu": "10m"}), share_pod("next", 8, "charge 8"))
    for name, qos in (("runs", "Burstable"), ("next", "BestEffort")):
        made = cluster.running(name)
        place = cluster.slice_of(name)
        folder = f"{cluster.cgroups.root}/{cluster.cgroups.classes[qos]}"
        check(os.path.dirname(place) == folder, f"{name} is in a slice of its class", place)
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
    check(any("neither the kernel (dmem" in line for line in told), "doctor says why", " | ".join(told))


@stock
def insists_in_vain(cluster):
    """A pod that requires its limit is not started where there is none."""
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


def used(cluster, what, **expected):
    """GiB that each pod uses, by the CLI."""
    def probe():
        said = json.loads(cluster.inspect("pods", "--by", "pod", "-o", "json"))
        found = {one["name"]: one for one in said["items"]}
        return {name: one.get("usedBytes", -1) / (1 << 30) for name, one in found.items()} == expected
    wait_for(what, probe, 90, interval_s=1)
    check(True, what, ", ".join(f"{name} {gib} GiB" for name, gib in expected.items()))


def take_pid(cluster, pid, name):
    """A process of that PID in the pod's cgroup, once nobody was quicker."""
    place = cluster.machine.do(f"dirname $(grep -lx {cluster.pid_of(name)} "
                               f"$(find {cluster.slice_of(name)} -name cgroup.procs))").strip()
    cluster.machine.do(
        f"for i in $(seq 500); do echo {pid - 1} >/proc/sys/kernel/ns_last_pid; sleep 100000 >/dev/null 2>&1 & "
        f"[ $! -ne {pid} ] || exec sh -c 'echo {pid} >{place}/cgroup.procs'; kill $!; done; exit 1")


@stock
def by_driver(cluster):
    """What pods use without dmem, by the driver's list of processes, as shipped (manifests/pod-usage): two pods on one
    GPU told apart, one leaves, a PID that another pod's process has by now, one over its request and all that is said."""
    driver = Driver(cluster)
    cluster.roll_out("preferred", driver=True)
    cluster.create(share_pod("a", 4, "charge 1"), share_pod("b", 4, "charge 2"))
    pids = {}
    for name in ("a", "b"):
        cluster.running(name)
        pids[name] = cluster.pid_of(name)
        check(cluster.gpu_of(name) == "0", f"{name} is on GPU 0")
    seen = cluster.machine.do(f"nsenter -t $(pidof gpushare-device-plugin) -C cat /proc/{pids['a']}/cgroup").strip()
    check(seen.startswith("0::/../"), "the plugin has a cgroup namespace of its own", seen)
    driver.show((pids["a"], 1024, "compute"), (pids["a"], 1024, "graphics"), (pids["b"], 2048, "mps"), (1, 512, "compute"))
    used(cluster, "two pods on one GPU are told apart", a=1.0, b=2.0)
    cluster.kubectl("delete", "pod", "b", "--grace-period=0", "--force")
    used(cluster, "one leaves; the driver goes on naming its PID", a=1.0)
    cluster.create(share_pod("c", 1, "charge 1"))
    cluster.running("c")
    driver.show((pids["a"], 1024, "compute"))
    used(cluster, "another comes", a=1.0, c=0.0)
    cluster.machine.do(f"kill -KILL {pids['a']}")
    take_pid(cluster, pids["a"], "c")
    used(cluster, "what a PID holds that another pod has by now is nobody's", a=0.0, c=0.0)
    again = wait_for("a runs again", lambda: cluster.life_of("a")[1] > 0 and cluster.pid_of("a"), 120)
    driver.show((again, 512, "compute"))
    used(cluster, "its new process is its own", a=0.5, c=0.0)
    above_its_share(cluster, driver, again)


@stock
def limits_by_driver(cluster):
    """The driver's own limits (manifests/limits/driver): set and read back for each pod, told, and required. The mock keeps
    what it is told and limits nobody."""
    driver = Driver(cluster, "limits 0 0")
    cluster.roll_out("preferred", driver="limits")
    made = share_pod("insists", 4, "charge 1")
    made["metadata"]["annotations"]["aliyun.com/gpu-enforce"] = "required"
    cluster.create(made, share_pod("also", 4, "charge 1"))
    for name in ("insists", "also"):
        cluster.running(name)
    wait_for("both are limited", lambda: cluster.plugin.metric(LIMITED) == 2, 60, interval_s=1)
    check(cluster.gpu("GPU-0").get("enforced") == "driver", "the inventory says so")
    label = cluster.node_object()["metadata"]["labels"].get("aliyun.com/gpu-enforced")
    check(label == "driver", "the node's label says so", label)
    said = [line for line in cluster.inspect("doctor").splitlines() if "limits" in line]
    check(any("the driver limits each pod" in line for line in said), "doctor says so", " | ".join(said))
    driver.limits = ["limits 4 0"]  # as without CAP_SYS_ADMIN
    driver.show()
    cluster.machine.do("kill -KILL $(pidof gpushare-device-plugin)")
    wait_for("what is missing is told", lambda: cluster.gpu("GPU-0").get("enforcedReason") == "no-capability", 120)
    cluster.create(share_pod("late", 2, "charge 1"))
    cluster.running("late")


def above_its_share(cluster, driver, pid):
    driver.show((pid, 512, "compute"), (cluster.pid_of("c"), 3072, "compute"))
    event = wait_for("who is over its request is told so", lambda: [
        one for one in cluster.api.events(NAMESPACE, "c") if one["reason"] == "GpuMemoryOverRequest"], 120)[0]
    check("uses 2.0 GiB more" in event["message"], "kubectl describe pod", event["message"])
    for words, part in ((("pods", "--by", "node", "--sort", "used"), "real  "),
                        (("pods", "--by", "pod", "--over"), "c "),
                        (("why", "c"), "2.0 GiB"), (("doctor",), "default/c: uses more of a GPU's memory than it requested")):
        said = cluster.inspect(*words)
        print(said, flush=True)
        check(part in said, f"inspect {' '.join(words)}: {part}")
