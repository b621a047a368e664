# SPDX-License-Identifier: Apache-2.0
"""etcd and kube-apiserver on loopback, users with the rights their manifests give them."""

import os
import re
import secrets
import subprocess

from harness import release, shared
from harness.api import Api
from harness.processes import free_port, wait_for

HOST = "127.0.0.1"
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
EXTENDER_NAMESPACE = "gpushare-system"

KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: e2e
  cluster:
    server: {server}
    certificate-authority: {ca_file}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: e2e
  context:
    cluster: e2e
    user: {user}
current-context: e2e
"""


def token_in(kubeconfig):
    with open(kubeconfig, encoding="ascii") as source:
        return re.search(r"token: (\S+)", source.read()).group(1)


def built_program(name):
    """A program of this project; GPUSHARE_BUILD_DIR names another build than the release one."""
    return os.path.join(os.environ.get("GPUSHARE_BUILD_DIR", os.path.join(ROOT, "build")), name)


def built_by(script):
    """The folder that a script of tests/e2e makes when it is missing: a controller of others."""
    return subprocess.run([os.path.join(ROOT, "tests/e2e", script)], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


HELM_FETCH = os.path.join(ROOT, "tests/charts/helm_fetch.sh")


def may_have_helm():
    possible = subprocess.run([HELM_FETCH, "--possible"], check=False).returncode == 0
    if not possible:
        print("note: not run, this machine cannot have helm")
    return possible


def chart_program(name):
    """helm or kustomize, which are made when they are missing."""
    return os.path.join(built_by(HELM_FETCH), name)


def kube_program(name):
    """A program of the Kubernetes under test; scripts/e2e.sh sets the folder."""
    return os.path.join(os.environ["KUBE_BIN_DIR"], name)


class ControlPlane:
    """The lane's (GPUSHARE_CONTROL_PLANE) or, where the case wants it otherwise, one of its own."""

    host = HOST
    # TaintNodesByCondition would put a not-ready taint on every simulated node, which only the
    # controller manager removes. ServiceAccount would refuse pods until that one made accounts.
    admission_flags = ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",)

    def __init__(self, processes, run_dir):
        self.processes = processes
        self.run_dir = run_dir
        self.flags = ()  # of the API server, what a case wants otherwise
        self.ca_file = self.path("apiserver/apiserver.crt")
        self.port, self.etcd_port = free_port(), None
        self.tokens = {user: secrets.token_hex(16) for user in ("admin", "system:kube-scheduler")}
        self.admin = None
        self.kubectl_program = kube_program("kubectl")
        os.environ["KUBECTL"] = self.kubectl_program  # for kubectl-inspect-gpushare

    def path(self, name):
        return os.path.join(self.run_dir, name)

    def start(self):
        lanes = os.environ.get("GPUSHARE_CONTROL_PLANE")
        plain = type(self) is ControlPlane and not self.flags  # pylint: disable=unidiomatic-typecheck
        if lanes and plain and shared.adopt(self, lanes):
            return
        shared.part(self)
        etcd_url = self.start_etcd()
        self.write_identities()
        apiserver = self.start_apiserver(etcd_url)
        self.wait_until_ready(apiserver)

    def start_etcd(self):
        self.etcd_port = free_port()
        client, peer = f"http://{HOST}:{self.etcd_port}", f"http://{HOST}:{free_port()}"
        self.processes.start("etcd", [
            os.environ["ETCD"], "--data-dir", self.path("etcd"), "--unsafe-no-fsync",
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}", "--logger", "zap", "--log-level", "warn",
            "--quota-backend-bytes", str(4 << 30)])
        return client

    def write_identities(self):
        groups = {"admin": "system:masters", "system:kube-scheduler": "system:authenticated"}
        with open(self.path("tokens.csv"), "w", encoding="ascii") as out:
            for user, token in self.tokens.items():
                out.write(f'{token},{user},{user},"{groups[user]}"\n')
        if not os.path.exists(self.path("sa.key")):
            subprocess.run(["openssl", "genrsa", "-out", self.path("sa.key"), "2048"],
                           check=True, capture_output=True)

    def start_apiserver(self, etcd_url):
        return self.processes.start("kube-apiserver", [
            kube_program("kube-apiserver"), f"--etcd-servers={etcd_url}",
            f"--bind-address={self.host}", f"--advertise-address={self.host}",
            f"--secure-port={self.port}",
            f"--cert-dir={self.path('apiserver')}", f"--token-auth-file={self.path('tokens.csv')}",
            "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            *self.admission_flags, *release.apiserver_flags(self.host), *self.flags,
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.path('sa.key')}",
            f"--service-account-signing-key-file={self.path('sa.key')}",
            "--service-cluster-ip-range=10.96.0.0/16", "--profiling=false"])

    def start_controllers(self, controllers, *flags, own_accounts=False):
        """kube-controller-manager with these ("deployment,replicaset") and flags, as an administrator
        or, as kubeadm has it, each with an account of its own in kube-system."""
        accounts = ["--use-service-account-credentials=true",
                    f"--service-account-private-key-file={self.path('sa.key')}"]
        self.processes.start("kube-controller-manager", [
            kube_program("kube-controller-manager"), f"--controllers={controllers}",
            f"--kubeconfig={self.kubeconfig('admin')}", "--leader-elect=false", *flags,
            f"--bind-address={HOST}", f"--secure-port={free_port()}",
            *(accounts if own_accounts else []),
            *release.controller_manager_flags(), f"--cert-dir={self.path('controller-manager')}"])

    def wait_until_ready(self, apiserver):
        def ready():
            apiserver.must_run()
            if self.admin is None and os.path.exists(self.ca_file):
                self.connect()
            return (self.admin is not None and self.admin.send("GET", "/readyz")[0] == 200 and
                    self.admin.find("/api/v1/namespaces/default"))
        wait_for("kube-apiserver is ready", ready, 120)

    def connect(self):
        self.admin = Api(self.host, self.port, self.tokens["admin"], self.ca_file)

    def kubeconfig(self, user, token=None):
        """Write a kubeconfig file for a user and return its path."""
        path = self.path(f"{user.replace(':', '-')}.kubeconfig")
        with open(path, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as out:
            out.write(KUBECONFIG.format(server=f"https://{self.host}:{self.port}", user=user,
                                        ca_file=self.ca_file, token=token or self.tokens[user]))
        return path

    def service_account_kubeconfig(self, namespace, name):
        """A kubeconfig with a real token of this ServiceAccount, and thus no right but its own."""
        answer = self.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200}})
        return self.kubeconfig(name, answer["status"]["token"])

    def kubectl(self, *args):
        rendered = None
        if release.KUBECTL_NEEDS_KUSTOMIZE and "-k" in args:
            at = args.index("-k")
            rendered = subprocess.run([chart_program("kustomize"), "build", args[at + 1]], check=True,
                                      capture_output=True, text=True).stdout
            args = (*args[:at], "-f", "-", *args[at + 2:])
        done = subprocess.run([self.kubectl_program, f"--kubeconfig={self.kubeconfig('admin')}",
                               *args], input=rendered, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    @staticmethod
    def manifest(name):
        return os.path.join(ROOT, "manifests", name)

    def apply(self, *manifests):
        """Apply files of the project's manifests folder as they are."""
        for manifest in manifests:
            self.kubectl("apply", "-f", self.manifest(manifest))
