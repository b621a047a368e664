#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/records.yaml: who may edit a pod changes nothing of which GPUs it has once it is
bound, and everything before; what authors say stays theirs. With another domain and namespace, too."""

import os

from harness.api import pod_path
from harness.case import run
from harness.cluster import Cluster
from harness.objects import ALLOCATION, GPU_COUNT, IDX, NAMESPACE, node, original_annotations, pod
from harness.policies import check_rows, client_of, refusal, user_of, with_parameters
from harness.processes import wait_for

KUBE = ">=1.30"
POLICY = "policies/records.yaml"
REFUSED = "written by gpushare only"
BOUND, WAITS = pod_path(NAMESPACE, "p"), pod_path(NAMESPACE, "waits")
OTHER_NAMESPACE, OTHER_DOMAIN = "gpu-sharing", "example.com"


def notes(**more):
    return {"metadata": {"annotations": more}}


# (row, words of the refusal or "", patch of a bound pod)
ROWS = tuple((f"{name}", REFUSED, notes(**{name: value})) for name, value in (
    (IDX, "99"), (IDX, "0,1,2,3"), (IDX, ""), (IDX, None),
    ("ALIYUN_COM_GPU_MEM_DEV", "1"), ("ALIYUN_COM_GPU_MEM_POD", "1"),
    ("ALIYUN_COM_GPU_MEM_CONTAINER", "1"), ("ALIYUN_COM_GPU_MEM_ASSIGNED", "true"),
    ("ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"), (ALLOCATION, '{"0":{"3":4}}'),
    ("scheduler.framework.gpushare.assigned", "true"),
    ("scheduler.framework.gpushare.assume-time", "1"),
    ("aliyun.com/gpu-requeue", "1"))) + (
    ("all annotations taken away", REFUSED, {"metadata": {"annotations": None}}),
    ("a note beside the same record", "", notes(**{IDX: "0", "example.com/a": "1"})),
    ("the policy", "", notes(**{"aliyun.com/gpu-placement": "spread"})),
    ("the model", "", notes(**{"aliyun.com/gpu-model": "A100"})),
    ("the number of GPUs", "", {"metadata": {"labels": {GPU_COUNT: "2"}}}),
)
# what a backup holds
RESTORED = original_annotations(0, 4, 16)


def patches(client, who, path, rows):
    return [(f"{who}, {row}", words, client, "PATCH", path, patch) for row, words, patch in rows]


def attempts(cluster, author):
    let_in = [(row, "", patch) for row, _, patch in ROWS]
    return (patches(author, "author", BOUND, ROWS) +
            patches(author, "author, while it waits", WAITS, let_in) +
            patches(client_of(cluster, "gpushare-extender"), "extender", BOUND, let_in[:-1]) +
            patches(client_of(cluster, "gpushare-device-plugin"), "plugin", BOUND, let_in[:-1]) +
            patches(cluster.api, "administrator", BOUND, ROWS[:1]) +
            patches(cluster.api, "administrator, status", f"{BOUND}/status", ROWS[:1]) +
            [("a pod restored with its record", "", author, "POST", pod_path(NAMESPACE),
              pod("restored", 4, annotations=RESTORED))])


def impostor(cluster):
    """An account of the extender's name in somebody's namespace."""
    return user_of(cluster, "gpushare-extender")


def show_elsewhere(cluster, author):
    cluster.control_plane.kubectl("create", "namespace", OTHER_NAMESPACE)
    cluster.control_plane.kubectl("-n", OTHER_NAMESPACE, "create", "serviceaccount",
                                  "gpushare-extender")
    cluster.control_plane.kubectl(
        "create", "clusterrolebinding", "elsewhere", "--clusterrole=gpushare-extender",
        f"--serviceaccount={OTHER_NAMESPACE}:gpushare-extender")
    extender = client_of(cluster, "gpushare-extender", namespace=OTHER_NAMESPACE)
    cluster.control_plane.kubectl("apply", "-k", with_parameters(os.path.join(cluster.run_dir, "elsewhere"), {
        "namespace": f"'{OTHER_NAMESPACE}'", "domain": f"'{OTHER_DOMAIN}'", "schedulerNames": "['mine']"}))
    theirs = notes(EXAMPLE_COM_GPU_MEM_IDX="1")
    asks = pod("asks")
    asks["spec"]["containers"][0]["resources"] = {"limits": {f"{OTHER_DOMAIN}/gpu-mem": "1"}}
    named = ("needs schedulerName mine", author, "POST", pod_path(NAMESPACE), asks)
    wait_for("the other policies stand",
             lambda: REFUSED in refusal(author, "PATCH", BOUND, theirs) and
             "own annotations only" in refusal(extender, "PATCH", BOUND, notes(**{IDX: "1"})) and
             named[0] in refusal(*named[1:]))
    check_rows([("author, the domain of before", "", author, "PATCH", BOUND, ROWS[0][2]),
                ("extender elsewhere", "", extender, "PATCH", BOUND, theirs),
                ("extender here", REFUSED,
                 client_of(cluster, "gpushare-extender"), "PATCH", BOUND, theirs),
                ("a schedulerName", *named)])


def body():
    with Cluster(nodes=[node("n1", [16])]) as cluster:
        cluster.control_plane.apply("base/device-plugin/rbac.yaml")
        cluster.create_pods([pod("p", 4), pod("waits", 4, schedulerName="nobody")])
        cluster.wait_bound("p")
        author = user_of(cluster, "author")
        rows = attempts(cluster, author)
        check_rows([(row, "", *attempt) for row, _, *attempt in rows])  # RBAC alone lets all in
        cluster.control_plane.apply(POLICY)
        wait_for("the policy stands", lambda: REFUSED in refusal(*rows[0][2:]))
        check_rows(rows + patches(impostor(cluster), "impostor", BOUND, ROWS[:1]))
        cluster.create_pods([pod("q", 4)])
        cluster.wait_bound("q")
        cluster.wait_inspect_agrees()
        show_elsewhere(cluster, author)
        print(f"note: {len(rows)} attempts, {sum(bool(row[1]) for row in rows)} refused")


run(body)
