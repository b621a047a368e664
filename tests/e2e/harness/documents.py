# SPDX-License-Identifier: Apache-2.0
"""Commands from the documents, run as they stand there."""

import os
import re
import subprocess

from harness.containers import PATH
from harness.control_plane import ROOT, built_program
from harness.processes import Failure


def commands(document, heading, language="sh"):
    """The blocks of a language below a heading "## ..." of a document."""
    with open(os.path.join(ROOT, document), encoding="utf-8") as source:
        parts = re.split(r"^## ", source.read(), flags=re.M)
    found = [part for part in parts if part.startswith(f"{heading}\n")]
    if len(found) != 1:
        raise Failure(f"{document} has {len(found)} sections '{heading}'")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", found[0], flags=re.M | re.S)
    if not blocks:
        raise Failure(f"{document}, '{heading}': no commands")
    return blocks


class Operator:
    """Whoever types the commands: the cluster's administrator, on a node, in the project's folder,
    with a /usr/local of their own."""

    def __init__(self, cluster):
        self.mounts = []
        for folder in ("bin", "share"):
            own = os.path.join(cluster.run_dir, f"usr-local-{folder}")
            os.makedirs(own)
            self.mounts.append(f"mount --bind {own} /usr/local/{folder}\n")
        kubectl = os.path.dirname(cluster.control_plane.kubectl_program)
        self.environment = {
            **os.environ, "PATH": f"/usr/local/bin:{kubectl}:{PATH}",
            "KUBECONFIG": cluster.control_plane.kubeconfig("admin"),
            "CONTAINERD_ADDRESS": cluster.containerd.socket, "CONTAINERD_SNAPSHOTTER": "native"}

    def run(self, block, changes=()):
        """What the block printed. changes: what the document asks its reader to change."""
        for old, new in changes:
            if old not in block:
                raise Failure(f"'{old}' is not in: {block}")
            block = block.replace(old, new)
        block = re.sub(r"(?<![\w./])build/(?=[\w-]+ )", f"{os.path.dirname(built_program(''))}/", block)
        script = f"set -e\n{''.join(self.mounts)}set -eux\n{block}"
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script], cwd=ROOT,
                              env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{done.stdout}{done.stderr}")
        return done.stdout
