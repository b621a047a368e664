#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl inspect gpushare shows what the API server has, to whom it lets see that: as kubectl finds it, and by rights."""

import os
import subprocess

from harness import ledger
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import built_program, kube_program
from harness.extender import shown_nodes
from harness.objects import node, pod

KUBE = ">=1.20"
PROGRAM = "kubectl-inspect-gpushare"
PODS = [
    pod("one", 5),
    pod("two-containers", containers=[3, 0, 4]),
    pod("init-is-larger", 2, init=[7]),
    pod("init-is-smaller", 6, init=[3, 1]),
    pod("two-gpus", 12, gpu_count=2),
    pod("three-gpus", containers=[6, 3], gpu_count=3),
    pod("no-gpu"),
]


def inspect(kubeconfig, *args):
    """(exit code, stdout, stderr) of the program itself."""
    done = subprocess.run([built_program(PROGRAM), "--kubeconfig", kubeconfig, *args],
                          capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def as_plugin(kubeconfig, *args):
    """The same as kubectl finds it."""
    path = os.path.dirname(built_program(PROGRAM)) + os.pathsep + os.environ["PATH"]
    done = subprocess.run([kube_program("kubectl"), "inspect", "gpushare", *args],
                          env={**os.environ, "PATH": path, "KUBECONFIG": kubeconfig},
                          capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def grant(cluster, account, kind, **rules):
    """A ServiceAccount of namespace default that may list these resources, there or everywhere."""
    api, group = cluster.api, "/apis/rbac.authorization.k8s.io/v1/"
    path = group + ("clusterroles" if kind == "ClusterRole" else "namespaces/default/roles")
    api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": account}})
    api.create(path, {"metadata": {"name": account}, "rules": [
        {"apiGroups": [""], "resources": [name], "verbs": verbs} for name, verbs in rules.items()]})
    api.create(path.replace("role", "rolebinding"), {
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}]})
    return cluster.control_plane.service_account_kubeconfig("default", account)


def check_few_rights(cluster):
    """Who may not list nodes, or pods of his namespace only, sees those pods and is told why no more."""
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "others"}})
    cluster.create_pods([pod("not-mine", 25, namespace="others")])
    reads = ["get", "list", "watch"]
    rows = (
        (grant(cluster, "in-namespace", "Role", pods=reads), False),
        (grant(cluster, "nodes-too", "ClusterRole", nodes=reads), None),
        (grant(cluster, "all-pods", "ClusterRole", pods=reads), True),
    )
    for kubeconfig, others in rows:
        for args in ((), ("map",), ("why",)):
            code, out, err = inspect(kubeconfig, *args)
            if others is None: # nodes alone: nothing to show
                check(code == 1 and not out and "administrator" in err, f"{args}: {code} {out} {err}")
                continue
            check(code == 0 and "too-large" in out and "this account may not list" in err,
                  f"{args}: {code} {out} {err}")
            check(("not-mine" in out) == others, f"{args}: pods of others: {out}")
            check(("two-gpus" in out) == (args != ("why",)), f"{args}: {out}")
        if others is None:
            continue
        code, out, err = inspect(kubeconfig, "-o", "json")
        check(code == 1 and not out, f"a document of another kind: {code} {out}")


def body():
    nodes = [node("n1", [16] * 4), node("n2", [24, 8, 16]), node("old", [16, 16], False),
             node("plain")]
    with Cluster(nodes=nodes) as cluster:
        admin = cluster.control_plane.kubeconfig("admin")
        cluster.create_pods(PODS)
        for made in PODS:
            cluster.wait_bound(made["metadata"]["name"])
        code, out, err = inspect(admin, "-o", "json")
        expected = ledger.as_inspect(ledger.build(cluster.api.nodes(), cluster.api.pods()))
        check(code == 0 and shown_nodes(out) == expected, f"{err}: shows {out}, the API says {expected}")
        # one that went past the scheduler, and one that nothing can take
        cluster.create_pods([pod("by-hand", 3, node_name="n2"), pod("too-large", 25)])
        cluster.wait_refused("too-large")
        check("too-large" in as_plugin(admin, "why"), "as kubectl finds it")
        code, out, err = inspect(admin, "doctor")
        check(code == 1 and "FAIL  pods: default/by-hand" in out, out + err)
        check("ok    permissions" not in out or "FAIL  permissions" not in out, out)
        check_few_rights(cluster)


run(body)
