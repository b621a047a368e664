# SPDX-License-Identifier: Apache-2.0
"""How each scheduler extender is started, asked and told of nodes, and where it writes which GPU a pod
has. All say what they say of the same nodes, in GiB of GPUs of 80."""

import http.client
import json
import queue
import re
import subprocess
import threading
import time

from harness.api import node_path
from harness.control_plane import HOST
from harness.objects import GPU_MEM, annotation, bound_node, key, pod
from harness.processes import ask, free_port, wait_for
from harness.watch import PodWatch

GPUS, GIB = 8, 80
SHARES = 10  # of a GPU: the default of those that advertise shares
MIB = 1024


def gpu_id(node, idx):
    return f"GPU-{node}-{idx}"


def limits(name, **resources):
    """A pod whose one container asks for these."""
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {
        "limits": {resource: str(count) for resource, count in resources.items()}}
    return made


class Dialect:
    """Where nothing else is said, the words are those of the original, which ours are."""

    decides = True  # which GPU a pod gets
    favours = ()
    watching = PodWatch

    def __init__(self, name, program=None):
        self.name, self.program = name, program
        self.flags, self.process = (), None

    def tell_node(self, made):
        """Adds to a node what the extender's device plugin would write."""

    def pod(self, name, units):
        return pod(name, units)

    def edit(self, config, url):
        """kube-scheduler's configuration."""
        return config[:config.index("extenders:")] + config[config.index("\n", config.rindex(
            "ignoredByScheduler")) + 1:] + self.stanza(url)

    def stanza(self, url):
        return f"""
extenders:
- urlPrefix: {url}
  filterVerb: filter
  bindVerb: bind
  weight: 1
  httpTimeout: 30s
  nodeCacheCapable: true
  managedResources:
{"".join(f"  - {{name: {name}, ignoredByScheduler: {str(ignored).lower()}}}" + chr(10)
         for name, ignored in self.managed)}"""

    def start(self, cluster):
        """Returns its URL, once it answers."""
        raise NotImplementedError

    def placed(self, made):
        """{GPU: units} of a pod, by what the extender wrote; {}: nothing."""
        uuids, idx = bound_node(made), annotation(made, "ALIYUN_COM_GPU_MEM_IDX")
        units = annotation(made, "ALIYUN_COM_GPU_MEM_POD")
        return {gpu_id(uuids, int(idx)): int(units)} if idx and units else {}

    def version(self):
        """What the user gave, in one line."""
        said = subprocess.run(["sha256sum", self.program], capture_output=True, text=True, check=True)
        return f"{self.program}, sha256 {said.stdout[:16]}"

    def launch(self, cluster, argv, env=None):
        self.flags = [*(f"{name}={value}" for name, value in (env or {}).items()), *argv]
        self.process = cluster.processes.start(self.name, [self.program, *argv], env={
            **(env or {}), "KUBECONFIG": cluster.control_plane.kubeconfig("admin")})

    def wait_answer(self, port, path, body, timeout_s=120):
        def probe():
            self.process.must_run()
            return ask(http.client.HTTPConnection(HOST, port, timeout=60), "POST", path, body)[0] == 200
        wait_for(f"{self.name} answers", probe, timeout_s)


def empty_filter():
    """Asks for nothing, of no node."""
    return {"Pod": pod("none"), "NodeNames": []}


class Original(Dialect):
    managed = ((GPU_MEM, False),)
    favours = ("it listens on every address of the machine: its port alone can be chosen",)

    def start(self, cluster):
        port = free_port()
        self.launch(cluster, [], {"PORT": str(port), "LOG_LEVEL": "warn"})
        self.wait_answer(port, "/gpushare-scheduler/filter", empty_filter())
        return f"http://{HOST}:{port}/gpushare-scheduler"


class LockReleaser(PodWatch):
    """Plays HAMi's device plugin: takes its lock off a node as soon as the pod is seen bound there."""

    def __init__(self, api):
        super().__init__(api)
        self.bound = queue.Queue()
        self.worker = threading.Thread(target=self.release, daemon=True)

    def __enter__(self):
        self.worker.start()
        return super().__enter__()

    def __exit__(self, *args):
        self.bound.put(None)
        self.worker.join()
        super().__exit__(*args)

    def take(self, kind, pod):  # pylint: disable=redefined-outer-name
        known = key(pod) in self.bound_at
        super().take(kind, pod)
        if kind != "DELETED" and not known and bound_node(pod):
            self.bound.put(bound_node(pod))

    def release(self):
        while node := self.bound.get():
            self.api.patch(node_path(node), {"metadata": {"annotations": {"hami.io/mutex.lock": None}}})


class Hami(Dialect):
    managed = (("nvidia.com/gpu", True), ("nvidia.com/gpumem", True), ("nvidia.com/gpucores", True))
    watching = LockReleaser
    favours = ("its device plugin is played: the lock of a node is taken off as soon as the pod is "
               "seen bound there, and the plugin's other writes are left out",
               "requests to the API server without its limit (--kube-qps, --kube-burst)",
               "no TLS and no webhook: the pods say what the webhook would add",
               "the handshake of every node is there before it starts")

    def __init__(self, name, program, policy):
        super().__init__(name, program)
        self.policy = policy

    def tell_node(self, made):
        name = made["metadata"]["name"]
        made["status"]["capacity"]["nvidia.com/gpu"] = str(GPUS * SHARES)
        made["metadata"]["annotations"].update({
            "hami.io/node-handshake": time.strftime("Requesting_%Y-%m-%d %H:%M:%S"),
            "hami.io/node-nvidia-register": json.dumps([
                {"id": gpu_id(name, idx), "index": idx, "count": SHARES, "devmem": GIB * MIB,
                 "devcore": 100, "type": "NVIDIA-A100-SXM4-80GB", "mode": "hami-core", "health": True}
                for idx in range(GPUS)])})

    def pod(self, name, units):
        return limits(name, **{"nvidia.com/gpu": 1, "nvidia.com/gpumem": units * MIB})

    def start(self, cluster):
        port, metrics = free_port(), free_port()
        config = cluster.control_plane.path("hami-devices.yaml")
        with open(config, "w", encoding="ascii") as out:
            out.write(HAMI_DEVICES)
        self.launch(cluster, [
            f"--http_bind={HOST}:{port}", f"--metrics-bind-address={HOST}:{metrics}",
            f"--device-config-file={config}", "--scheduler-name=default-scheduler",
            f"--node-scheduler-policy={self.policy}", "--gpu-scheduler-policy=spread",
            "--kube-qps=5000", "--kube-burst=5000"])
        self.wait_answer(port, "/filter", empty_filter())  # after it has taken in the nodes: up to 15 s
        return f"http://{HOST}:{port}"

    def placed(self, made):
        """"UUID,type,MiB,cores:" of each GPU, ";" behind each container."""
        if annotation(made, "hami.io/vgpu-node") != bound_node(made):
            return {}
        found = re.findall(r"([^,:;]+),[^,]*,(\d+),\d+:", annotation(
            made, "hami.io/vgpu-devices-allocated") or "")
        return {uuid: int(mib) // MIB for uuid, mib in found}

    def version(self):
        said = subprocess.run([self.program, "version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        return f"{super().version()}, says {' '.join(said.stdout.split())}"


# As its chart has it, NVIDIA's part.
HAMI_DEVICES = f"""
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
  overwriteEnv: false
  defaultMemory: 0
  defaultCores: 0
  defaultGPUNum: 1
  memoryFactor: 1
  deviceSplitCount: {SHARES}
  deviceMemoryScaling: 1
  deviceCoreScaling: 1
"""
