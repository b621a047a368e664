#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the chart makes of every value, in every layout, is accepted by the API server, which knows each
of its fields (dry run). tests/charts/run.py compares it with the overlays."""

import os
import re
import subprocess

from harness import release
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import EXTENDER_NAMESPACE, ROOT, chart_program, may_have_helm

KUBE = ">=1.20"

LAYOUTS = ("kubeadm", "secondScheduler", "haMtls", "originalNodePort")
CHART = os.path.join(ROOT, "manifests/chart")


def rendered(helm, layout, *more):
    """[(apiVersion, kind, text)] of a layout."""
    text = subprocess.run([helm, "template", "gpushare", CHART, "--namespace", EXTENDER_NAMESPACE,
                           "--kube-version", f"1.{release.MINOR}.0", "--set", f"layout={layout}", *more],
                          capture_output=True, text=True, check=True).stdout
    documents = [one for one in re.split(r"^---$", text, flags=re.M) if re.search(r"^kind:", one, re.M)]
    return [(*re.findall(r"^(?:apiVersion|kind): (.+)$", one, re.M)[:2], one) for one in documents]


def served(cluster):
    """{(version, kind)}: no Prometheus operator, and no policies before 1.30."""
    found = set()
    listed = cluster.api.get("/apis")["groups"]
    for version in ["v1"] + [one["groupVersion"] for group in listed for one in group["versions"]]:
        path = "/api/v1" if version == "v1" else f"/apis/{version}"
        found |= {(version, one["kind"]) for one in cluster.api.get(path)["resources"]}
    return found


def accept(cluster, known, layout, items):
    """Unknown fields are errors, of kubectl's or the API server's."""
    taken = [text for version, kind, text in items if (version, kind) in known]
    path = cluster.control_plane.path(f"chart-{layout}.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write("---".join(taken))
    said = cluster.control_plane.kubectl("apply", "--dry-run=server", "--validate=true", "-f", path)
    check(len(said.splitlines()) == len(taken) > 10, f"{layout}: {said}")
    left = sorted({kind for version, kind, _ in items if (version, kind) not in known})
    print(f"{layout}: {len(taken)} objects accepted; not served here: {', '.join(left) or 'none'}")


def body():
    if not may_have_helm():
        return
    helm = chart_program("helm")
    with Cluster(scheduler=None, extender=False) as cluster:
        cluster.control_plane.apply("base/namespace/namespace.yaml")
        # a dry run of the pod of "helm test" wants its account
        cluster.control_plane.kubectl("-n", EXTENDER_NAMESPACE, "create", "serviceaccount",
                                      "gpushare-test")
        # the page's namespace comes with the same dry run
        cluster.control_plane.kubectl("create", "namespace", "gpu-page")
        known = served(cluster)
        for layout in LAYOUTS:
            every = os.path.join(ROOT, "tests/charts/every-value.yaml")
            accept(cluster, known, layout, rendered(helm, layout))
            for one in ("hook.library=", "mps.enabled=false,mps.byLabel=false"):  # not both
                accept(cluster, known, layout, rendered(helm, layout, "--values", every, "--set", one))


run(body)
