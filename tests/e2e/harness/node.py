# SPDX-License-Identifier: Apache-2.0
"""A real node: containerd, kubelet and our device plugin with GPUs that are only pretended.

    with NodeCluster(gpus="2x16GiB") as cluster:
        cluster.create_pods([real_pod("p", 8)])
        env = cluster.environment("p")["c0"]
"""

import contextlib
import fcntl
import glob
import http.client
import json
import os
import shutil

from harness import docker, release
from harness.cluster import Cluster
from harness.containers import IMAGE, Containerd, unmount_below
from harness.control_plane import EXTENDER_NAMESPACE, HOST, built_program, kube_program, token_in
from harness.objects import GPU_MEM, IDX, INVENTORY, NAMESPACE, annotation, node_ready, pod
from harness.processes import Failure, ask, free_port, wait_for

NODE = "real"
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
POD_LOGS = "/var/log/pods"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
REGISTRATIONS = "gpushare_device_plugin_registrations_total"
READS_OUR_LIST = "gpushare_device_plugin_registered"
PLUGIN_MANIFESTS = ("base/device-plugin/rbac.yaml",)

KUBELET_CONFIG = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
    "address": HOST, "readOnlyPort": 0, "healthzPort": 0,
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs", "failSwapOn": False, "enforceNodeAllocatable": [],
    "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    "makeIPTablesUtilChains": False, "maxPods": 250, "registryPullQPS": 0, "eventRecordQPS": 0,
    "kubeAPIQPS": 500, "kubeAPIBurst": 500, "nodeStatusUpdateFrequency": "2s",
    "syncFrequency": "5s", "fileCheckFrequency": "1s", "contentType": "application/json",
}


WHOLE = "ENVIRONMENT_ENDS"


def real_container(made, script):
    made["image"], made["imagePullPolicy"] = IMAGE, "Never"
    made["command"] = ["sh", "-c", f"env() {{ command env && echo {WHOLE}=; }}; {script}"]


def real_pod(name, *args, script="env; exec sleep 1000000", **kwargs):
    """As objects.pod, but its containers run: they print their environment and stay."""
    made = pod(name, *args, **kwargs)
    spec = made["spec"]
    spec.update(hostNetwork=True, terminationGracePeriodSeconds=0, enableServiceLinks=False)
    for container in spec["containers"]:
        real_container(container, script)
    for container in spec.get("initContainers", ()):
        real_container(container, "env")
    return made


def log_environment(path, made):
    """{name: value} once a container has printed its environment, all of it if it says when; lines are "time stream F text"."""
    with open(path, encoding="utf-8") as log:
        texts = [line.rstrip("\n").split(" ", 3)[3] for line in log if line.count(" ") >= 3]
    return (f"{WHOLE}=" in texts or WHOLE not in str(made)) and dict(text.split("=", 1) for text in texts if "=" in text)


class Plugin:
    """gpushare-device-plugin with the rights of the shipped manifest."""

    def __init__(self, processes, kubeconfig, flags):
        self.processes, self.kubeconfig = processes, kubeconfig
        self.flags = list(flags)
        self.port = free_port()
        self.process = None

    def argv(self, *more):
        return [built_program("gpushare-device-plugin"), "--kubeconfig", self.kubeconfig,
                "--node-name", NODE, "--device-plugin-dir", DEVICE_PLUGINS, *self.flags,
                *more]

    def start(self, wait=True):
        self.process = self.processes.start("gpushare-device-plugin", self.argv(
            "--health-listen", f"{HOST}:{self.port}"))
        if wait:
            wait_for("gpushare-device-plugin is ready", self.ready)

    def kill(self):
        self.process.kill()

    def connection(self):
        return http.client.HTTPConnection(HOST, self.port, timeout=5)

    def ask(self, path):
        """(status, body text)"""
        return ask(self.connection(), "GET", path)

    def ready(self):
        self.process.must_run()
        return self.ask("/readyz")[0] == 200

    def metric(self, name):
        for line in self.ask("/metrics")[1].splitlines():
            if line.startswith(f"{name} "):
                return float(line.rsplit(" ", 1)[1])
        raise Failure(f"there is no metric {name}")

    def memory_kib(self):
        """(resident, private and written to) of the process now."""
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as rollup:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in rollup if "kB" in line}
        return sizes["Rss"], sizes["Private_Dirty"]

    def verify_and_stop(self):
        self.process.must_run()
        if token_in(self.kubeconfig) in self.process.log_text():
            raise Failure("the plugin's log has its token")
        for line in self.process.log_text().splitlines():
            if "forbidden" in line.lower() or "Sanitizer" in line:
                raise Failure(f"the plugin's log says: {line}")
        status = self.process.stop()
        if status != 0:
            raise Failure(f"SIGTERM ended the plugin with {status}: {self.process.log_tail()}")


class NodeCluster(Cluster):
    """A cluster with one real node. Only one can run on a machine: the kubelet's folder of device
    plugins has a fixed place."""

    kubelet_flags = ("--node-labels=gpushare=true",)
    kubelet_settings = {}  # beside those above

    def __init__(self, gpus=None, plugin_flags=(), wait_for_plugin=True, **kwargs):
        super().__init__(**kwargs)
        self.plugin_flags = [*(("--fake-gpus", gpus) if gpus else ()), *plugin_flags]
        self.wait_for_plugin = wait_for_plugin
        self.containerd = Containerd(self.processes, self.run_dir)
        self.docker_socket = os.path.join(self.run_dir, "docker.sock")
        self.kubelet_dir = os.path.join(self.run_dir, "kubelet")
        self.kubelet = self.plugin = self.lock = None

    @property
    def pod_resources(self):
        return os.path.join(self.kubelet_dir, "pod-resources/kubelet.sock")

    def __enter__(self):
        try:
            return super().__enter__()
        except BaseException:
            self.containerd.clean_up()
            self.remove_traces()
            raise

    def take_machine(self):
        os.makedirs(DEVICE_PLUGINS, exist_ok=True)
        self.lock = open(f"{DEVICE_PLUGINS}/../.gpushare-e2e.lock", "w", encoding="ascii")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        for path in glob.glob(f"{DEVICE_PLUGINS}/*"):  # of an earlier case
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    def start(self):
        self.take_machine()
        super().start()
        self.containerd.start()
        if release.KUBELET_ASKS_DOCKER:
            docker.serve(self.docker_socket)
        self.start_kubelet()
        self.prepare_plugin()
        if self.wait_for_plugin:
            self.start_plugin()

    def prepare_plugin(self):
        self.control_plane.apply("base/namespace/namespace.yaml", *PLUGIN_MANIFESTS)
        self.plugin = Plugin(self.processes, self.plugin_kubeconfig(), self.plugin_flags)

    def plugin_kubeconfig(self):
        return self.control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                             "gpushare-device-plugin")

    def kubelet_kubeconfig(self):
        return self.control_plane.kubeconfig("admin")

    def start_plugin(self):
        self.plugin.start()
        wait_for("the node shows its GPU memory", self.gpu_memory, 90) # in MiB the kubelet takes half a minute
        wait_for("the node has an inventory",
                 lambda: annotation(self.node_object(), INVENTORY))
        if self.extender:
            wait_for("the extender knows the node", lambda: NODE in self.extender.inspect())

    def start_kubelet(self):
        config = os.path.join(self.run_dir, "kubelet.json")
        with open(config, "w", encoding="ascii") as out:
            json.dump({**KUBELET_CONFIG, **release.kubelet_config(), "port": free_port(),
                       **self.kubelet_settings,
                       "staticPodPath": os.path.join(self.run_dir, "static-pods")}, out)
        os.makedirs(os.path.join(self.run_dir, "static-pods"), exist_ok=True)
        self.kubelet = self.processes.start("kubelet", [
            kube_program("kubelet"), "--config", config,
            "--kubeconfig", self.kubelet_kubeconfig(),
            "--root-dir", self.kubelet_dir, "--cert-dir", os.path.join(self.kubelet_dir, "pki"),
            "--hostname-override", NODE, *self.kubelet_flags,
            f"--container-runtime-endpoint=unix://{self.containerd.socket}",
            *release.kubelet_flags(IMAGE, self.docker_socket), "-v=2"])
        wait_for("the node is ready", lambda: self.kubelet.must_run() or
                 node_ready(self.find_node()), 60)

    def restart_kubelet(self):
        """Returns when new pods can be admitted again: until the plugin registered with it, a kubelet
        fails them ("UnexpectedAdmissionError"), while the node still shows what it offered before."""
        with self.plugin_registers_again():
            self.kubelet.stop()
            self.start_kubelet()

    @contextlib.contextmanager
    def plugin_registers_again(self):
        units, before = self.gpu_memory(), self.plugin.metric(REGISTRATIONS)
        yield
        wait_for("the plugin registered again",
                 lambda: self.plugin.metric(REGISTRATIONS) > before and
                 self.plugin.metric(READS_OUR_LIST) == 1)
        wait_for("the kubelet offers the GPUs again", lambda: self.gpu_memory() == units)

    def find_node(self):
        return self.api.find(f"/api/v1/nodes/{NODE}")

    def node_object(self):
        return self.api.get(f"/api/v1/nodes/{NODE}")

    def gpu_memory(self):
        """Units the kubelet offers now."""
        return int(self.node_object()["status"].get("allocatable", {}).get(GPU_MEM, 0))

    def __exit__(self, kind, *rest):
        try:
            if kind is None and self.plugin and self.plugin.process:
                self.plugin.verify_and_stop()
        finally:
            try:
                if self.kubelet:
                    self.kubelet.stop()
                self.containerd.clean_up()
                super().__exit__(kind, *rest)
            finally:
                self.remove_traces()

    def remove_traces(self):
        unmount_below(self.run_dir)
        for path in glob.glob(f"{POD_LOGS}/{NAMESPACE}_*"):
            shutil.rmtree(path, ignore_errors=True)
        if self.lock:
            self.lock.close()

    def running(self, name, namespace=NAMESPACE):
        """The pod once all its containers run; a pod that failed is a failure at once."""
        def probe():
            found = self.find_pod(name, namespace)
            status = (found or {}).get("status", {})
            if status.get("phase") == "Failed":
                raise Failure(f"pod {name} failed: {status.get('reason')} {status.get('message')}")
            states = status.get("containerStatuses") or []
            return found if states and all("running" in s["state"] for s in states) else None
        return wait_for(f"pod {name} runs", probe, 120, interval_s=0.2)

    def environment(self, name, namespace=NAMESPACE):
        """{container: {variable: value}} of a running pod, from what its containers printed first
        (init containers as well)."""
        made = self.running(name, namespace)
        folder = f"{POD_LOGS}/{namespace}_{name}_{made['metadata']['uid']}"
        spec = made["spec"]
        found = {}
        for container in spec["containers"] + (spec.get("initContainers") or []):
            path = f"{folder}/{container['name']}/0.log"
            found[container["name"]] = wait_for(
                f"{path} has an environment",
                lambda path=path, made=container: os.path.exists(path) and log_environment(path, made))
        return found

    def uuids(self):
        """{GPU index: UUID} from the node's inventory."""
        gpus = json.loads(annotation(self.node_object(), INVENTORY))["gpus"]
        return {gpu["idx"]: gpu["uuid"] for gpu in gpus}

    def record_problem(self, name):
        """What is wrong between a pod's annotation and its containers' environments, or ""."""
        uuids = self.uuids()
        environment = self.environment(name)
        made = self.pod(name)
        recorded = annotation(made, IDX)
        if recorded is None:
            return f"pod {name} has no annotation {IDX}"
        expected = ",".join(uuids[int(idx)] for idx in recorded.split(","))
        for container in made["spec"]["containers"] + (made["spec"].get("initContainers") or []):
            asks = (container.get("resources", {}).get("limits") or {}).get(GPU_MEM)
            shown = environment[container["name"]].get(VISIBLE)
            if asks and (shown != expected or environment[container["name"]].get(IDX) != recorded):
                return f"pod {name} is recorded on {recorded}, but {container['name']} got {shown}"
            if not asks and shown:
                return f"{container['name']} of pod {name} asks for nothing and got {shown}"
        if annotation(made, "ALIYUN_COM_GPU_MEM_ASSIGNED") != "true":
            return f"pod {name} is not marked as assigned"
        return ""

    def wait_true_record(self, name, timeout_s=20):
        """Every container's environment equals its pod's annotation, soon."""
        def probe():
            problem = self.record_problem(name)
            if problem:
                raise OSError(problem)
            return True
        wait_for(f"the record of pod {name} is true", probe, timeout_s, interval_s=0.3)
        return annotation(self.pod(name), IDX)
