#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart as Helm installs (by the README's command), tests ("helm test") and uninstalls it; and the page for a team
(manifests/web), which who has its Role reaches and nobody else, and nothing beside it. 35 s; a minute on a busy
machine."""

import http.client
import os
import re
import subprocess
import urllib.request

from harness import seclusion
from harness.case import check, run
from harness.containers import write_image
from harness.control_plane import ROOT, chart_program, kube_program, may_have_helm
from harness.deployed import DeployedCluster
from harness.documents import Operator, commands
from harness.install import SYSTEM, DeployedPlugin, SecondScheduler
from harness.node import NODE, real_pod
from harness.processes import wait_for

WEB = os.path.join(ROOT, "manifests/web")
PAGE = "gpushare-web" # its namespace
KUBECTL_IMAGE = "registry.k8s.io/kubectl"
# (verb, resource, expected) of the page's account, in any namespace
RIGHTS = (("list", "nodes", True), ("get", "pods", True), ("watch", "pods", True), ("get", "secrets", False),
          ("list", "secrets", False), ("get", "pods/log", False), ("create", "pods/exec", False),
          ("patch", "pods", False), ("patch", "nodes", False), ("create", "pods/portforward", False))


class Helm:
    def __init__(self, cluster):
        self.program = chart_program("helm")
        self.homes = {f"HELM_{kind}_HOME": cluster.run_dir for kind in ("CACHE", "CONFIG", "DATA")}
        self.environment = {**os.environ, **self.homes, "KUBECONFIG": cluster.control_plane.kubeconfig("admin")}

    def run(self, verb, *args):
        """(exit code, what it said)"""
        done = subprocess.run([self.program, verb, "gpushare", *args, "--namespace", SYSTEM],
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=240)
        return done.returncode, done.stdout

    def must(self, *args):
        code, said = self.run(*args)
        check(code == 0, f"helm {' '.join(args)}: {said}")
        return said


def install(cluster, helm, *changes):
    """By the README's own command, told what images this cluster has; changes: of it, too."""
    layout = SecondScheduler(cluster)
    image = os.path.join(cluster.run_dir, "kubectl.tar")
    write_image(image, f"{KUBECTL_IMAGE}:test", kube_program("kubectl"), ())
    cluster.containerd.import_image(image)
    os.unlink(image)
    with open(os.path.join(ROOT, "manifests/overlays", layout.overlay, "kustomization.yaml"),
              encoding="utf-8") as text:
        scheduler = re.search(r"newTag: (\S+)", text.read())[1]
    cluster.scheduler.start(None)
    operator = Operator(cluster)
    operator.environment.update(helm.homes)
    by_helm = commands("README.md", "The first pod")[1]
    operator.run(by_helm, [
        layout.readme_changes()[0], ("helm install", f"{helm.program} install --wait --timeout=120s"),
        ("--set layout=secondScheduler", "--set layout=secondScheduler,kubectl.tag=test,"
         f"kubeScheduler.tag={scheduler},devicePlugin.extraArgs='{{--fake-gpus=2x16GiB}}'"), *changes])
    cluster.plugin = DeployedPlugin(cluster)
    cluster.start_plugin()
    said = helm.must("test")
    check(re.search(r"^Phase: +Succeeded$", said, re.M), f"helm test: {said}")
    cluster.create_pods([real_pod("on-the-page", 8, schedulerName="gpushare-scheduler")])
    cluster.wait_true_record("on-the-page")


def page(port, query=""):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/rows{query}", timeout=10) as answer:
            return answer.read().decode()
    except OSError: # not there yet, or the lists are being read
        return ""


def connects(address, port):
    try:
        http.client.HTTPConnection(address, port, timeout=5).connect()
        return True
    except OSError:
        return False


def viewer(cluster):
    """Somebody who may look (gpushare-web-viewer), and nothing else."""
    cluster.kubectl("-n", "default", "create", "serviceaccount", "viewer")
    cluster.kubectl("-n", PAGE, "create", "rolebinding", "viewers", "--role=gpushare-web-viewer",
                    "--serviceaccount=default:viewer")
    return cluster.control_plane.service_account_kubeconfig("default", "viewer")


def show_page(cluster):
    cluster.kubectl("apply", "-k", WEB)
    cluster.kubectl("-n", PAGE, "rollout", "status", "deployment/gpushare-web", "--timeout=60s")
    kubectl = [kube_program("kubectl"), f"--kubeconfig={viewer(cluster)}"]
    forward = cluster.processes.start("port-forward", [
        *kubectl, "-n", PAGE, "port-forward", "deployment/gpushare-web", "8080"])
    shown = wait_for("the page is there", lambda: page(8080), 30)
    check(NODE in shown and '"on-the-page"' in shown, f"the page: {shown}")
    of_pod = page(8080, "?pod=default/on-the-page")
    check(f"default/on-the-page is on node {NODE}" in of_pod, f"a pod's view: {of_pod}")
    forward.stop()
    refused = subprocess.run([*kubectl, "-n", SYSTEM, "port-forward", "deployment/gpushare-scheduler",
                              "29999"], capture_output=True, text=True, check=False, timeout=30)
    check(refused.returncode and "orbidden" in refused.stderr,
          f"who may see the page reaches the extender: {refused.stdout} {refused.stderr}")
    pod = cluster.api.pods(labelSelector="app.kubernetes.io/name=gpushare-web")[0]
    for address in (pod["status"]["podIP"], seclusion.ADDRESS):
        check(not connects(address, 8080), f"others reach the page on {address}")
    wrong = [f"{verb} {resource}" for verb, resource, expected in RIGHTS
             if allowed(cluster, verb, resource) != expected]
    check(not wrong, f"the page's account: {', '.join(wrong)}")
    cluster.kubectl("delete", "-k", WEB)


def allowed(cluster, verb, resource):
    name, _, sub = resource.partition("/")
    answer = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": f"system:serviceaccount:{PAGE}:gpushare-web",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {"verb": verb, "resource": name, "subresource": sub}}})
    return answer["status"]["allowed"]


def uninstall(cluster, helm):
    """Without a plugin the test fails; afterwards nothing is left but the namespace."""
    cluster.installed = False
    cluster.verify_logs()
    cluster.kubectl("-n", SYSTEM, "delete", "daemonset", "gpushare-device-plugin")
    code, said = helm.run("test")
    check(code == 1 and "Failed" in said, f"helm test without a device plugin: {code} {said}")
    helm.must("uninstall", "--wait")
    left = cluster.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name") + cluster.kubectl(
        "-n", SYSTEM, "get", "deployments,daemonsets,roles,services,serviceaccounts", "-o", "name")
    print(left)
    check("gpushare-" not in left.replace("gpushare-test", ""), f"left behind: {left}")


def body():
    if not may_have_helm():
        return
    with DeployedCluster() as cluster:
        helm = Helm(cluster)
        install(cluster, helm)
        show_page(cluster)
        uninstall(cluster, helm)


if __name__ == "__main__":
    run(body)
