#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/device-plugin-own-node.yaml: the plugin works, with a token bound to its pod;
with that token nobody writes another node or pods that run elsewhere."""

from harness.api import Api, ApiError, node_path, pod_path
from harness.case import check, run
from harness.control_plane import EXTENDER_NAMESPACE, HOST
from harness.node import NODE, NodeCluster, real_pod
from harness.objects import NAMESPACE, node, pod
from harness.processes import wait_for

KUBE = ">=1.32"
ACCOUNT = "gpushare-device-plugin"
POLICY = "policies/device-plugin-own-node.yaml"
NOTE = {"metadata": {"annotations": {"e2e": "1"}}}
UNKNOWN = "does not name the node"
OTHER_NODE = "own node only"
OTHER_POD = "pods of its own node only"


class BoundCluster(NodeCluster):
    """The plugin's token is bound to a pod of its account on the node, as the kubelet makes it."""

    token = None

    def request_token(self, **bound):
        path = f"/api/v1/namespaces/{EXTENDER_NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
        return self.api.create(path, {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200, **bound}})["status"]["token"]

    def plugin_kubeconfig(self):
        [carrier] = self.create_pods([real_pod("carrier", namespace=EXTENDER_NAMESPACE,
                                               node_name=NODE, serviceAccountName=ACCOUNT)])
        self.token = self.request_token(boundObjectRef={
            "apiVersion": "v1", "kind": "Pod", "name": "carrier",
            "uid": carrier["metadata"]["uid"]})
        self.control_plane.apply(POLICY)
        wait_for("the policy stands", lambda: self.attempt(
            self.request_token(), node_path(NODE)) == UNKNOWN)
        return self.control_plane.kubeconfig(ACCOUNT, self.token)

    def attempt(self, token, path):
        """"" when a patch with this token is let in (nothing is kept), else which rule said no."""
        client = Api(HOST, self.control_plane.port, token, self.control_plane.ca_file)
        try:
            client.patch(f"{path}?dryRun=All", NOTE)
        except ApiError as error:
            return next((words for words in (UNKNOWN, OTHER_POD, OTHER_NODE) if words in str(error)),
                        str(error))
        return ""


def writes(cluster):
    """(row, token, path, the rule that refuses it)."""
    own, free = cluster.token, cluster.request_token()
    rows = (
        ("its own node", own, node_path(NODE), ""),
        ("another node's status", own, node_path("other", "status"), OTHER_NODE),
        ("a pod of its node", own, pod_path(NAMESPACE, "here"), ""),
        ("a pod of no node", own, pod_path(NAMESPACE, "nowhere"), OTHER_POD),
        ("a token without a node, its node", free, node_path(NODE), UNKNOWN),
        ("a token without a node, a pod", free, pod_path(NAMESPACE, "here"), UNKNOWN),
        ("an administrator, another node", cluster.api.token, node_path("other"), ""),
    )
    for row, token, path, expected in rows:
        said = cluster.attempt(token, path)
        check(said == expected, f"{row}: {said or 'let in'}, expected {expected or 'let in'}")


def body():
    with BoundCluster(gpus="2x16GiB") as cluster:
        cluster.create_pods([real_pod("here", 8)])
        cluster.wait_true_record("here")
        cluster.add_nodes([node("other", [16])])
        cluster.create_pods([pod("there", 8, node_name="other"),
                             pod("nowhere", 8, schedulerName="nobody")])
        writes(cluster)
        cluster.wait_inspect_agrees()


run(body)
