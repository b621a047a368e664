# SPDX-License-Identifier: Apache-2.0
"""A cluster as operators have it, in namespaces of its own (seclusion.py): the controller manager,
kube-proxy and a node with an identity of its own, ServiceAccount tokens and their rights enforced.
Nothing of this project runs until it is installed.

    with DeployedCluster() as cluster:
        cluster.install(BehindService(cluster), gpus="2x16GiB")
"""

import contextlib
import glob
import os
import shutil
import threading

from harness import install, release, seclusion
from harness.certificates import Authority
from harness.containers import POD_NETWORK
from harness.control_plane import ControlPlane, kube_program
from harness.node import NODE, POD_LOGS, NodeCluster
from harness.processes import Failure, wait_for

CERTIFICATE_KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: e2e
  cluster: {{server: "{server}", certificate-authority: "{ca_file}"}}
users:
- name: {user}
  user: {{client-certificate: "{cert}", client-key: "{key}"}}
contexts:
- name: e2e
  context: {{cluster: e2e, user: "{user}"}}
current-context: e2e
"""

SERVICE_ACCOUNT_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"

# What a cluster's own programs are to the API server, by certificate: {user: groups}.
KUBELET_USER = f"system:node:{NODE}"
USERS = {KUBELET_USER: ("system:nodes",), "system:kube-scheduler": (), "system:kube-proxy": (),
         "system:kube-controller-manager": ()}


class DeployedControlPlane(ControlPlane):
    """The only token is the operator's. It speaks to the kubelet, for kubectl port-forward."""

    host = seclusion.ADDRESS

    def __init__(self, processes, run_dir):
        super().__init__(processes, run_dir)
        self.authority = Authority(self.path("users"), "users")
        self.tokens = {"admin": self.tokens["admin"]}

    @property
    def admission_flags(self):
        cert, key = self.authority.issue("kube-apiserver", groups=("system:masters",))
        return ("--enable-admission-plugins=NodeRestriction",
                f"--client-ca-file={self.authority.cert}",
                f"--kubelet-client-certificate={cert}", f"--kubelet-client-key={key}",
                "--kubelet-preferred-address-types=InternalIP")

    def kubeconfig(self, user, token=None):
        if user not in USERS:
            return super().kubeconfig(user, token)
        path = self.path(f"{user.replace(':', '-')}.kubeconfig")
        if not os.path.exists(path):
            cert, key = self.authority.issue(user, groups=USERS[user])
            with open(path, "w", encoding="ascii") as out:
                out.write(CERTIFICATE_KUBECONFIG.format(
                    server=f"https://{self.host}:{self.port}", ca_file=self.ca_file, user=user,
                    cert=cert, key=key))
        return path

    def start(self):
        super().start()
        self.processes.start("kube-controller-manager", [
            kube_program("kube-controller-manager"), "--leader-elect=false",
            f"--kubeconfig={self.kubeconfig('system:kube-controller-manager')}",
            f"--root-ca-file={self.ca_file}", "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.path('sa.key')}",
            f"--cert-dir={self.path('controller-manager')}", "--bind-address=127.0.0.1",
            *release.controller_manager_flags(), "--kube-api-qps=200", "--kube-api-burst=400"])
        self.start_proxy()

    def start_proxy(self):
        """Does what a Service promises, with the NAT of this network namespace."""
        self.processes.start("kube-proxy", [
            kube_program("kube-proxy"), "--proxy-mode=iptables",
            f"--kubeconfig={self.kubeconfig('system:kube-proxy')}",
            f"--cluster-cidr={POD_NETWORK}", f"--hostname-override={NODE}",
            f"--bind-address={self.host}", "--conntrack-max-per-core=0",
            "--iptables-min-sync-period=0s"])

    def has_accounts(self):
        """Pods are refused until the controller manager has made their ServiceAccount."""
        return self.admin.find("/api/v1/namespaces/default/serviceaccounts/default")


class DeployedCluster(NodeCluster):
    """Without GPUs, extender and scheduler until those are installed."""

    kubelet_flags = (f"--node-ip={seclusion.ADDRESS}",)
    def __init__(self, preload=True, **kwargs):
        """preload: our images and the node's label are there, as installing would begin."""
        super().__init__(wait_for_plugin=False, extender=False, scheduler=None, **kwargs)
        self.control_plane = DeployedControlPlane(self.processes, self.run_dir)
        self.scheduler.control_plane = self.control_plane
        self.kubelet_dir = seclusion.KUBELET_DIR
        self.cgroup = seclusion.Cgroup(self.run_dir)
        self.kubelet_settings = {
            "address": seclusion.ADDRESS, "port": 10250, "cgroupRoot": self.cgroup.name,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                               "x509": {"clientCAFile": self.control_plane.authority.cert}}}
        self.preload = preload
        self.installed = True  # False: it ended in no order, its rights were taken away first
        self.tag = None
        self.layout = None
        self.logs = os.path.join(self.run_dir, "pod-logs")
        self.logs_kept = threading.Event()

    def take_machine(self):
        """Other kubelets may run beside this one: it shares nothing with them."""
        seclusion.enter(self.run_dir)
        self.cgroup.make()
        os.makedirs(f"{seclusion.KUBELET_DIR}/device-plugins")
        os.makedirs(self.logs)
        threading.Thread(target=self.keep_logs, daemon=True).start()

    def kubelet_kubeconfig(self):
        return self.control_plane.kubeconfig(KUBELET_USER)

    def prepare_plugin(self):
        """Images instead of a process; the operator's label, which is no business of the kubelet."""
        if self.preload:
            self.tag = install.load_images(self.containerd)
            self.kubectl("label", "node", NODE, "gpushare=true")
        wait_for("there is a ServiceAccount", self.control_plane.has_accounts)

    def kubectl(self, *args):
        return self.control_plane.kubectl(*args)

    def install(self, layout, gpus):
        """Under the shipped policies, where the API server knows them all: what they refuse, the
        programs' logs say."""
        self.layout = layout
        if release.MINOR >= 32:
            self.kubectl("apply", "-k", self.control_plane.manifest("policies"))
        layout.install(self.tag, gpus)
        self.kubectl("apply", "-k", self.control_plane.manifest("network-policies"))
        self.plugin = layout.plugin
        self.extender = layout.extender
        layout.wait_ready()
        self.start_plugin()

    def use_gpus(self, gpus):
        """Other pretended GPUs, as an operator changes a DaemonSet's arguments."""
        self.layout.apply(self.tag, gpus)
        self.layout.wait_ready()
        self.start_plugin()

    def clear_pods(self):
        """Away with the users' pods, the static ones too."""
        for path in glob.glob(os.path.join(self.run_dir, "static-pods", "*")):
            os.unlink(path)
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        wait_for("no container is left", lambda: not self.gpu_containers(), 60)

    def gpu_containers(self):
        """What the kubelet counts as taken: it gives units back some time after the pod is gone."""
        return self.plugin.metric("gpushare_device_plugin_pods")

    def start_plugin(self):
        wait_for("the device plugin is ready", self.plugin.ready, 60)
        super().start_plugin()

    def keep_logs(self):
        """A second name for the logs of this project's pods: the kubelet removes its own with the
        pod, and what an old replica said at its end is what one wants to read."""
        while not self.logs_kept.wait(0.3):
            for folder, _, files in os.walk(seclusion.own_folder(self.run_dir, POD_LOGS)):
                pod = os.path.basename(os.path.dirname(folder))
                if not pod.startswith(f"{install.SYSTEM}_"):
                    continue
                for name in files:
                    kept = f"{pod.split('_')[1]}.{os.path.basename(folder)}.{name}"
                    with contextlib.suppress(FileExistsError, FileNotFoundError):
                        os.link(os.path.join(folder, name), os.path.join(self.logs, kept))

    def verify_logs(self):
        """The rights that were shipped sufficed, all the time."""
        for path in sorted(glob.glob(os.path.join(self.logs, "*"))):
            with open(path, encoding="utf-8") as log:
                for line in log:
                    if "forbidden" in line.lower() or "Sanitizer" in line:
                        raise Failure(f"{os.path.basename(path)}: {line}")

    def verify_identity(self):
        """Our programs have the token of their ServiceAccount, and not the operator's."""
        token = self.control_plane.tokens["admin"].encode()
        for program in install.PROGRAMS:
            pids = install.pids_of(program)
            if not pids:
                raise Failure(f"{program} does not run")
            for pid in pids:
                for name in ("cmdline", "environ"):
                    with open(f"/proc/{pid}/{name}", "rb") as said:
                        if token in said.read():
                            raise Failure(f"{program} has the operator's token")
                if not os.path.exists(f"/proc/{pid}/root{SERVICE_ACCOUNT_TOKEN}"):
                    raise Failure(f"{program} has no token of a ServiceAccount")

    def __exit__(self, kind, *rest):
        try:
            if kind is None and self.installed:
                self.verify_identity()
                self.verify_logs()
            elif kind is not None:
                self.tell()
        finally:
            self.logs_kept.set()
            self.plugin = self.extender = None
            super().__exit__(kind, *rest)

    def tell(self):
        """For whoever reads why the case failed."""
        with contextlib.suppress(RuntimeError):
            print(self.kubectl("get", "nodes,pods,daemonsets,deployments,services,endpoints", "-A",
                               "-o", "wide"))
            print(self.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp")[-6000:])

    def remove_traces(self):
        super().remove_traces()
        self.cgroup.remove()
        shutil.rmtree(os.path.join(self.run_dir, "private"), ignore_errors=True)
