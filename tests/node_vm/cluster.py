# SPDX-License-Identifier: Apache-2.0
"""A cluster whose one node is a virtual machine: systemd, cgroup v2, containerd, runc and a kubelet on
a kernel with dmem and the mock driver. The control plane is beside it, in the same network
namespace; this project is installed with kubectl and runs in pods."""

import contextlib
import json
import os
import shutil
import subprocess
import time

from harness import install, release, seclusion
from harness.cluster import Cluster
from harness.containers import IMAGE, NETWORK, write_image
from harness.control_plane import ROOT, built_program, kube_program
from harness.deployed import KUBELET_USER, DeployedControlPlane
from harness.install import SYSTEM, BehindService
from harness.node import KUBELET_CONFIG, NODE, READS_OUR_LIST, REGISTRATIONS
from harness.objects import GPU_MEM, IDX, INVENTORY, NAMESPACE, annotation, node_ready
from harness.processes import Failure, wait_for

from driver import Driver
from machine import ADDRESS, Machine
from pods import USER

GIB = 1 << 30
PCI = ("0000:41:00.0", "0000:c1:00.0", "0000:01:00.0", "0000:21:00.0")  # tests/kernel/fakegpu.c
REGIONS = tuple(f"nvidia/{pci.removesuffix('.0')}/vidmem" for pci in PCI)
GPU_GIB = 16
UUIDS = tuple(f"GPU-{idx}" for idx in range(len(PCI)))
STATIC_PODS = "/etc/kubernetes/manifests"
CONTAINERD_CONFIG = "/etc/containerd/config.toml"


def cards(uuids=UUIDS):
    """What the plugin is told of this machine's GPUs. A uuid "MIG-…": an instance of the card there."""
    return {"v": 1, "unit": "GiB", "gpus": [
        {"idx": idx, "uuid": uuid, "mem": GPU_GIB, "memMiB": GPU_GIB * 1024, "pci": pci,
         "model": "mock"} for idx, (uuid, pci) in enumerate(zip(uuids, PCI))]}


def cdi(stock):
    """As nvidia-ctk writes it: a container gets the device nodes of the GPUs that it was given. On a
    kernel for which there is no mock, that of /dev/null, which gives everything."""
    real = {"hostPath": "/dev/null"} if stock else {}
    return {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [
        {"name": f"{kind}-{idx}",
         "containerEdits": {"deviceNodes": [{"path": f"/dev/fakegpu{idx}", **real}]}}
        for kind in ("GPU", "MIG") for idx in range(len(PCI))]}


class Systemd:
    """Where a kubelet with this cgroup driver has pods' cgroups."""

    name, root = "systemd", "/sys/fs/cgroup/kubepods.slice"
    classes = {"BestEffort": "kubepods-besteffort.slice", "Burstable": "kubepods-burstable.slice",
               "Guaranteed": ""}

    @staticmethod
    def pod(uid):
        return f"*pod{uid.replace('-', '_')}.slice"


class Cgroupfs:
    name, root = "cgroupfs", "/sys/fs/cgroup/kubepods"
    classes = {"BestEffort": "besteffort", "Burstable": "burstable", "Guaranteed": ""}

    @staticmethod
    def pod(uid):
        return f"pod{uid}"


class VmControlPlane(DeployedControlPlane):
    """What it wrote for a cluster that it finds again (a snapshot's) is good there."""

    def __init__(self, processes, run_dir):
        super().__init__(processes, run_dir)
        self.port, self.apiserver, self.etcd_url = 6443, None, None
        with contextlib.suppress(FileNotFoundError), open(self.path("tokens.csv"), encoding="ascii") as known:
            self.tokens = {"admin": known.read().split(",")[0]}

    def start_proxy(self):
        """The node has it."""

    def stop_apiserver(self):
        self.apiserver.stop()

    def start_again(self):
        self.start_apiserver(self.etcd_url)
        self.wait_until_ready(self.apiserver)

    def start_apiserver(self, etcd_url):
        self.etcd_url = etcd_url
        self.apiserver = super().start_apiserver(etcd_url)
        return self.apiserver

    def stop(self):
        """etcd last, so that its files are whole."""
        self.processes.stop_all()
        self.admin = None


class VmContainerd:
    """What install.load_images() needs of it."""

    def __init__(self, machine):
        self.machine = machine

    def import_image(self, path):
        self.machine.send(path, "ctr -n k8s.io images import -")

    def ctr(self, *args):
        self.machine.do(f"ctr -n k8s.io {' '.join(args)}")


class Limited(BehindService):
    """The overlay with replicas behind a Service, the component for limits, and what a machine without a
    card needs: GPUs from a file, with the addresses that the mock has; or, with the component for
    what pods use, from a mock for the driver's library."""

    mode, tag, mps, driver = "preferred", None, False, False

    def start_scheduler(self):
        made = os.path.join(self.cluster.run_dir, "certificates")
        self.cluster.scheduler.start_with(self.scheduler_config(made))

    def apply(self, tag, gpus):
        self.tag = tag
        os.makedirs(self.path, exist_ok=True)
        def relative(folder):
            return os.path.relpath(os.path.join(ROOT, "manifests", folder), self.path)
        container = "/spec/template/spec/containers/0"
        def words(*more):
            return [{"op": "add", "path": f"{container}/args/-", "value": word} for word in more]
        has_cards = [
            *words("--nvml-library=/cards/libnvidia-ml.so" if self.driver else "--gpu-file=/cards/cards.json"),
            *([{"op": "add", "path": f"{container}/env/-",
                "value": {"name": "GS_FAKE_NVML", "value": "/cards/driver"}}] if self.driver else []),
            {"op": "add", "path": f"{container}/volumeMounts/-",
             "value": {"name": "cards", "mountPath": "/cards", "readOnly": True}},
            {"op": "add", "path": "/spec/template/spec/volumes/-",
             "value": {"name": "cards", "hostPath": {"path": "/etc/cards"}}}]
        patches = {"gpushare-device-plugin": has_cards + words(
            "--pod-usage=on", "--device-list-strategy=cdi-cri", f"--enforce={self.mode}")}
        if self.mps:
            patches["gpushare-mps"] = has_cards
        with open(os.path.join(self.path, "kustomization.yaml"), "w", encoding="ascii") as out:
            json.dump({
                "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                "resources": [relative(f"overlays/{self.overlay}")],
                "components": [relative(f"limits/{self.cluster.cgroups.name}"),
                               *([relative("limits/driver")] if self.driver == "limits" else []),
                               *([relative("mps")] if self.mps else []),
                               *([relative("pod-usage")] if self.driver else [])],
                "images": [{"name": name, "newTag": tag} for name in install.IMAGES],
                "replicas": [{"name": "gpushare-extender", "count": 1}],
                "patches": [{"target": {"kind": "DaemonSet", "name": name},
                             "patch": json.dumps(operations)} for name, operations in patches.items()]},
                      out)
        self.cluster.kubectl("apply", "-k", self.path)


class VmCluster(Cluster):
    units, pci = GPU_GIB * len(PCI), PCI

    def __init__(self, kernel, disk_dir, snapshot, cgroups=Systemd, runtime="runc", driver=False):
        """snapshot: a folder; the node is as it was saved there, or saved there once it is ready, without anything of
        ours. None: neither. driver: "limits" where the driver limits pods by its own call."""
        self.cgroups, self.runtime, self.driver = cgroups, runtime, driver
        self.word = "driver" if driver else "dmem"  # who limits
        self.snapshot = snapshot
        self.resumes = bool(snapshot) and os.path.exists(snapshot)
        if self.resumes:
            shutil.copytree(os.path.join(snapshot, "run"), os.environ["GPUSHARE_RUN_DIR"], dirs_exist_ok=True)
        super().__init__(extender=False, scheduler=None)
        self.control_plane = VmControlPlane(self.processes, self.run_dir)
        self.scheduler.control_plane = self.control_plane
        self.stock = os.path.exists(os.path.join(kernel, "modules"))
        self.machine = Machine(self.processes, self.run_dir, kernel, disk_dir)
        self.containerd = VmContainerd(self.machine)
        self.layout = Limited(self)
        self.plugin = self.layout.plugin

    def start(self):
        seclusion.network(("tuntap", "add", "dev", "node0", "mode", "tap"))
        if not self.resumes:
            self.start_anew()
        if self.snapshot:
            self.go_on()
        self.install()

    def go_on(self):
        """From the snapshot."""
        if not self.resumes:
            self.save()
        super().start()
        self.machine.resume(self.snapshot)
        self.wait_node_ready()

    def save(self):
        """The node and its control plane, which end with that."""
        new = f"{self.snapshot}.new"
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(new)
        self.machine.save(new)
        self.control_plane.stop()
        shutil.copytree(self.run_dir, os.path.join(new, "run"),
                        ignore=shutil.ignore_patterns("*.log", "*.tar", "ssh", "monitor"))
        os.rename(new, self.snapshot)

    def start_anew(self):
        box = os.path.join(self.run_dir, "box.tar")
        write_image(box)
        self.machine.start((kube_program("kubelet"), os.environ["KUBE_PROXY"]))
        super().start()
        self.start_node(box)

    def kubectl(self, *args):
        return self.control_plane.kubectl(*args)

    def inspect(self, *words):
        """What people type, and what it answers."""
        done = subprocess.run([built_program("kubectl-inspect-gpushare"), *words], text=True,
                              capture_output=True, check=False, env={
                                  **os.environ, "KUBECONFIG": self.control_plane.kubeconfig("admin")})
        return done.stdout + done.stderr

    def pid_of(self, name):
        """Of what its container runs, as the node counts. The sandbox's was given no GPU."""
        return int(wait_for(f"{name} has a process", lambda: self.machine.ask(
            f"cat $(find {self.slice_of(name)} -name cgroup.procs) | while read pid; do"
            " grep -qx sleep /proc/$pid/comm && grep -q ALIYUN_COM_GPU_MEM_IDX= /proc/$pid/environ && echo $pid; done"
            " | head -n 1").stdout.strip(), 60))

    def put(self, path, text):
        self.machine.do(f"mkdir -p {os.path.dirname(path)} && cat >{path}", text)

    def kubelet_config(self):
        return {**KUBELET_CONFIG, **release.kubelet_config(), "address": ADDRESS, "port": 10250,
                "cgroupDriver": self.cgroups.name, "healthzPort": 10248, "healthzBindAddress": "127.0.0.1",
                "enforceNodeAllocatable": ["pods"], "maxPods": 110,
                "nodeStatusUpdateFrequency": "5s", "syncFrequency": "30s",
                "runtimeRequestTimeout": "15m",  # emulated
                "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                                   "x509": {"clientCAFile": "/etc/kubernetes/users.crt"}},
                "resolvConf": "",
                "staticPodPath": STATIC_PODS}

    def node_kubeconfig(self, user):
        """With what it names in it: a file for another machine."""
        return subprocess.run([kube_program("kubectl"), "config", "view", "--flatten", "--raw",
                               f"--kubeconfig={self.control_plane.kubeconfig(user)}"], check=True,
                              capture_output=True, text=True).stdout

    def start_node(self, box):
        with open(self.control_plane.authority.cert, encoding="ascii") as certificate:
            self.put("/etc/kubernetes/users.crt", certificate.read())
        self.put("/etc/kubernetes/kubelet.json", json.dumps(self.kubelet_config()))
        self.put("/etc/kubernetes/kubelet.conf", self.node_kubeconfig(KUBELET_USER))
        self.put("/etc/kubernetes/kube-proxy.conf", self.node_kubeconfig("system:kube-proxy"))
        self.put("/etc/cni/net.d/e2e.conflist", json.dumps(NETWORK))
        self.put("/etc/cdi/mock.json", json.dumps(cdi(self.stock)))
        self.set_cards()
        self.configure_containerd()
        wait_for("containerd answers", lambda: self.machine.ask("ctr version").returncode == 0, 300)
        self.containerd.import_image(box)
        self.machine.do(f"mkdir -p {STATIC_PODS}")
        self.start_kubelet()
        self.wait_node_ready()

    def wait_node_ready(self):
        wait_for("the node is ready",
                 lambda: node_ready(self.api.find(f"/api/v1/nodes/{NODE}")), 600, interval_s=1)

    def start_kubelet(self):
        self.machine.do("echo 1 >/proc/sys/net/ipv4/ip_forward; systemctl start kubelet kube-proxy")

    def configure_containerd(self):
        changes = []
        if self.cgroups is Cgroupfs:
            changes.append("s/SystemdCgroup = true/SystemdCgroup = false/")
        if self.runtime == "crun":
            changes.append(r's|\(.*\)\(containerd.runtimes.runc.options.*\)|&\n    BinaryName = "/usr/bin/crun"|')
        for change in changes:
            self.machine.do(f"sed -i '{change}' {CONTAINERD_CONFIG}; systemctl restart containerd")

    def set_cards(self, uuids=UUIDS):
        """With one rename, as the plugin may read it now."""
        self.put("/etc/cards/new", json.dumps(cards(uuids)))
        self.machine.do("mv /etc/cards/new /etc/cards/cards.json")

    def install(self):
        wait_for("there is a ServiceAccount", self.control_plane.has_accounts, 120)
        tag = install.load_images(self.containerd)
        self.kubectl("label", "node", NODE, "gpushare=true")
        self.layout.driver = self.driver
        if self.driver:
            Driver(self, "limits 0 0", "dmem")
        self.layout.install(tag, None)
        self.layout.wait_ready(600)
        self.extender = self.layout.extender
        wait_for("the node shows its GPU memory", self.gpu_memory, 120)
        wait_for("the node has an inventory",
                 lambda: annotation(self.node_object(), INVENTORY), 120)

    def node_object(self):
        return self.api.get(f"/api/v1/nodes/{NODE}")

    def gpu_memory(self):
        return int(self.node_object()["status"].get("allocatable", {}).get(GPU_MEM, 0))

    def roll_out(self, mode, tag=None, mps=False, driver=None):
        """Another --enforce, another image, as an operator does it."""
        self.layout.mode, self.layout.mps, self.layout.driver = mode, mps, driver or self.driver
        with self.registers_again():
            self.layout.apply(tag or self.layout.tag, None)
            self.layout.wait_ready(300)

    def life(self):
        """(the plugin's pod, its restarts, its registrations): another one once it registered again."""
        pod = self.plugin.pod()
        restarts = pod["status"]["containerStatuses"][0]["restartCount"]
        return pod["metadata"]["uid"], restarts, self.plugin.metric(REGISTRATIONS)

    @contextlib.contextmanager
    def registers_again(self):
        units, before = self.gpu_memory(), self.life()
        yield
        wait_for("the plugin registered again", lambda: self.life() != before and
                 self.plugin.metric(READS_OUR_LIST) == 1, 300, interval_s=1)
        wait_for("the kubelet offers the GPUs", lambda: self.gpu_memory() == units, 120)

    def create(self, *pods):
        self.create_pods(pods)

    def running(self, name, timeout_s=240):
        """The pod once all its containers run; one that failed is a failure at once."""
        def probe():
            found = self.find_pod(name)
            status = (found or {}).get("status", {})
            if status.get("phase") == "Failed":
                raise Failure(f"pod {name} failed: {status.get('reason')} {status.get('message')}")
            states = status.get("containerStatuses") or []
            return found if states and all("running" in s["state"] for s in states) else None
        return wait_for(f"pod {name} runs", probe, timeout_s, interval_s=0.5)

    def gpu_of(self, name):
        return wait_for(f"{name} has a GPU", lambda: annotation(self.pod(name), IDX), 60)

    def slice_of(self, name):
        made = self.pod(name)
        uid = annotation(made, "kubernetes.io/config.hash") or made["metadata"]["uid"]
        found = self.machine.do(f"find {self.cgroups.root} -name '{self.cgroups.pod(uid)}'").split()
        if len(found) != 1:
            raise Failure(f"pod {name} has {len(found)} slices: {found}")
        return found[0]

    def cgroup(self, name, file):
        return self.machine.do(f"cat {self.slice_of(name)}/{file}")

    def logs(self, name, container, lines):
        """The first lines, once there are so many, by kubectl logs."""
        def probe():
            try:
                found = self.kubectl("logs", name, "-c", container).splitlines()
            except RuntimeError as error:  # the container is being made
                raise OSError(error) from None
            return found if len(found) >= lines else None
        return wait_for(f"{name}/{container} wrote {lines} lines", probe, 120, interval_s=1)

    def exec(self, name, container, script):
        return self.kubectl("exec", name, "-c", container, "--", "sh", "-c",
                            f"{USER}; {script}").strip()

    def event(self, name):
        """What its first Event of ours says."""
        return next((event["message"] for event in self.api.events(NAMESPACE, name)
                     if event["reason"].startswith("Gpu")), "no Event")

    def static(self, name, made):
        self.put(f"{STATIC_PODS}/{name}.json", json.dumps(made))

    def runtime_class(self, name):
        self.control_plane.admin.create("/apis/node.k8s.io/v1/runtimeclasses", {
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name},
            "handler": name})

    def life_of(self, name):
        """(its container, how often it was started again)"""
        state = self.pod(name)["status"]["containerStatuses"][0]
        return state["containerID"], state["restartCount"]

    def decided(self, name):
        """The pod, once the kubelet that started anew runs it or has given it up."""
        found = self.pod(name)
        states = found["status"].get("containerStatuses") or [{"restartCount": 0, "state": {}}]
        again = states[0]["restartCount"] > 0 and "running" in states[0]["state"]
        return found if again or found["status"]["phase"] == "Failed" else None

    def settle(self, restore=True):
        """No pod of the case before is left, the kubelet has given back what they had, and ours serve."""
        self.machine.do(f"rm -f {STATIC_PODS}/*")
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        folder = f"{self.cgroups.root}/{self.cgroups.classes['BestEffort']}"
        wait_for("no container is left", lambda: self.plugin.metric("gpushare_device_plugin_pods") == 0
                 and not self.machine.do(f"find {folder} -mindepth 2 -type d 2>/dev/null || true"), 300, interval_s=1)
        self.layout.wait_ready(300)
        if restore:
            self.restore()
        wait_for("the kubelet offers the GPUs", lambda: self.gpu_memory() == self.units, 120)

    def restore(self):
        """What a case that failed may have left otherwise."""
        known = self.machine.read("/etc/cards/cards.json")
        if json.loads(known) != cards():
            self.set_cards()
        if self.layout.mps:
            self.kubectl("-n", SYSTEM, "delete", "daemonset", "gpushare-mps")
        if (self.layout.mode, self.layout.mps, self.layout.driver) != ("preferred", False, self.driver):
            self.roll_out("preferred")

    def gpu(self, uuid):
        """What the inventory says of it."""
        found = json.loads(annotation(self.node_object(), INVENTORY))["gpus"]
        return {one["uuid"]: one for one in found}.get(uuid, {})

    def reboot(self, away_s):
        """The node reboots, and the API server is away until it has been up for so long."""
        self.control_plane.stop_apiserver()
        self.machine.reboot()
        self.start_kubelet()
        time.sleep(away_s)
        self.control_plane.start_again()
        self.scheduler.stop()  # it ended when it lost its lease; a static pod would be started again
        self.layout.start_scheduler()

    def __exit__(self, kind, *rest):
        if kind is not None:
            self.tell()
        self.extender = None
        super().__exit__(kind, *rest)

    def tell(self):
        with contextlib.suppress(Exception):
            print(self.kubectl("get", "nodes,pods", "-A", "-o", "wide"))
            print(self.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp")[-4000:])
        with contextlib.suppress(Exception):
            print(self.machine.do("journalctl --no-pager -n 80 -u kubelet -u containerd -u kube-proxy"))
