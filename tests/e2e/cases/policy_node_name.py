#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/node-name.yaml: nobody but kubelets and cluster administrators puts a pod with GPU
memory on a node past kube-scheduler, controllers neither; who owns the controller is told why (20 s)."""

import os
import subprocess

from harness.api import pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, bound_node, node, pod
from harness.policies import Impersonator, check_rows, client_of, refusal, user_of, with_parameters
from harness.processes import wait_for

KUBE = ">=1.30"
POLICY = "policies/node-name.yaml"
REFUSED = "must not name its node"
PODS = pod_path(NAMESPACE)
CONTROLLERS = "replicaset,job,daemonset"
NAMED = pod("a", 4, node_name="n1")
PARAMETERS = {"namespace": "'gpushare-system'", "domain": "'aliyun.com'",
              "schedulerNames": "['gpushare-scheduler']"}

# (row, words of the refusal or "", pod)
ROWS = (
    ("an init container asks", REFUSED, pod("b", 0, init=[4], node_name="n1")),
    ("a second container asks", REFUSED, pod("c", containers=[0, 4], node_name="n1")),
    ("nobody asks", "", pod("d", node_name="n1")),
    ("a node that has to be chosen", "", pod("f", 4, nodeSelector={
        "kubernetes.io/hostname": "n1"})),
)


def who_names_nodes(cluster, operator):
    """(row, words of the refusal or "", client, method, path, pod): the same pod, by everybody."""
    def by(user, group=None):
        return Impersonator(cluster.control_plane, user, group)

    mirror = pod("static-n1", 4, node_name="n1", annotations={"kubernetes.io/config.mirror": "0"})
    system = pod("a", 4, node_name="n1", namespace="kube-system")
    return [(row, words, client, "POST", pod_path(made["metadata"]["namespace"]), made)
            for row, words, client, made in (
                ("an administrator", "", cluster.api, NAMED),
                ("an administrator of kubeadm's", "", by("root", "kubeadm:cluster-admins"), NAMED),
                ("a kubelet, for a static pod", "", by("system:node:n1", "system:nodes"), mirror),
                ("an account of kube-system", REFUSED,
                 user_of(cluster, "anything", namespace="kube-system"), system),
                ("an account that may do everything", REFUSED, operator, NAMED))]


def template(node_name=None, **spec):
    made = pod("x", 4, node_name=node_name, **spec)["spec"]
    return {"metadata": {"labels": {"app": "gpu"}}, "spec": made}


def owners(author):
    """(kind, its path, whether its template names the node), made by their author."""
    selector = {"matchLabels": {"app": "gpu"}}
    apps, batch = (f"/apis/{group}/v1/namespaces/{NAMESPACE}" for group in ("apps", "batch"))
    rows = (("ReplicaSet", f"{apps}/replicasets", "names-node",
             {"replicas": 2, "selector": selector, "template": template("n1")}),
            ("Job", f"{batch}/jobs", "names-node", {"template": template("n1", restartPolicy="Never")}),
            ("DaemonSet", f"{apps}/daemonsets", "names-node",
             {"selector": selector, "template": template("n1")}),
            ("DaemonSet", f"{apps}/daemonsets", "by-affinity",
             {"selector": selector, "template": template()}))
    for kind, path, name, spec in rows:
        author.create(path, {"apiVersion": path.split("/namespaces")[0].removeprefix("/apis/"),
                             "kind": kind, "metadata": {"name": name}, "spec": spec})
    return rows


def events_of(cluster, kind, name):
    """What the owner sees with "kubectl describe"."""
    return [event["message"] for event in cluster.api.items(
        f"/api/v1/namespaces/{NAMESPACE}/events",
        fieldSelector=f"involvedObject.kind={kind},involvedObject.name={name},reason=FailedCreate")]


def controllers(cluster, author):
    """As kubeadm runs them: each with an account of its own in kube-system."""
    cluster.control_plane.start_controllers(CONTROLLERS, own_accounts=True)
    for kind, _, name, _ in owners(author):
        if name == "names-node":
            wait_for(f"{kind}'s owner is told", lambda kind=kind, name=name: any(
                REFUSED in message for message in events_of(cluster, kind, name)), 60)
    made = wait_for("the DaemonSet has its pod", lambda: cluster.api.items(PODS), 60)
    check([owner["name"] for p in made for owner in p["metadata"]["ownerReferences"]] ==
          ["by-affinity"], f"pods {[p['metadata']['name'] for p in made]}")
    check(not bound_node(made[0]) and made[0]["spec"]["affinity"]["nodeAffinity"],
          "the DaemonSet's pod is not kube-scheduler's")


def account_of_all_rights(cluster):
    """What deploys for others, and puts up what they wrote: ClusterRole cluster-admin, in no group."""
    plane = cluster.control_plane
    plane.kubectl("-n", NAMESPACE, "create", "serviceaccount", "operator")
    plane.kubectl("create", "clusterrolebinding", "operator", "--clusterrole=cluster-admin",
                  "--group=kubeadm:cluster-admins", f"--serviceaccount={NAMESPACE}:operator")
    return client_of(cluster, "operator", namespace=NAMESPACE)


def debug_a_node(cluster):
    kubeconfig = cluster.control_plane.service_account_kubeconfig(NAMESPACE, "operator")
    done = subprocess.run(
        [cluster.control_plane.kubectl_program, f"--kubeconfig={kubeconfig}", "-n", NAMESPACE,
         "debug", "node/n1", "--image=none", "--attach=false"],
        capture_output=True, text=True, check=False)
    made = [p["metadata"]["name"] for p in cluster.api.items(PODS)]
    check(done.returncode == 0 and any(name.startswith("node-debugger-n1-") for name in made),
          f"kubectl debug node: {done.stderr} {made}")


def missing_parameters(cluster):
    """manifests/policies/parameters without one of its three: kubectl says which, and writes nothing."""
    for left_out in PARAMETERS:
        folder = with_parameters(os.path.join(cluster.run_dir, left_out), {
            name: value for name, value in PARAMETERS.items() if name != left_out})
        try:
            said = cluster.control_plane.kubectl("kustomize", folder)
        except RuntimeError as error:
            said = str(error)
        check(f"data.{left_out}" in said and "kind:" not in said,
              f"without {left_out}: {said[:300]}")


def body():
    with Cluster(nodes=[node("n1", [16])], scheduler=None, extender=False) as cluster:
        author = user_of(cluster, "author")
        operator = account_of_all_rights(cluster)
        rows = [(row, words, author, "POST", PODS, made) for row, words, made in ROWS]
        rows += who_names_nodes(cluster, operator)
        check_rows([(row, "", *attempt) for row, _, *attempt in rows])  # RBAC alone lets all in
        cluster.control_plane.apply(POLICY)
        wait_for("the policy stands", lambda: REFUSED in refusal(*rows[0][2:]))
        check_rows(rows)
        controllers(cluster, author)
        debug_a_node(cluster)
        missing_parameters(cluster)
        print(f"note: {len(rows)} attempts, {sum(bool(row[1]) for row in rows)} refused")


run(body)
