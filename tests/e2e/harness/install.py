# SPDX-License-Identifier: Apache-2.0
"""This project's images and manifests on a DeployedCluster, as an operator puts them there: kubectl
and kustomize, from the folder manifests/ as it is."""

import glob
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import tarfile

from harness import release, seclusion
from harness.containers import write_image
from harness.control_plane import ROOT, kube_program
from harness.extender import Extender
from harness.node import NODE, Plugin
from harness.processes import wait_for
from harness.scheduler import SHIPPED_KUBECONFIG, replace_once

SYSTEM = "gpushare-system"
IMAGES = ("gpushare.invalid/gpushare-extender", "gpushare.invalid/gpushare-device-plugin",
          "gpushare.invalid/gpushare-mps", "gpushare.invalid/kubectl-inspect-gpushare")
PROGRAMS = ("/usr/bin/gpushare-extender", "/usr/bin/gpushare-device-plugin")
SCHEDULER_IMAGE = "registry.k8s.io/kube-scheduler"
PLUGIN = "daemonset/gpushare-device-plugin"
NEXT_TAG = "next"
NAME_ANNOTATION = "io.containerd.image.name"


def archives():
    """Written by scripts/image.sh; scripts/e2e.sh sets the folder."""
    found = sorted(glob.glob(os.path.join(os.environ["GPUSHARE_IMAGES"], "*.tar")))
    if len(found) != len(IMAGES):
        raise FileNotFoundError(f"image archives: {found}")
    return found


def name_in(archive):
    """The image's full name, as containerd will know it."""
    with tarfile.open(archive) as tar:
        index = json.load(tar.extractfile("index.json"))
    return index["manifests"][0]["annotations"][NAME_ANNOTATION]


def load_images(containerd):
    """What a registry would give: ours, and ours once more under a later tag. Returns the tag of the
    first."""
    tag = None
    for archive in archives():
        containerd.import_image(archive)
        repository, tag = name_in(archive).rsplit(":", 1)
        containerd.ctr("images", "tag", f"{repository}:{tag}", f"{repository}:{NEXT_TAG}")
    return tag


def load_scheduler(containerd, run_dir, tag):
    """kube-scheduler's image by the name that an overlay has, with the program under test in it."""
    path = os.path.join(run_dir, "kube-scheduler.tar")
    write_image(path, f"{SCHEDULER_IMAGE}:{tag}", kube_program("kube-scheduler"), ())
    containerd.import_image(path)
    os.unlink(path)


def pids_of(program):
    """Processes of this case: those of others are in other namespaces."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                if cmdline.read().split(b"\0")[0] == program.encode():
                    found.append(int(pid))
        except OSError:
            continue
    return found


FAKE_GPUS = {"op": "add", "path": "/spec/template/spec/containers/0/args/-"}
PROFILE = "gpushare-extender.json"
SECCOMP = {"op": "replace", "path": "/spec/template/spec/securityContext/seccompProfile"}


def place_profile():
    """Where docs/security.md tells operators to put it."""
    folder = os.path.join(seclusion.KUBELET_DIR, "seccomp")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(ROOT, "manifests/seccomp", PROFILE), folder)


def patch(folder, target, *operations):
    """A patch of one object, its operations in a file beside."""
    path = os.path.join(folder, f"{target['name']}.json")
    with open(path, "w", encoding="ascii") as out:
        json.dump(operations, out)
    return {"target": {"group": "apps", "version": "v1", **target}, "path": os.path.basename(path)}


def kustomization(path, folders, tag, gpus, local_profile=False):
    """An operator's own folder on top of ours: other tags, and the one thing that a machine without
    GPUs needs on top of what is shipped. local_profile: the extender is a Deployment, and runs under
    the shipped seccomp profile. JSON is YAML."""
    os.makedirs(path, exist_ok=True)
    patches = [patch(path, {"kind": "DaemonSet", "name": "gpushare-device-plugin"},
                     {**FAKE_GPUS, "value": f"--fake-gpus={gpus}"})]
    if local_profile:
        patches.append(patch(path, {"kind": "Deployment", "name": "gpushare-extender"}, {
            **SECCOMP, "value": {"type": "Localhost", "localhostProfile": PROFILE}}))
    images = [{"name": name, "newTag": tag} for name in IMAGES]
    with open(os.path.join(path, "kustomization.yaml"), "w", encoding="ascii") as out:
        json.dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                   "resources": [os.path.relpath(os.path.join(ROOT, "manifests", folder), path)
                                 for folder in folders],
                   "images": images, "patches": patches}, out)


class DeployedPlugin(Plugin):
    """The DaemonSet's pod on our one node."""

    def __init__(self, cluster):  # pylint: disable=super-init-not-called
        self.cluster = cluster
        self.process = None

    def pod(self):
        """The newest: during a rollout there may be an old one besides."""
        pods = self.cluster.api.pods(labelSelector="app.kubernetes.io/name=gpushare-device-plugin")
        pods = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        if len(pods) != 1:
            raise OSError(f"{len(pods)} pods of the device plugin")
        return pods[0]

    def start(self, wait=True):
        """The DaemonSet controller does."""

    def kill(self):
        """A crash: the kubelet starts the container again."""
        for pid in pids_of(PROGRAMS[1]):
            os.kill(pid, signal.SIGKILL)
        wait_for("the container has ended", lambda: not self.answers())

    def answers(self):
        try:
            return self.ask("/healthz")[0] == 200
        except OSError:
            return False

    def connection(self):
        return http.client.HTTPConnection(self.pod()["status"]["podIP"], 29997, timeout=5)

    def ready(self):
        return self.pod()["status"].get("podIP") and self.ask("/readyz")[0] == 200


class ServedExtender(Extender):
    """Whoever leads, through the Service, as kube-scheduler reaches it."""

    def __init__(self, address, folder):  # pylint: disable=super-init-not-called
        self.address = address
        self.tls = ssl.create_default_context(cafile=f"{folder}/ca.crt")
        self.tls.check_hostname = False  # the certificate names the Service
        self.tls.load_cert_chain(f"{folder}/client.crt", f"{folder}/client.key")

    @property
    def url(self):
        return f"https://{self.address}:29999"

    def connection(self, port):
        return http.client.HTTPSConnection(self.address, port or 29999, context=self.tls,
                                           timeout=10)


class Layout:
    """One of manifests/overlays, and what its user does by hand."""

    overlay = None
    deployment = None
    local_profile = False

    def __init__(self, cluster):
        self.cluster = cluster
        self.path = os.path.join(cluster.run_dir, "kustomization")
        self.plugin = DeployedPlugin(cluster)
        self.extender = None

    def install(self, tag, gpus):
        raise NotImplementedError

    def apply(self, tag, gpus):
        kustomization(self.path, [f"overlays/{self.overlay}"], tag, gpus, self.local_profile)
        self.cluster.kubectl("apply", "-k", self.path)

    def wait_ready(self, timeout_s=120):
        for what in (self.deployment, PLUGIN):
            self.cluster.kubectl("-n", SYSTEM, "rollout", "status", what, f"--timeout={timeout_s}s")



class BehindService(Layout):
    """Replicas with leader election and mutual TLS, asked by the cluster's own kube-scheduler, which
    is not a pod here."""

    overlay = "ha-mtls"
    deployment = "deployment/gpushare-extender"

    def install(self, tag, gpus):
        """As docs/install.md says, with the shipped script's certificates."""
        self.apply(tag, gpus)
        service = self.cluster.api.get(f"/api/v1/namespaces/{SYSTEM}/services/gpushare-extender")
        address = service["spec"]["clusterIP"]
        made = os.path.join(self.cluster.run_dir, "certificates")
        subprocess.run([os.path.join(ROOT, "scripts/extender_certificates.sh"), "--address", address,
                        "--out", made, "--config",
                        os.path.join(ROOT, "config", release.SCHEDULER_CONFIG)],
                       check=True, capture_output=True)
        self.cluster.kubectl("apply", "-f", os.path.join(made, "secret.yaml"))
        self.extender = ServedExtender(address, os.path.join(made, "control-plane"))
        self.cluster.scheduler.start_with(self.scheduler_config(made))

    def scheduler_config(self, made):
        """What the script wrote, with this machine's paths."""
        with open(os.path.join(made, "control-plane/kube-scheduler-config.yaml"),
                  encoding="utf-8") as text:
            config = text.read().replace("/etc/kubernetes/gpushare", f"{made}/control-plane")
        kubeconfig = self.cluster.control_plane.kubeconfig("system:kube-scheduler")
        return replace_once(config, SHIPPED_KUBECONFIG, kubeconfig)

    def wait_ready(self, timeout_s=120):
        super().wait_ready(timeout_s)
        wait_for("the leader is reached through the Service",
                 lambda: self.extender.ask("GET", "/version")[0] == 200, timeout_s)


class SecondScheduler(Layout):
    """kube-scheduler and the extender in one pod, over loopback; the README's layout."""

    overlay = "second-scheduler" if release.MINOR >= 25 else "second-scheduler-v1beta1"
    deployment = "deployment/gpushare-scheduler"

    def __init__(self, cluster):
        super().__init__(cluster)
        with open(os.path.join(ROOT, "manifests/overlays", self.overlay, "kustomization.yaml"),
                  encoding="utf-8") as text:
            tag = text.read().split("newTag: ")[1].split()[0]
        load_scheduler(cluster.containerd, cluster.run_dir, tag)

    def install(self, tag, gpus):
        """The cluster's own kube-scheduler places our pods, and knows nothing of GPUs."""
        self.cluster.scheduler.start(None)
        self.apply(tag, gpus)

    def readme_changes(self):
        """Which node has GPUs, and what the README asks of users of older releases."""
        return [("label node NODE", f"label node {NODE}"),
                ("overlays/second-scheduler", f"overlays/{self.overlay}")]

    def uninstall_changes(self):
        return [("manifests/overlays/kubeadm", f"manifests/overlays/{self.overlay}")]

    def pretend_gpus(self, gpus):
        self.cluster.kubectl("-n", SYSTEM, "patch", PLUGIN, "--type=json", "-p",
                             json.dumps([{**FAKE_GPUS, "value": f"--fake-gpus={gpus}"}]))
