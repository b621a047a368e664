#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/side-doors.yaml: pods with GPU memory steer nothing of what keeps them apart, by
whichever container, and are told which; nothing else is disturbed (12 s)."""

from harness.api import MERGE_PATCH, pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, container, pod
from harness.policies import check_rows, refusal
from harness.processes import wait_for

KUBE = ">=1.30"
PRIVILEGED = {"securityContext": {"privileged": True}}


def with_env(name):
    return {"env": [{"name": "HOME", "value": "/"}, {"name": name, "value": "1"}]}


PIPE = with_env("CUDA_MPS_PIPE_DIRECTORY")

# (row, words of the refusal or "", of the pod, which containers, what the first of them has)
ROWS = (
    ("MPS's pipe", "remove them from env of c0", {"mem": 8}, "containers", PIPE),
    ("more variables than are read", "may have 1000 variables", {"mem": 8}, "containers",
     {"env": [{"name": f"E{i}"} for i in range(1001)]}),
    ("MIG's monitor", "must not set CUDA_MPS_*", {"mem": 8}, "containers",
     with_env("NVIDIA_MIG_MONITOR_DEVICES")),
    ("a choice among its own GPUs", "", {"mem": 8}, "containers",
     with_env("CUDA_VISIBLE_DEVICES")),
    ("another's library", "", {"mem": 8}, "containers", with_env("LD_PRELOAD")),
    ("a name that begins alike", "", {"mem": 8}, "containers", with_env("CUDA_MPSX")),
    ("MPS, nobody asks", "", {}, "containers", PIPE),
    ("MPS in an init container", "from env of i0", {"mem": 8, "init": [0]},
     "initContainers", PIPE),
    ("MPS beside an init container that asks", "from env of c0", {"mem": 0, "init": [8]},
     "containers", PIPE),
    ("not privileged, in words", "", {"mem": 8}, "containers",
     {"securityContext": {"privileged": False, "runAsUser": 0}}),
    ("a privileged init container", "from i0", {"mem": 8, "init": [0]}, "initContainers",
     PRIVILEGED),
    ("privileged beside the one that asks", "from c0", {"containers": [0, 8]}, "containers",
     PRIVILEGED),
    ("privileged, nobody asks", "", {}, "containers", PRIVILEGED),
    ("hostPID", "remove hostPID", {"mem": 8}, "spec", {"hostPID": True}),
    ("no hostPID, in words", "", {"mem": 8}, "spec", {"hostPID": False}),
    ("hostPID, nobody asks", "", {}, "spec", {"hostPID": True}),
)


def made(name, arguments, which, more):
    result = pod(name, **arguments)
    (result["spec"] if which == "spec" else result["spec"][which][0]).update(more)
    return result


def attempts(cluster):
    for i, (row, words, arguments, which, more) in enumerate(ROWS):
        yield (row, words, cluster.api, "POST", pod_path(NAMESPACE),
               made(f"r{i}", arguments, which, more))


def debugs(cluster):
    """Debug containers added to pods that were there before the policy."""
    for row, words, name, more in (
            ("a debug container", "", "older", {}),
            ("one that is privileged", "from debug", "older", PRIVILEGED),
            ("one with MPS's pipe", "from env of debug", "older", PIPE),
            ("one that is privileged, nobody asks", "", "other", PRIVILEGED)):
        body = {"spec": {"ephemeralContainers": [
            {**container("debug"), "targetContainerName": "c0", **more}]}}
        yield (row, words, cluster.api, "PATCH",
               pod_path(NAMESPACE, name, "ephemeralcontainers"), body, MERGE_PATCH)


def body():
    with Cluster(scheduler=None, extender=False) as cluster:
        cluster.create_pods([made("older", {"mem": 8}, "containers", {**PRIVILEGED, **PIPE}),
                             pod("other")])
        cluster.control_plane.apply("policies/side-doors.yaml")
        probe = made("probe", {"mem": 8}, "spec", {"hostPID": True})
        wait_for("the policy stands",
                 lambda: refusal(cluster.api, "POST", pod_path(NAMESPACE), probe))
        check_rows(list(attempts(cluster)))
        check_rows(list(debugs(cluster)))
        cluster.api.patch(pod_path(NAMESPACE, "older"), {"metadata": {"annotations": {"a": "b"}}})
        check(cluster.pod("older")["metadata"]["annotations"]["a"] == "b",
              "the older pod was not annotated")


run(body)
