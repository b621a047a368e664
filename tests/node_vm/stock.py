# SPDX-License-Identifier: Apache-2.0
"""What has to be so on Debian's own kernel, which has no dmem."""

import os

from harness.objects import GPU_MEM
from harness.processes import wait_for

from checks import RESTARTS, check, restart, says, told
from pods import share_pod

STOCK = {}


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
