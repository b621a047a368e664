#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A release, from a tag of a clone to a registry, a web server and an index of krew on loopback, and installed from
there: the chart and its images by the README's command, the CLI by krew. Nothing is built by hand. Four minutes on a
busy machine."""

import os
import re
import shutil
import subprocess

from chart import Helm, install
from harness.case import check, run
from harness.control_plane import ROOT, built_by, may_have_helm
from harness.deployed import DeployedCluster
from harness.install import PLUGIN, SYSTEM
from harness.node import NODE
from harness.processes import free_port, wait_for

NEEDS = "release_build.sh"
REGISTRY = """version: 0.1
storage: {{filesystem: {{rootdirectory: {0}/registry}}}}
http: {{addr: {1}}}
"""
GIT = ("git", "-c", "user.name=rehearsal", "-c", "user.email=rehearsal@gpushare.invalid")


class Release:
    """What scripts/release.sh makes of a tag, and where it is published."""

    def __init__(self, cluster):
        self.cluster, self.folder = cluster, os.path.join(cluster.run_dir, "release")
        self.registry, port = f"127.0.0.1:{free_port()}", free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.source, self.made, self.index = (os.path.join(self.folder, name) for name in ("source", "made", "index"))
        os.makedirs(f"{self.index}/plugins")
        config = os.path.join(self.folder, "registry.yml")
        with open(config, "w", encoding="ascii") as out:
            out.write(REGISTRY.format(self.folder, self.registry))
        cluster.processes.start("registry", ["docker-registry", "serve", config])
        cluster.processes.start("files", ["python3", "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", self.folder])

    def must(self, *command, **more):
        environment = {**os.environ, "HOME": self.folder, **more}
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def make(self):
        """Of a commit whose CHANGELOG has a date, and which is tagged."""
        self.must("git", "clone", "-q", ROOT, self.source)
        with open(f"{self.source}/CHANGELOG.md", encoding="utf-8") as notes:
            text = re.sub(r"^## (\S+) \(not released yet\)$", r"## \1 (2026-01-31)", notes.read(), count=1, flags=re.M)
        with open(f"{self.source}/CHANGELOG.md", "w", encoding="utf-8") as notes:
            notes.write(text)
        version = re.search(r"^## (\S+) \(", text, re.M)[1]
        self.must(*GIT, "-C", self.source, "commit", "-q", "--allow-empty", "-am", version)
        self.must(*GIT, "-C", self.source, "tag", "-am", version, f"v{version}")
        build = os.environ.get("GPUSHARE_BUILD_DIR") or os.path.join(ROOT, "build")
        # a draft: whether Debian has newer libraries than this machine is no matter here
        said = self.must(f"{self.source}/scripts/release.sh", "--draft", "--registry", self.registry, "--url", self.url,
                         "--out", self.made, GPUSHARE_BUILD_DIR=build)
        for obstacle in ("CHANGELOG.md", "is not what is committed", "Chart.yaml", "is another commit"):
            check(f"{obstacle}" not in re.sub(r"(?s)nothing is published yet.*", "", said), f"release.sh: {said}")
        return version

    def publish(self, version, helm):
        """As PUBLISH.txt says, but for who signs and GitHub: the files lie in a folder of a web server."""
        with open(f"{self.made}/PUBLISH.txt", encoding="utf-8") as commands:
            check("\n./publish.sh " in commands.read(), "PUBLISH.txt begins otherwise")
        self.must(f"{self.made}/publish.sh", "--plain-http",
                  **{**helm.homes, "PATH": f"{os.path.dirname(helm.program)}:{os.environ['PATH']}"})
        shutil.copytree(self.made, f"{self.folder}/v{version}")
        shutil.copy(f"{self.made}/inspect-gpushare.yaml", f"{self.index}/plugins")
        self.must("git", "init", "-q", self.index)
        self.must(*GIT, "-C", self.index, "add", "plugins")
        self.must(*GIT, "-C", self.index, "commit", "-qm", version)

    def install_cli(self):
        """krew's plugin of that name is "kubectl inspect-gpushare"."""
        krew, root = built_by(NEEDS) + "/krew", f"{self.folder}/krew"
        settings = {"KREW_ROOT": root, "KREW_DEFAULT_INDEX_URI": f"file://{self.index}",
                    "KUBECONFIG": self.cluster.control_plane.kubeconfig("admin"),
                    "PATH": f"{root}/bin:{os.path.dirname(self.cluster.control_plane.kubectl_program)}:{os.environ['PATH']}"}
        self.must(krew, "update", **settings)
        self.must(krew, "install", "inspect-gpushare", **settings)
        return self.must("kubectl", "inspect-gpushare", "map", **settings)


def body():
    if not may_have_helm():
        return
    with DeployedCluster(preload=False) as cluster:
        helm, release = Helm(cluster), Release(cluster)
        version = release.make()
        wait_for("the registry answers", lambda: not subprocess.run(
            ["curl", "-sf", f"http://{release.registry}/v2/"], check=False, capture_output=True).returncode)
        release.publish(version, helm)
        install(cluster, helm, ("manifests/chart", f"oci://{release.registry}/charts/gpushare --plain-http"))
        images = cluster.kubectl("-n", SYSTEM, "get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].image}")
        print(f"note: {version} from {images}")
        check(f"{release.registry}/gpushare-extender:{version}" in images, f"other images: {images}")
        check(f"{release.registry}/gpushare-device-plugin:{version}" in images, f"other images: {images}")
        shown = release.install_cli()
        check(f"{NODE}: 8 of 32 GiB" in shown, f"the CLI of krew: {shown}")
        helm.must("uninstall", "--wait")
        cluster.installed = False
        left = cluster.kubectl("-n", SYSTEM, "get", "pods", "-o", "name")
        check(PLUGIN not in left, f"left: {left}")


run(body)
