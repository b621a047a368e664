# SPDX-License-Identifier: Apache-2.0
"""What manifests/policies let in and refuse: rows of attempts with the tokens of accounts."""

import json
import os

from harness.api import MERGE_PATCH, Api, ApiError
from harness.case import check
from harness.control_plane import EXTENDER_NAMESPACE, ROOT
from harness.objects import NAMESPACE

STRATEGIC = "application/strategic-merge-patch+json"


class Impersonator(Api):
    """An administrator in the name of another user; a ServiceAccount's groups are its own."""

    def __init__(self, plane, user, group=None):
        super().__init__(plane.host, plane.port, plane.tokens["admin"], plane.ca_file)
        self.names = {"Impersonate-User": user, **({"Impersonate-Group": group} if group else {})}

    def headers(self, content_type="application/json"):
        return {**super().headers(content_type), **self.names}


def client_of(cluster, account, pod=None, namespace=EXTENDER_NAMESPACE):
    """With a token of this account; of this pod, as the kubelet asks for it."""
    spec = {"expirationSeconds": 7200}
    if pod:
        meta = pod["metadata"]
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"],
                                  "uid": meta["uid"]}
    made = cluster.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    plane = cluster.control_plane
    return Api(plane.host, plane.port, made["status"]["token"], plane.ca_file)


def user_of(cluster, name, namespace=NAMESPACE):
    """Somebody who may edit in one namespace: a ServiceAccount there. The role "edit" itself is put
    together by the controller manager, of this one."""
    where = f"/api/v1/namespaces/{namespace}"
    cluster.api.create(f"{where}/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    cluster.api.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "system:aggregate-to-edit"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]})
    return client_of(cluster, name, namespace=namespace)


def with_parameters(folder, values):
    """A kustomization as manifests/policies/parameters says."""
    os.makedirs(folder)
    where = os.path.relpath(os.path.join(ROOT, "manifests/policies"), folder)
    with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="ascii") as out:
        json.dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                   "resources": [where, f"{where}/scheduler-name"], "components": [f"{where}/parameters"],
                   "configMapGenerator": [{"name": "gpushare-policies", "options": {"annotations": {
                       "config.kubernetes.io/local-config": "true"}},
                       "literals": [f'{name}="{value}"' for name, value in values.items()]}]}, out)
    return folder


def event(component, **more):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Normal",
            "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "p"}, "reason": "x",
            "message": "x", "source": {"component": component}, **more}


def refusal(client, method, path, body, content_type=None):
    """"" when it is let in, else the API server's words. Nothing is kept."""
    content_type = content_type or (MERGE_PATCH if method == "PATCH" else "application/json")
    try:
        client.call(method, f"{path}{'&' if '?' in path else '?'}dryRun=All", body, content_type)
    except ApiError as error:
        return str(error)
    return ""


def wrong_rows(rows):
    """Of (row, words of the refusal or "", client, method, path, body[, content type])."""
    for row, words, *attempt in rows:
        said = refusal(*attempt)
        if bool(said) != bool(words) or words not in said:
            yield f"{row}: {said or 'let in'}, expected {words or 'let in'}"


def check_rows(rows):
    wrong = list(wrong_rows(rows))
    check(not wrong, f"{len(wrong)} of {len(rows)}: {'; '.join(wrong[:3])}")
