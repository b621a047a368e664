#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/metadata-only.yaml: with the extender's token pods are annotated and bound, and
their images are nobody's to change; without the policy they are."""

from harness.api import Api, ApiError, pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import EXTENDER_NAMESPACE, HOST
from harness.objects import NAMESPACE, node, pod
from harness.processes import wait_for

KUBE = ">=1.30"
POLICY = "policies/metadata-only.yaml"
NOTE = {"metadata": {"annotations": {"e2e": "1"}, "labels": {"e2e": "1"}}}
IMAGE = {"spec": {"containers": [{"name": "c0", "image": "somebody/elses"}]}}
REFUSED = "labels and annotations only"


def client_of(cluster, account):
    path = f"/api/v1/namespaces/{EXTENDER_NAMESPACE}/serviceaccounts/{account}/token"
    token = cluster.api.create(path, {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 7200}})["status"]["token"]
    return Api(HOST, cluster.control_plane.port, token, cluster.control_plane.ca_file)


def attempt(client, patch):
    """True when it is let in; nothing is kept."""
    try:
        client.call("PATCH", f"{pod_path(NAMESPACE, 'p')}?dryRun=All", patch,
                    "application/strategic-merge-patch+json")
    except ApiError as error:
        check(REFUSED in str(error), str(error))
        return False
    return True


def body():
    with Cluster(nodes=[node("n1", [16])]) as cluster:
        cluster.control_plane.apply("base/device-plugin/rbac.yaml")
        cluster.create_pods([pod("p", 4)])
        cluster.wait_bound("p")
        cluster.control_plane.apply("overlays/second-scheduler/rbac.yaml")
        clients = [client_of(cluster, name) for name in ("gpushare-extender",
                                                         "gpushare-device-plugin",
                                                         "gpushare-scheduler")]
        for client in clients:
            check(attempt(client, IMAGE), "RBAC alone refuses another image: no policy is needed")
        cluster.control_plane.apply(POLICY)
        wait_for("the policy stands", lambda: not attempt(clients[0], IMAGE))
        for client in clients:
            check(not attempt(client, IMAGE), "another image was let in")
            check(attempt(client, NOTE), "an annotation was refused")
        check(attempt(cluster.api, IMAGE), "an administrator was refused")
        # the second scheduler's token is kube-scheduler's as well, which writes statuses
        clients[2].call("PATCH", f"{pod_path(NAMESPACE, 'p', 'status')}?dryRun=All",
                        {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}},
                        "application/strategic-merge-patch+json")
        cluster.create_pods([pod("q", 4)])
        cluster.wait_bound("q")
        cluster.wait_inspect_agrees()


run(body)
