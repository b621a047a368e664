#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All of manifests/policies at once: every deed that one of them is for, tried as a tenant, as a
controller, as a node, and with a stolen token of the extender and of the device plugin; by every way into
the API. The table in docs/security.md is this one's reading (25 s)."""

import collections
import re

from harness.api import MERGE_PATCH, node_path, pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import EXTENDER_NAMESPACE
from harness.objects import ALLOCATION, GPU_COUNT, IDX, INVENTORY, NAMESPACE, container, node, pod
from harness.policies import STRATEGIC, Impersonator, client_of, event, refusal, user_of
from harness.processes import wait_for

KUBE = ">=1.32"
ACTORS = ("tenant", "controller", "node", "extender", "plugin")
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PODS, POD, ELSEWHERE = (pod_path(NAMESPACE, name) for name in ("", "p", "elsewhere"))
WAITS, NODE, OTHER_NODE = pod_path(NAMESPACE, "waits"), node_path("n1"), node_path("n2")
LET_IN, RIGHTS = "", "rights"
PODS_KEYS, NODES_KEYS, BINDINGS, EVENTS = (
    f"own-keys-of-{what}" for what in ("pods", "nodes", "bindings", "events"))
EVENT_SOURCE = "event-source"
RECORDS, NODE_NAME, OWN_NODE = "records", "node-name", "device-plugin-own-node"
DOORS, VISIBLE, SCHEDULER = "side-doors", "visible-devices", "scheduler-name"
# What each file refuses by; the one that only warns is of visible-devices.yaml.
FILES = {"own-keys.yaml": (PODS_KEYS, NODES_KEYS, BINDINGS, EVENTS, EVENT_SOURCE), "records.yaml": (RECORDS,),
         "node-name.yaml": (NODE_NAME,), "device-plugin-own-node.yaml": (OWN_NODE,),
         "side-doors.yaml": (DOORS,), "visible-devices.yaml": (VISIBLE, "environment-from-elsewhere"),
         "scheduler-name/refuse.yaml": (SCHEDULER,)}
WARNS = {"environment-from-elsewhere"}

FIELDS_OF_OTHERS = {"manager": "capi", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                    "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}}}

# A deed, one way to do it, and what becomes of it by actor.
Row = collections.namedtuple("Row", "deed way method path body type outcomes")

# Who may do what before any policy is asked.
MAY_PATCH = {"pods": {"tenant", "controller", "extender", "plugin"}, "nodes": {"node", "plugin"}}
MAY_PATCH_STATUS = {"pods": {"node", "extender"}, "nodes": {"node", "plugin"}}
MAY_UPDATE = {"pods": {"tenant"}, "nodes": {"node"}}


def of(outcomes, actors):
    return {actor: outcomes.get(actor, LET_IN) if actor in actors else RIGHTS for actor in ACTORS}


def every_way(cluster, deed, path, field, key, value, **outcomes):
    """Of one annotation or label of a pod or node that is there."""
    what = "nodes" if "/nodes/" in path else "pods"
    whole = cluster.api.get(path)
    whole["metadata"].setdefault(field, {})[key] = value
    del whole["metadata"]["resourceVersion"]
    change = {"metadata": {field: {key: value}}}
    pointer = f"/metadata/{field}/{key.replace('/', '~1')}"
    applied = {"apiVersion": "v1", "kind": whole["kind"],
               "metadata": {"name": whole["metadata"]["name"], field: {key: value}}}
    patches, statuses, updates = (of(outcomes, may[what])
                                  for may in (MAY_PATCH, MAY_PATCH_STATUS, MAY_UPDATE))
    return [Row(deed, *row) for row in (
        ("merge patch", "PATCH", path, change, MERGE_PATCH, patches),
        ("strategic merge patch", "PATCH", path, change, STRATEGIC, patches),
        ("JSON patch", "PATCH", path, [{"op": "add", "path": pointer, "value": value}], JSON_PATCH,
         patches),
        ("server-side apply", "PATCH", f"{path}?fieldManager=gpushare-x&force=true", applied, APPLY, patches),
        ("update", "PUT", path, whole, None, updates),
        ("status", "PATCH", f"{path}/status", change, MERGE_PATCH, statuses))]


def one_way(deed, way, method, path, body, content_type, may, **outcomes):
    return [Row(deed, way, method, path, body, content_type, of(outcomes, may))]


def created(deed, made, *refused, may=("tenant", "controller", "node"), **outcomes):
    return one_way(deed, "create", "POST", PODS, made, None, may,
                   **{actor: outcomes.get(actor, policy) for policy in refused for actor in may})


def with_first(made, **more):
    made["spec"]["containers"][0].update(more)
    return made


def of_pods_and_records(cluster):
    stolen = {"extender": PODS_KEYS, "plugin": PODS_KEYS}
    may = MAY_PATCH["pods"]
    return (
        every_way(cluster, "the record of a bound pod", POD, "annotations", IDX, "9",
                  tenant=RECORDS, controller=RECORDS) +
        every_way(cluster, "its other record", POD, "annotations", ALLOCATION, '{"0":{"9":1}}',
                  tenant=RECORDS, controller=RECORDS) +
        every_way(cluster, "a label that a Service selects", POD, "labels", "app", "db", **stolen) +
        every_way(cluster, "a foreign annotation", POD, "annotations", "example.com/a", "1",
                  **stolen) +
        every_way(cluster, "what the author asks for", POD, "labels", GPU_COUNT, "2", **stolen) +
        every_way(cluster, "the record of a pod on another node", ELSEWHERE, "annotations", IDX, "9",
                  tenant=RECORDS, controller=RECORDS, plugin=OWN_NODE) +
        one_way("who owns the fields of a pod", "merge patch", "PATCH", POD,
                {"metadata": {"managedFields": [{}]}}, MERGE_PATCH, may, **stolen) +
        one_way("another manager's fields of a pod", "merge patch", "PATCH", POD,
                {"metadata": {"managedFields": [FIELDS_OF_OTHERS]}}, MERGE_PATCH, may, **stolen) +
        one_way("a finalizer", "JSON patch", "PATCH", POD,
                [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/forever"]}],
                JSON_PATCH, may, **stolen) +
        one_way("the phase of a pod", "status", "PATCH", f"{POD}/status",
                {"status": {"phase": "Failed"}}, MERGE_PATCH, {"node", "extender"},
                extender=PODS_KEYS) +
        one_way("an eviction", "subresource", "POST", f"{POD}/eviction",
                {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}, None,
                {"tenant", "node"}))


def of_nodes(cluster):
    return (
        every_way(cluster, "a label of its node", NODE, "labels", "pool", "b", plugin=NODES_KEYS) +
        every_way(cluster, "the administrator's cordon", NODE, "annotations", "aliyun.com/gpu-cordon",
                  "0", plugin=NODES_KEYS) +
        every_way(cluster, "the inventory of its node", NODE, "annotations", INVENTORY, "{}") +
        every_way(cluster, "the inventory of another node", OTHER_NODE, "annotations", INVENTORY, "{}",
                  plugin=OWN_NODE) +
        one_way("a taint", "merge patch", "PATCH", NODE, {"spec": {"unschedulable": True}},
                MERGE_PATCH, {"node", "plugin"}, plugin=NODES_KEYS) +
        one_way("another capacity", "status", "PATCH", f"{NODE}/status",
                {"status": {"capacity": {"cpu": "1"}}}, MERGE_PATCH, {"node", "plugin"},
                plugin=NODES_KEYS))


def binding(**labels):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waits", "labels": labels},
            "target": {"kind": "Node", "name": "n1"}}


def of_bindings_and_events():
    events = f"/api/v1/namespaces/{NAMESPACE}/events"
    return (
        one_way("a Binding with a label", "pods/binding", "POST", f"{WAITS}/binding",
                binding(app="db"), None, {"extender"}, extender=BINDINGS) +
        one_way("a Binding with a label of topology", "pods/binding", "POST", f"{WAITS}/binding",
                binding(**{"topology.kubernetes.io/rack": "r"}), None, {"extender"},
                extender=BINDINGS) +
        one_way("a Binding with the node's zone", "pods/binding", "POST", f"{WAITS}/binding",
                binding(**{"topology.kubernetes.io/zone": "a"}), None, {"extender"}) +
        one_way("a Binding with a label", "bindings", "POST",
                f"/api/v1/namespaces/{NAMESPACE}/bindings", binding(app="db"), None, set()) +
        one_way("an Event in the kubelet's name", "create", "POST", events, event("kubelet"), None,
                ACTORS, extender=EVENTS, plugin=EVENTS) +
        one_way("an Event in the extender's name", "create", "POST", events,
                event("gpushare-extender"), None, ACTORS, plugin=EVENTS, tenant=EVENT_SOURCE,
                controller=EVENT_SOURCE, node=EVENT_SOURCE) +
        one_way("an Event that the kubelet reports", "create", "POST", events,
                event("gpushare-extender", reportingComponent="kubelet"), None, ACTORS,
                extender=EVENTS, plugin=EVENTS, tenant=EVENT_SOURCE, controller=EVENT_SOURCE,
                node=EVENT_SOURCE) +
        one_way("somebody's Event", "merge patch", "PATCH", f"{events}/true-words",
                {"message": "nothing happened"}, MERGE_PATCH, ("tenant", "controller", "node")))


def of_creation():
    named, gpu = {"node_name": "n1"}, {"schedulerName": "gpushare-scheduler"}
    mirror = {"annotations": {"kubernetes.io/config.mirror": "0"}}
    nvidia, mps = ({"env": [{"name": name, "value": "0"}]}
                   for name in ("NVIDIA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"))
    return (
        created("a pod that names its node", pod("a", 4, **named), NODE_NAME, node=LET_IN) +
        created("compute on a node that it names", with_first(pod("a", **named), resources={
            "limits": {"aliyun.com/gpu-core.percentage": "50"}}), NODE_NAME, node=LET_IN) +
        created("a static pod's mirror", pod("a", 4, **named, **mirror), NODE_NAME, node=LET_IN) +
        created("a pod that names its GPUs", with_first(pod("a", 4, **gpu), **nvidia), VISIBLE) +
        created("a pod that steers MPS", with_first(pod("a", 4, **gpu), **mps), DOORS) +
        created("a privileged pod", with_first(pod("a", 4, **gpu), securityContext={
            "privileged": True}), DOORS) +
        created("a pod of another scheduler", pod("a", 4), SCHEDULER) +
        created("a pod as it should be", pod("a", 4, **gpu)))


def of_debug_containers():
    def rows(deed, policy, **more):
        return one_way(deed, "ephemeralcontainers", "PATCH", f"{POD}/ephemeralcontainers",
                       {"spec": {"ephemeralContainers": [
                           {**container("debug"), "targetContainerName": "c0", **more}]}},
                       STRATEGIC, {"tenant"}, tenant=policy)
    return (rows("a debug container", LET_IN) +
            rows("a debug container that names GPUs", VISIBLE,
                 env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]) +
            rows("a privileged debug container", DOORS, securityContext={"privileged": True}))


def outcome(client, row):
    """Which policy refused it; "rights" when RBAC did."""
    said = refusal(client, row.method, row.path, row.body, row.type)
    policy = re.search(r"ValidatingAdmissionPolicy 'gpushare-([a-z-]+)'", said)
    if policy:
        return policy[1]
    if re.search(r"^403: .* cannot [a-z]+ resource", said):
        return RIGHTS
    return said


def prepare(cluster):
    """Before the policies stand: pods on both nodes, one that waits, and who tries."""
    plane = cluster.control_plane
    plane.apply("base/namespace/namespace.yaml", "base/device-plugin/rbac.yaml",
                "base/extender/rbac.yaml")
    pods = [pod(name, 4, node_name=where, annotations={IDX: "0", "kept": "1"}) for name, where in
            (("p", "n1"), ("elsewhere", "n2"))]
    for made in pods:
        made["metadata"]["labels"] = {"kept": "1"}
    carrier = pod("carrier", namespace=EXTENDER_NAMESPACE, node_name="n1",
                  serviceAccountName="gpushare-device-plugin")
    made = cluster.create_pods([*pods, pod("waits", 4), carrier])
    cluster.api.create(f"/api/v1/namespaces/{NAMESPACE}/events",
                       {**event("kubelet"), "metadata": {"name": "true-words"}})
    plane.kubectl("create", "clusterrole", "debugger", "--verb=patch",
                  "--resource=pods/ephemeralcontainers")
    plane.kubectl("create", "clusterrolebinding", "debugger", "--clusterrole=debugger",
                  f"--serviceaccount={NAMESPACE}:tenant")
    return {"tenant": user_of(cluster, "tenant"),
            "controller": Impersonator(
                plane, "system:serviceaccount:kube-system:replicaset-controller"),
            "node": Impersonator(plane, "system:node:n1", "system:nodes"),
            "extender": client_of(cluster, "gpushare-extender"),
            "plugin": client_of(cluster, "gpushare-device-plugin", made[-1])}


def stand(cluster, clients, rows):
    """A policy that was applied is in force a little later."""
    cluster.control_plane.kubectl("apply", "-k", cluster.control_plane.manifest("policies"))
    cluster.control_plane.apply(*(f"policies/{file}" for file in FILES if "/" in file))
    for row in rows:
        for actor, word in row.outcomes.items():
            if word not in (LET_IN, RIGHTS):
                wait_for(f"{word} stands", lambda row=row, actor=actor: refusal(
                    clients[actor], row.method, row.path, row.body, row.type), 30)
    faults = list(wrong(rows, clients))
    check(not faults, f"{len(faults)}: {'; '.join(faults[:9])}")


def table(cluster):
    return (of_pods_and_records(cluster) + of_nodes(cluster) + of_bindings_and_events() +
            of_creation() + of_debug_containers())


def wrong(rows, clients):
    for row in rows:
        for actor in ACTORS:
            found = outcome(clients[actor], row)
            if found != row.outcomes[actor]:
                yield (f"{actor}, {row.deed}, {row.way}: {found or 'let in'}, expected "
                       f"{row.outcomes[actor] or 'let in'}")


def show(rows):
    print(f"{'':40}{'':22}" + "".join(f"{actor:24}" for actor in ACTORS))
    for row in rows:
        print(f"{row.deed:40}{row.way:22}" +
              "".join(f"{row.outcomes[actor] or '-':24}" for actor in ACTORS))


def every_policy_refuses(cluster, rows):
    names = {item["metadata"]["name"].removeprefix("gpushare-") for item in cluster.api.items(
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")}
    check(names == set().union(*FILES.values()), f"the policies are {names}")
    tried = {word for row in rows for word in row.outcomes.values()} - {LET_IN, RIGHTS}
    check(names - WARNS == tried, f"policies that no row is of: {names - WARNS - tried}")


def body():
    with Cluster(nodes=[node("n1", [16]), node("n2", [16])], scheduler=None,
                 extender=False) as cluster:
        clients = prepare(cluster)
        rows = table(cluster)
        bare = [row._replace(outcomes={actor: word if word == RIGHTS else LET_IN
                                       for actor, word in row.outcomes.items()}) for row in rows]
        faults = list(wrong(bare, clients))
        check(not faults, f"by rights alone: {'; '.join(faults[:9])}")
        stand(cluster, clients, rows)
        every_policy_refuses(cluster, rows)
        show(rows)
        refused = sum(word not in (LET_IN, RIGHTS) for row in rows for word in row.outcomes.values())
        print(f"note: {len(rows) * len(ACTORS)} attempts, {refused} refused by a policy")


run(body)
