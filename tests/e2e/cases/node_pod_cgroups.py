#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""src/lib/limit notices a pod before any of its processes runs: its cgroup is told, under the pod's UID and
class, while it is still empty; static pods under their hash; restarts of the kubelet change nothing."""

import json
import os
import re

from harness.case import check, run
from harness.control_plane import built_program
from harness.node import NODE, NodeCluster, real_pod
from harness.objects import annotation
from harness.processes import wait_for

KUBE = ">=1.20"
UNIFIED = "/sys/fs/cgroup"
MOUNT = UNIFIED if os.path.exists(f"{UNIFIED}/cgroup.controllers") else f"{UNIFIED}/pids"
ALL = {"cpu": "1m", "memory": "64Mi"}


def guaranteed(made):
    for container in made["spec"]["containers"] + made["spec"].get("initContainers", []):
        container.setdefault("resources", {}).setdefault("limits", {}).update(ALL, cpu="100m")
    return made


def burstable(made):
    made["spec"]["containers"][0].setdefault("resources", {})["requests"] = {"cpu": "1m"}
    return made


class Watcher:
    def __init__(self, cluster, name):
        self.process = cluster.processes.start(name, [built_program("tests/pod_cgroups"), MOUNT])
        # other kubelets of this machine have folders of their own
        wait_for("it knows the pods' folder",
                 lambda: re.search(r"^roots [1-9]", self.process.log_text(), re.M))

    def lines(self):
        self.process.must_run()
        return self.process.log_text().splitlines()

    def about(self, word, qos, uid):
        return [line.split()[3] for line in self.lines() if line.startswith(f"{word} {qos} {uid} ")]

    def told_before_its_first_process(self, qos, uid):
        told = self.about("told", qos, uid)
        check(told == ["0"], f"a {qos} pod was told with so many processes: {told}")
        gap = wait_for("its first process was seen", lambda: self.about("first", qos, uid))
        print(f"  {qos}: {gap[0]} ms before its first process")


def cgroup_of(made):
    """(class, UID) as the kubelet names a pod's cgroup."""
    uid = annotation(made, "kubernetes.io/config.hash") or made["metadata"]["uid"]
    return made["status"]["qosClass"].lower(), uid


def static_pod(cluster, name):
    path = os.path.join(cluster.run_dir, "static-pods", f"{name}.json")
    with open(f"{path}.new", "w", encoding="ascii") as out:
        json.dump(real_pod(name), out)
    os.rename(f"{path}.new", path)
    return cluster.running(f"{name}-{NODE}")


def body():
    with NodeCluster(gpus="2x16GiB") as cluster:
        watcher = Watcher(cluster, "pod_cgroups")
        cluster.create_pods([guaranteed(real_pod("guaranteed", 2)),
                             burstable(real_pod("burstable", containers=[0, 2])),
                             real_pod("best-effort", 2, init=[0, 1])])
        for name in ("guaranteed", "burstable", "best-effort"):
            qos, uid = cgroup_of(cluster.running(name))
            check(qos == name.replace("-", ""), f"{name} is {qos}")
            watcher.told_before_its_first_process(qos, uid)
        watcher.told_before_its_first_process(*cgroup_of(static_pod(cluster, "static")))
        cluster.restart_kubelet()
        cluster.create_pods([real_pod("after", 2)])
        watcher.told_before_its_first_process(*cgroup_of(cluster.running("after")))
        # One that starts late is told of all that run.
        late = Watcher(cluster, "pod_cgroups-late")
        for name in ("guaranteed", "burstable", "best-effort", f"static-{NODE}", "after"):
            qos, uid = cgroup_of(cluster.pod(name))
            told = wait_for(f"{name} is told later", lambda: late.about("told", qos, uid))
            check(len(told) == 1 and int(told[0]) > 0, f"{name} was told later: {told}")


run(body)
