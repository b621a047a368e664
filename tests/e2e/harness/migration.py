# SPDX-License-Identifier: Apache-2.0
"""A node that changes from the original to this project and back, and what must hold meanwhile."""

import subprocess

from harness.case import check
from harness.control_plane import built_program
from harness.node import VISIBLE, NodeCluster
from harness.objects import GPU_MEM, IDX, annotation
from harness.original import GpuFile, OriginalExtender, OriginalPlugin, held_ids
from harness.processes import Failure, wait_for

UNITS = 32
FOREIGN = "gpushare_device_plugin_foreign_device_ids"


def started(pod):
    """{container: (id, restarts)} of a pod."""
    return {s["name"]: (s.get("containerID"), s["restartCount"])
            for s in pod["status"].get("containerStatuses") or []}


class Migration(NodeCluster):
    """Starts with the original: its plugin, its extender, kube-scheduler asking that one."""

    def __init__(self, unit="GiB", plugin_flags=()):
        self.gpus = GpuFile()
        super().__init__(plugin_flags=("--gpu-file", self.gpus.path, *plugin_flags),
                         wait_for_plugin=False, scheduler=None, extender=False)
        self.unit = unit
        self.original = self.original_plugin = None

    def start(self):
        super().start()
        self.original = OriginalExtender(self.api)
        self.original_plugin = OriginalPlugin(self, self.gpus.path, self.unit)
        self.original_plugin.start()
        self.schedule_with(self.original.url)
        self.control_plane.start_controllers("deployment,replicaset")

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            if self.original:
                self.original.stop()

    def schedule_with(self, url):
        if self.scheduler.process:
            self.scheduler.stop()
        self.scheduler.start(url)

    def to_our_extender(self):
        self.start_extender()
        wait_for("the extender knows the node", self.extender.inspect)
        self.schedule_with(self.extender.url)

    def to_our_plugin(self):
        self.original_plugin.stop()
        self.start_plugin()

    def gpu_of(self, name):
        """Index of the GPU that the pod's environment and its annotation name."""
        shown = self.environment(name)["c0"].get(VISIBLE)
        recorded = annotation(self.pod(name), IDX)
        if shown != self.gpus.uuids.get(int(recorded)):
            raise Failure(f"pod {name} is recorded on {recorded} and got {shown}")
        return int(recorded)

    def ids_of(self, name):
        return held_ids().get(self.pod(name)["metadata"]["uid"], set())

    def wait_foreign(self, count, timeout_s=40):
        wait_for(f"{count} ids of another plugin are listed",
                 lambda: self.plugin.metric(FOREIGN) == count, timeout_s, interval_s=0.5)

    def wait_capacity(self, units=UNITS):
        # A kubelet of 1.36 takes long over a list of many new ids (docs/operate.md).
        wait_for(f"the node offers {units} units", lambda: self.gpu_memory() == units and int(
            self.node_object()["status"]["capacity"][GPU_MEM]) == units, 180)

    def doctor(self):
        """What `kubectl inspect gpushare doctor` says, as docs/install.md asks after each step."""
        done = subprocess.run([
            built_program("kubectl-inspect-gpushare"), "--kubeconfig",
            self.control_plane.kubeconfig("admin"), "doctor"],
            capture_output=True, text=True, check=False, timeout=60)
        return done.stdout

    def snapshot(self, names):
        return {name: started(self.running(name)) for name in names}

    def check_untouched(self, before):
        for name, containers in before.items():
            now = started(self.running(name))
            check(now == containers, f"pod {name} was touched: {containers} became {now}")

    def check_counted(self):
        check(not self.problems(complete=False), f"{self.problems(complete=False)}")
        self.wait_inspect_agrees()

    def stop_container(self, name):
        """As a crash would: the kubelet has to start it anew."""
        container = started(self.pod(name))["c0"][0].rsplit("/", 1)[1]
        self.containerd.ctr("tasks", "kill", "-s", "SIGKILL", container)
        return container
