# SPDX-License-Identifier: Apache-2.0
"""A whole cluster on this machine: the control plane, kube-scheduler and the extender as processes, kubelet,
containerd and runc, and the device plugin as the shipped DaemonSet's pod, with the driver's library by CDI."""

import contextlib
import copy
import glob
import json
import os
import re
import signal
import subprocess

from harness import seclusion
from harness.containers import IMAGE, NODE_DIR, Containerd
from harness.control_plane import EXTENDER_NAMESPACE, ROOT, built_program
from harness.install import PROGRAMS, DeployedPlugin
from harness.node import NODE, POD_LOGS, READS_OUR_LIST, NodeCluster
from harness.objects import INVENTORY, NAMESPACE, annotation, pod
from harness.processes import Failure, wait_for

from machine import IN_POD, NVML

PLUGIN = "gpushare-device-plugin"
PLUGIN_PATH = f"/api/v1/namespaces/{EXTENDER_NAMESPACE}/pods"
FLAGS = ("--device-list-strategy=cdi-cri", "--pod-usage=on", "--pod-usage-from=nvml")
PODS = "gpushare_device_plugin_pods"
RUNTIME = """  enable_cdi = true
  cdi_spec_dirs = ["{0}/cdi"]
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{0}/nvidia.json"
"""
SEEN_BY = f"gpu_source {IN_POD}/{NVML} 1 | cat"  # what a container sees of the driver


def image_files():
    """Our programs, with the libraries and the loader that were brought along for them."""
    libraries = [(path, f"lib/x86_64-linux-gnu/{os.path.basename(path)}")
                 for path in glob.glob(f"{ROOT}/lib/*.so*")]
    return (*libraries, (f"{ROOT}/lib/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"),
            (f"{ROOT}/lib/{PLUGIN}", PROGRAMS[1].lstrip("/")),
            *((f"{ROOT}/lib/{name}", f"bin/{name}") for name in ("cuda_probe", "gpu_source")))


class CardCluster(NodeCluster):
    kubelet_flags = ("--node-labels=gpushare=true", f"--node-ip={seclusion.ADDRESS}")

    def __init__(self, machine):
        super().__init__(run_dir=machine.run_dir)
        self.machine, self.uuid = machine, machine.card["uuid"]
        self.kubelet_dir = seclusion.KUBELET_DIR
        self.plugin, self.daemonset = DeployedPlugin(self), None
        self.cgroup = machine.cgroup
        self.kubelet_settings = {"cgroupRoot": self.cgroup.name}
        self.containerd.files = image_files()
        self.containerd.snapshotter = "overlayfs" if machine.overlayfs else "native"
        self.containerd.more = RUNTIME.format(self.run_dir)

    def take_machine(self):
        """This is a mount namespace of our own; in a network of our own pods and kubelet have this address."""
        self.cgroup.make()
        subprocess.run([f"{NODE_DIR}/bin/busybox", "ip", "link", "set", "lo", "up"], check=True)
        subprocess.run([f"{NODE_DIR}/bin/busybox", "ip", "addr", "add", f"{seclusion.ADDRESS}/32", "dev", "lo"], check=True)
        seclusion.folders(self.run_dir, (seclusion.KUBELET_DIR, POD_LOGS, "/var/log/containers"))
        for folder in (f"{seclusion.KUBELET_DIR}/device-plugins", f"{self.run_dir}/cdi"):
            os.makedirs(folder)
        for name, made in (("cdi/driver.json", self.machine.cdi()), ("nvidia.json", self.machine.runtime_spec())):
            with open(f"{self.run_dir}/{name}", "w", encoding="ascii") as out:
                json.dump(made, out)

    def remove_traces(self):
        """Also what outlived a containerd that ended in no order: the cgroup is ours."""
        for path in glob.glob(f"{self.cgroup.hierarchies[0]}{self.cgroup.name}/**/cgroup.procs", recursive=True):
            with contextlib.suppress(OSError), open(path, encoding="ascii") as pids:
                for pid in pids:
                    os.kill(int(pid), signal.SIGKILL)
        super().remove_traces()
        self.cgroup.remove()

    # ---- the device plugin ----

    def prepare_plugin(self):
        self.control_plane.apply("base/namespace/namespace.yaml", "base/device-plugin/rbac.yaml",
                                 "base/device-plugin/daemonset.yaml")
        self.daemonset = self.api.get(f"/apis/apps/v1/namespaces/{EXTENDER_NAMESPACE}/daemonsets/{PLUGIN}")
        self.api.create("/apis/node.k8s.io/v1/runtimeclasses", {
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"})
        self.plugin_kubeconfig()
        self.create_plugin()

    def create_plugin(self, *flags):
        """The pod that the DaemonSet's controller would make, with the host's PIDs (manifests/pod-usage)."""
        made = copy.deepcopy(self.daemonset["spec"]["template"])
        spec, box = made["spec"], made["spec"]["containers"][0]
        spec.update(hostNetwork=True, hostPID=True, nodeName=NODE, runtimeClassName="nvidia",
                    automountServiceAccountToken=False)
        if not self.machine.seccomp:
            del spec["securityContext"]["seccompProfile"]
        box.update(image=IMAGE, imagePullPolicy="Never", command=[PROGRAMS[1]])
        box["env"] += [{"name": "LD_LIBRARY_PATH", "value": IN_POD},
                       {"name": "GS_FAKE_NVML", "value": os.environ.get("GS_FAKE_NVML", "")}]
        box["args"] += [f"--kubeconfig={self.run_dir}/{PLUGIN}.kubeconfig", *FLAGS, *flags]
        box["volumeMounts"].append({"name": "run", "mountPath": self.run_dir})
        spec["volumes"].append({"name": "run", "hostPath": {"path": self.run_dir}})
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": PLUGIN, "controller": True,
                 "uid": self.daemonset["metadata"]["uid"]}
        self.api.create(PLUGIN_PATH, {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
            "name": f"{PLUGIN}-card", "labels": made["metadata"]["labels"], "ownerReferences": [owner]}})

    def start_plugin(self):
        wait_for("the device plugin is ready", self.plugin.ready, 60)
        super().start_plugin()
        wait_for("the kubelet reads its list", lambda: self.plugin.metric(READS_OUR_LIST) == 1)

    def replace_plugin(self, *flags):
        """With other flags, as a rollout does it."""
        path = f"{PLUGIN_PATH}/{PLUGIN}-card"
        self.api.delete(path)
        wait_for("the old device plugin is gone", lambda: not self.api.find(path), 60)
        self.create_plugin(*flags)
        self.start_plugin()
        wait_for("what the kubelet offers is what the plugin says", lambda: self.gpu_memory() == sum(
            gpu["mem"] for gpu in self.inventory().values()), 60)

    def inventory(self):
        gpus = json.loads(annotation(self.node_object(), INVENTORY))["gpus"]
        return {gpu["uuid"]: gpu for gpu in gpus}

    def units(self):
        """GiB of the first card that pods can request."""
        return self.inventory()[self.uuid]["mem"]

    # ---- pods ----

    def worker(self, name, units, script, **spec):
        """A pod on the first card, whose program reads nothing and stays while its container does."""
        made = pod(name, units, annotations={"aliyun.com/gpu-uuid": self.uuid}, **{
            "hostNetwork": True, "terminationGracePeriodSeconds": 0, "enableServiceLinks": False,
            "hostPID": self.machine.rehearsal,  # the simulated driver knows processes by their own PIDs
            **spec})
        made["spec"]["containers"][0].update(image=IMAGE, imagePullPolicy="Never", command=["sh", "-c", script])
        self.create_pods([made])

    @staticmethod
    def computes(mib, how="--hold"):
        return f"renice -n 19 $$ >/dev/null 2>&1; sleep 1000000 | cuda_probe --mib {mib} {how}"

    def lines(self, name, count=1):
        """What its container's program wrote, once there is so much."""
        uid = self.pod(name)["metadata"]["uid"]

        def probe():
            with open(f"{POD_LOGS}/{NAMESPACE}_{name}_{uid}/c0/0.log", encoding="utf-8") as log:
                found = [line.rstrip("\n").split(" ", 3)[3] for line in log]
            return found if len(found) >= count else None
        return wait_for(f"{name} wrote {count} lines", probe, 60)

    def allocated(self, name):
        """What its program wrote, once it has what it wanted."""
        def probe():
            found = self.lines(name)
            if any(line.startswith("cu") for line in found):
                raise Failure(f"{name}: {' | '.join(found)}")
            return found if any(line.startswith("allocated_mib=") for line in found) else None
        self.running(name)
        return wait_for(f"{name} has its memory", probe, 60)

    def uid(self, name):
        return self.pod(name)["metadata"]["uid"]

    def life(self, name):
        state = self.pod(name)["status"]["containerStatuses"][0]
        return state["containerID"], state["restartCount"]

    def inspect(self, *words):
        """What people type, and what it answers."""
        done = subprocess.run([built_program("kubectl-inspect-gpushare"), *words, "--kubeconfig",
                               self.control_plane.kubeconfig("admin")], text=True, capture_output=True, check=False)
        return done.stdout + done.stderr

    def cli_usage(self):
        """{pod: MiB that it uses by the CLI}"""
        said = self.inspect("pods", "--by", "pod", "-o", "json")
        items = json.loads(said[said.index("{"):said.rindex("}") + 1])["items"]
        return {one["name"]: one["usedBytes"] >> 20 for one in items if "usedBytes" in one}

    def metric_of(self, name, metric):
        """MiB"""
        for line in self.plugin.ask("/metrics")[1].splitlines():
            if line.startswith(f"{metric}{{") and f'pod="{name}"' in line:
                return int(float(line.rsplit(" ", 1)[1])) >> 20
        return None

    def settle(self):
        """No pod of the case before is left, and the driver has what they had."""
        for one in self.api.pods():
            if one["metadata"]["namespace"] == NAMESPACE:
                self.delete_pod(one["metadata"]["name"])
        wait_for("the plugin knows no pod", lambda: self.plugin.metric(PODS) == 0, 60)
        wait_for("the driver lists no pod's process", lambda: not set(self.machine.users()) - {"-"}, 30)

    def restart_containerd(self):
        self.containerd.process.stop()
        self.containerd.launch()

    def tell(self):
        """For whoever reads why a case failed."""
        print(self.control_plane.kubectl("get", "nodes,pods", "-A", "-o", "wide"))
        print(self.control_plane.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp")[-3000:])
        print(self.machine.driver_says())
        for path in glob.glob(f"{POD_LOGS}/*/*/*.log"):
            with open(path, encoding="utf-8", errors="replace") as log:
                print(f"--- {re.sub('.*/pods/', '', path)}\n" + "".join(log.readlines()[-5:]))
