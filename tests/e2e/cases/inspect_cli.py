#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl inspect gpushare shows what kubectl get -o json says, as tables and as JSON."""

import json
import os
import subprocess
import urllib.request

from harness import ledger
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import built_program, kube_program
from harness.objects import bound_node, key, node, pod
from harness.processes import wait_for

KUBE = ">=1.20"
PROGRAM = "kubectl-inspect-gpushare"
PODS = [
    pod("one", 5),
    pod("two-containers", containers=[3, 0, 4]),
    pod("init-is-larger", 2, init=[7]),
    pod("two-gpus", 12, gpu_count=2),
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


class Expected:
    """Computed from `kubectl get -o json` and the documented rules alone."""

    def __init__(self, cluster):
        get = cluster.control_plane.kubectl
        api_nodes = json.loads(get("get", "nodes", "-o", "json"))["items"]
        self.pods = [p for p in json.loads(get("get", "pods", "-A", "-o", "json"))["items"]
                     if ledger.holds(p) and ledger.pod_peak(p) > 0]
        self.nodes = {n["metadata"]["name"]: ledger.node_from(n) for n in api_nodes}
        self.nodes = {name: found for name, found in self.nodes.items() if found.gpus}
        self.pending = {name: {} for name in self.nodes}
        for found in self.pods:
            self.place(found)

    def place(self, found):
        node = self.nodes[bound_node(found)]
        placed = ledger.where(node, found)
        if key(found) in node.unknown:
            self.pending[node.name][key(found)] = ledger.pod_peak(found)
            return
        for idx, units in placed:
            node.gpus[idx].used += units
            node.gpus[idx].pods[key(found)] = units

    def used(self, name):
        return sum(g.used for g in self.nodes[name].gpus.values()) + sum(self.pending[name].values())

    def total(self, name):
        return sum(g.size for g in self.nodes[name].gpus.values())

    def cluster_line(self):
        used = sum(self.used(name) for name in self.nodes)
        total = sum(self.total(name) for name in self.nodes)
        return f"{used}/{total} ({used * 100 // total}%)"

    def summary_rows(self):
        columns = max(len(n.gpus) for n in self.nodes.values())
        rows = {}
        for name, found in self.nodes.items():
            cells = [f"{g.used}/{g.size}" for g in found.gpus.values()]
            cells += ["0/0"] * (columns - len(cells))
            if any(self.pending.values()):
                cells.append(str(sum(self.pending[name].values())))
            rows[name] = cells + [f"{self.used(name)}/{self.total(name)}"]
        return rows


def check_json(expected, text):
    shown = {n["name"]: n for n in json.loads(text)["nodes"]}
    check(shown.keys() == expected.nodes.keys(), f"nodes {sorted(shown)}")
    for name, found in expected.nodes.items():
        devs = {d["id"]: (d["totalGPU"], d["usedGPU"],
                          {f"{p['namespace']}/{p['name']}": p["usedGPU"] for p in d["pods"]})
                for d in shown[name]["devs"]}
        wanted = {g.idx: (g.size, g.used, g.pods) for g in found.gpus.values()}
        check(devs == wanted, f"{name}: shows {devs}, the API says {wanted}")
        pending = {f"{p['namespace']}/{p['name']}": p["usedGPU"] * p["gpuCount"]
                   for p in shown[name]["pending"]}
        check(pending == expected.pending[name], f"{name}: pending {pending}")
        check((shown[name]["totalGPU"], shown[name]["usedGPU"]) ==
              (expected.total(name), expected.used(name)), f"{name}: sums {shown[name]}")


def check_summary(expected, text):
    lines = text.splitlines()
    check(lines[0].split()[:3] == ["NAME", "IPADDRESS", "GPU0(Allocated/Total)"], lines[0])
    check(lines[0].endswith("GPU Memory(GiB)"), lines[0])
    rows = {line.split()[0]: line.split()[2:] for line in lines[1:1 + len(expected.nodes)]}
    check(rows == expected.summary_rows(), f"{rows} instead of {expected.summary_rows()}")
    check(lines[-1].strip() == expected.cluster_line(), f"{lines[-1]}, {expected.cluster_line()}")


def check_details(expected, text):
    for found in expected.pods:
        line = next((l for l in text.splitlines()
                     if l.split()[:2] == [found["metadata"]["name"], "default"]), "")
        cells = [int(cell) for cell in line.split()[2:]]
        check(sum(cells) == ledger.pod_peak(found), f"{key(found)}: {line!r}")
    check(text.rstrip().endswith(expected.cluster_line()), text[-200:])


def check_errors(cluster):
    """One line that says what to do, exit code 1."""
    cluster.api.create("/api/v1/namespaces/default/serviceaccounts",
                       {"metadata": {"name": "nobody"}})
    rows = (
        (cluster.control_plane.kubeconfig("stranger", "wrong-token"), "log in again"),
        (cluster.control_plane.service_account_kubeconfig("default", "nobody"), "administrator"),
        (cluster.control_plane.path("no-such-file"), "no-such-file"),
    )
    for kubeconfig, words in rows:
        code, out, err = inspect(kubeconfig)
        check(code == 1 and not out and len(err.splitlines()) == 1 and words in err,
              f"{words}: exit {code}, {out!r}, {err!r}")


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


def page_of(kubeconfig):
    """The page of `web`, with this user's rights."""
    with subprocess.Popen([built_program(PROGRAM), "web", "--kubeconfig", kubeconfig],
                          stdout=subprocess.PIPE, text=True) as web:
        try:
            with urllib.request.urlopen(web.stdout.readline().strip(), timeout=30) as answer:
                return answer.read().decode()
        finally:
            web.terminate()


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
        page = page_of(kubeconfig)
        check("too-large" in page and "two-gpus" in page and ("not-mine" in page) == others,
              f"the page: {page}")
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
        # one that went past the scheduler, and one that nothing can take
        cluster.create_pods([pod("by-hand", 3, node_name="n2"), pod("too-large", 25)])
        cluster.wait_refused("too-large")
        expected = wait_for("every pod is listed", lambda: Expected(cluster), 10)

        code, out, err = inspect(admin, "-o", "json")
        check(code == 0, err)
        check_json(expected, out)
        check_summary(expected, as_plugin(admin))
        check_details(expected, as_plugin(admin, "-d"))
        check(inspect(admin, "n1")[1].count("n1") == 1, "one node is one row")
        code, out, err = inspect(admin, "nobody")
        check(code == 1 and "nobody" in err, f"unknown node: {code} {err}")

        out = as_plugin(admin, "why", "too-large")
        check("no GPU is as large as the request" in out and "nearest" not in out, out)
        check("kube-scheduler said:" in out, out)
        check("n2" in as_plugin(admin, "why", "by-hand"), "why of a bound pod names its node")
        out = as_plugin(admin, "what-if", "--gpu-mem", "16", "--replicas", "100", "--ignore-waiting")
        check(" of 100 pods with 16 GiB" in out, out)
        code, out, err = inspect(admin, "doctor", "--extender", cluster.extender.url)
        check(code == 1 and "FAIL  pods: default/by-hand" in out, out + err)
        check("ok    rights" not in out or "FAIL  rights" not in out, out)
        check_errors(cluster)
        check_few_rights(cluster)


run(body)
