#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/node-name.yaml: nobody but the system puts a pod with GPU memory on a node past
kube-scheduler."""

from harness.api import pod_path
from harness.case import run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, node, pod
from harness.policies import check_rows, refusal, user_of
from harness.processes import wait_for

KUBE = ">=1.30"
POLICY = "policies/node-name.yaml"
REFUSED = "must not name its node"
PODS = pod_path(NAMESPACE)

# (row, words of the refusal or "", pod)
ROWS = (
    ("a pod that names its node", REFUSED, pod("a", 4, node_name="n1")),
    ("an init container asks", REFUSED, pod("b", 0, init=[4], node_name="n1")),
    ("a second container asks", REFUSED, pod("c", containers=[0, 4], node_name="n1")),
    ("nobody asks", "", pod("d", node_name="n1")),
    ("no node", "", pod("e", 4)),
    ("a node that has to be chosen", "", pod("f", 4, nodeSelector={
        "kubernetes.io/hostname": "n1"})),
)


def body():
    with Cluster(nodes=[node("n1", [16])], scheduler=None, extender=False) as cluster:
        author = user_of(cluster, "author")
        system = user_of(cluster, "daemon-set-controller", namespace="kube-system")
        rows = [(row, words, author, "POST", PODS, made) for row, words, made in ROWS]
        check_rows([(row, "", *attempt) for row, _, *attempt in rows])  # RBAC alone lets all in
        cluster.control_plane.apply(POLICY)
        wait_for("the policy stands", lambda: REFUSED in refusal(*rows[0][2:]))
        check_rows(rows)
        check_rows([
            ("an administrator", "", cluster.api, "POST", PODS, ROWS[0][2]),
            ("an account of kube-system", "", system, "POST", pod_path("kube-system"),
             pod("a", 4, node_name="n1", namespace="kube-system"))])


run(body)
