#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/own-keys.yaml: with the tokens of extender, second scheduler and device plugin
nothing of a pod, a binding or a node can be changed but our annotations and capacities; pods are
annotated and bound as before. Without the policy each of the forbidden patches is let in."""

from harness.api import node_path, pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import EXTENDER_NAMESPACE
from harness.objects import ALLOCATION, GPU_COUNT, IDX, INVENTORY, NAMESPACE, node, pod
from harness.policies import STRATEGIC, check_rows, client_of, event, refusal, user_of
from harness.processes import wait_for

KUBE = ">=1.30"
POLICY = "policies/own-keys.yaml"
GHOST = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost",
          "uid": "00000000-0000-0000-0000-000000000000"}]
IMAGE = {"spec": {"containers": [{"name": "c0", "image": "somebody/elses"}]}}
WAKE = "aliyun.com/gpu-requeue"
SPEC, REST, LABEL = "not the spec", "not owners, finalizers or other metadata", "may label only its own pod"
WRITE, REMOVE = "may write its own annotations only", "may remove its own annotations only"
NODE_REST, STATUS = "of a node only, not owners, finalizers or other metadata", "only in a node's status"
NODE_LABEL, ENFORCED = "may change the label gpu-enforced only", "aliyun.com/gpu-enforced"
CAPACITY, BOUND_NOTE = "only in capacity and allocatable", "with its own annotations only"
BOUND_LABEL = "bindings without labels only"
POD_STATUS = "may change nominatedNodeName only"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
NAMELESS = {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:kept": {}}}}}


def meta(**more):
    return {"metadata": more}


def notes(**more):
    return meta(annotations=more)


# (row, words of the refusal or "", the patch[, its content type]), of a pod that is not one's own
OF_PODS = (
    ("an image", SPEC, IMAGE, STRATEGIC),
    ("an owner that does not exist, for the garbage collector", REST, meta(ownerReferences=GHOST)),
    ("a finalizer", REST, meta(finalizers=["example.com/forever"])),
    ("a label taken away", LABEL, meta(labels={"kept": None})),
    ("the leader's label on another pod", LABEL, meta(labels={"gpushare/leader": "true"})),
    ("a foreign annotation changed", WRITE, notes(kept="other")),
    ("a foreign annotation taken away", REMOVE, notes(kept=None)),
    ("an annotation of the domain that is not ours", WRITE, notes(**{"aliyun.com/other": "1"})),
    ("an annotation of one's own pod, on another", WRITE, notes(**{"gpushare/leader-term": "1"})),
    ("the record", "", notes(**{IDX: "0", ALLOCATION: "{}"})),
    ("a record taken away", "", notes(**{IDX: None})),
    ("waking", "", notes(**{WAKE: "1"})),
)
# as the extender writes a nomination
OF_POD_STATUS = (
    ("a nomination", "", {"status": {"nominatedNodeName": "n1"}}),
    ("a nomination and waking", "",
     {"status": {"nominatedNodeName": "n2"}, **notes(**{WAKE: "1"})}),
    ("a nomination taken back", "", {"status": {"nominatedNodeName": None}}),
    ("a condition", POD_STATUS, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    ("a label through the status", LABEL, meta(labels={"app": "db"})),
)
# of one's own pod
OF_OWN_POD = (
    ("the leader's label", "", meta(labels={"gpushare/leader": "true"})),
    ("the leader's label taken away", "", meta(labels={"gpushare/leader": None})),
    ("an annotation of the election", "", notes(**{"gpushare/leader-term": "1"})),
    ("another label beside the leader's", LABEL,
     meta(labels={"app": "db", "gpushare/leader": "true"})),
    ("the finalizers", REST, meta(finalizers=["example.com/forever"])),
)
OF_NODES = (
    ("the inventory taken away", "", notes(**{INVENTORY: None})),
    ("who moved", "", notes(**{"aliyun.com/gpu-reassigned": "{}"})),
    ("a foreign annotation taken away", REMOVE, notes(kept=None)),
    ("that limits hold", "", meta(labels={ENFORCED: "dmem"})),
    ("that limits hold no longer", "", meta(labels={ENFORCED: None})),
    ("a label beside that", NODE_LABEL, meta(labels={ENFORCED: "dmem", "a": "b"})),
    ("a label taken away", NODE_LABEL, meta(labels={"kubernetes.io/hostname": None})),
    ("a finalizer", NODE_REST, meta(finalizers=["example.com/forever"])),
    ("a taint", SPEC, {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
)
OF_NODE_STATUS = (
    ("the number of GPUs", "", {"status": {"capacity": {GPU_COUNT: "2"}}}),
    ("the number of GPUs taken away", "", {"status": {"capacity": {GPU_COUNT: None}}}),
    ("another capacity taken away", CAPACITY, {"status": {"capacity": {"cpu": None}}}),
    ("what is allocatable", CAPACITY, {"status": {"allocatable": {"cpu": "1"}}}),
    ("addresses", STATUS,
     {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}),
    ("a condition", STATUS, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
)
# of a pod that waits
OF_BINDINGS = (
    ("our annotations", "", notes(**{IDX: "0", ALLOCATION: "{}"})),
    ("a node's zone", "", meta(labels={"topology.kubernetes.io/zone": "a"})),
    ("another annotation", BOUND_NOTE, notes(**{"example.com/a": "1"})),
    ("a label", BOUND_LABEL, meta(labels={"app": "db"})),
)


def patches(rows, client, who, path):
    return [(f"{who}, {row}", words, client, "PATCH", path, *patch) for row, words, *patch in rows]


def bindings(client, who):
    path = pod_path(NAMESPACE, "waits", "binding")
    return [(f"{who} binds with {row}", words, client, "POST", path, {
        "apiVersion": "v1", "kind": "Binding", **made, "target": {"kind": "Node", "name": "n1"},
        "metadata": {"name": "waits", **made["metadata"]}}) for row, words, made in OF_BINDINGS]


def carrier(cluster, account):
    """A pod of this account, which a token can be bound to."""
    [made] = cluster.create_pods([pod(f"of-{account}", namespace=EXTENDER_NAMESPACE,
                                      node_name="n1", serviceAccountName=account)])
    return made


def attempts(cluster):
    extender, scheduler, plugin = (
        client_of(cluster, f"gpushare-{name}", carrier(cluster, f"gpushare-{name}"))
        for name in ("extender", "scheduler", "device-plugin"))
    foreign = pod_path(NAMESPACE, "p")
    own = pod_path(EXTENDER_NAMESPACE, "of-gpushare-extender")
    finalizer = patches(OF_PODS[2:3], scheduler, "scheduler, status", f"{foreign}/status")
    return (patches(OF_PODS, extender, "extender", foreign) +
            patches(OF_PODS, scheduler, "scheduler", foreign) +
            patches(OF_PODS, plugin, "plugin", foreign) +
            patches([(row, words, body, STRATEGIC) for row, words, body in OF_POD_STATUS],
                    extender, "extender, status", pod_path(NAMESPACE, "waits", "status")) +
            [row for name in ("p", "more") for row in patches(
                [("a condition", "", *OF_POD_STATUS[3][2:], STRATEGIC)], scheduler, "kube-scheduler",
                pod_path(NAMESPACE, name, "status?fieldManager=kube-scheduler"))] +
            [(f"an Event of the extender by {who}", words, client, "POST", EVENTS, event("gpushare-extender"))
             for who, words, client in (
                 ("the second scheduler", "", scheduler),
                 ("a namesake elsewhere", "only gpushare may", user_of(cluster, "gpushare-extender")))] +
            patches(OF_OWN_POD, extender, "extender, its own pod", own) + finalizer +
            patches(OF_PODS[4:5], scheduler, "scheduler, the extender's pod", own) +
            patches(OF_NODES, plugin, "plugin, node", node_path("n1")) +
            patches([(row, words, body, STRATEGIC) for row, words, body in OF_NODE_STATUS],
                    plugin, "plugin, node's status", node_path("n1", "status")) +
            bindings(extender, "extender") + bindings(scheduler, "scheduler"))


def with_annotations(name, count):
    """Comparing more than a thousand takes the API server seconds, 50,000 its whole minute."""
    return pod(name, 4, annotations={f"a{i}": "" for i in range(count)})


def prepare(cluster):
    cluster.control_plane.apply("base/device-plugin/rbac.yaml",
                                "base/second-scheduler/rbac.yaml")
    marked = pod("p", 4, annotations={"kept": "1"})
    marked["metadata"]["labels"] = {"kept": "1"}
    cluster.create_pods([marked, with_annotations("many", 900), with_annotations("more", 1001),
                         pod("waits", 4, schedulerName="nobody")])
    for name in ("p", "many", "more"):
        cluster.wait_bound(name)
    cluster.api.patch(node_path("n1"), notes(kept="1"))
    managers = cluster.pod("p")["metadata"]["managedFields"]
    cluster.api.patch(pod_path(NAMESPACE, "p"), meta(managedFields=[*managers, NAMELESS]))


def body():
    with Cluster(nodes=[node("n1", [16])]) as cluster:
        prepare(cluster)
        rows = attempts(cluster)
        check_rows([(row, "", *attempt) for row, _, *attempt in rows])  # RBAC alone lets all in
        cluster.control_plane.apply(POLICY)
        first, image = rows[0], rows[0][2:]
        wait_for("the policies stand", lambda: first[1] in refusal(*image) and
                 all(refusal(*row[2:]) for row in rows if row[1]))
        check_rows(rows)
        check_rows([("an administrator", "", cluster.api, *image[1:]),
                    ("a pod of many annotations", "", image[0], "PATCH",
                     pod_path(NAMESPACE, "many"), notes(**{IDX: "0"})),
                    ("a pod of too many", "more than 1000", image[0], "PATCH",
                     pod_path(NAMESPACE, "more"), notes(**{IDX: "0"}))])
        cluster.create_pods([pod("q", 2)])
        cluster.wait_bound("q")
        cluster.wait_inspect_agrees()
        print(f"note: {len(rows)} attempts, {sum(bool(row[1]) for row in rows)} refused")


run(body)
