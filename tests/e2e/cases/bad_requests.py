#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests about unknown things, and many binds at once: clear answers, nothing charged."""

import concurrent.futures
import http.client

from harness.api import node_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.extender import PREFIX
from harness.objects import IDX, NAMESPACE, annotation, bound_node, node, pod


def bind(cluster, name, uid, to):
    return cluster.extender.verb("bind", {"PodName": name, "PodNamespace": NAMESPACE,
                                          "PodUID": uid, "Node": to}).get("Error", "")


def unknown_things(cluster):
    made = cluster.create_pods([pod("real", 4)])[0]
    uid = made["metadata"]["uid"]
    nobody = "00000000-0000-0000-0000-000000000000"
    check(bind(cluster, "nobody", nobody, "n1"), "unknown pod bound")
    check(bind(cluster, "real", uid, "no-such-node"), "bound to an unknown node")
    answer = cluster.extender.verb("filter", {"Pod": made, "NodeNames": ["n1", "no-such-node"]})
    check(answer["NodeNames"] == ["n1"] and "no-such-node" in answer["FailedNodes"],
          f"filter with an unknown node: {answer}")
    cluster.wait_inspect_agrees()


def malformed(cluster):
    for body, path, method, expected in (
            ("{", "filter", "POST", 400), ("[" * 100000, "filter", "POST", 400),
            ("", "bind", "POST", 400), (None, "bind", "GET", 405)):
        status, text = raw(cluster, method, path, body)
        check(status == expected, f"{method} {path} {(body or '')[:9]!r}: {status} {text[:200]}")


def raw(cluster, method, path, body):
    conn = http.client.HTTPConnection("127.0.0.1", cluster.extender.port, timeout=10)
    try:
        conn.request(method, f"{PREFIX}/{path}", body)
        response = conn.getresponse()
        return response.status, response.read().decode()
    finally:
        conn.close()


def many_binds_at_once(cluster):
    """One pod, sixteen requests, two nodes: one place, and every answer says the truth about it.
    Who asks for the right node while another request binds it there may hear that."""
    uid = cluster.create_pods([pod("wanted", 8)])[0]["metadata"]["uid"]
    targets = ["n1", "n2"] * 8
    with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
        errors = list(pool.map(lambda to: bind(cluster, "wanted", uid, to), targets))
    found = cluster.wait_bound("wanted")
    place = bound_node(found)
    check(annotation(found, IDX) is not None, "bound without a GPU")
    check((place, "") in zip(targets, errors), f"bound to {place}, but nobody was told: {errors}")
    lies = [(to, error) for to, error in zip(targets, errors)
            if (to != place and error == "") or (to == place and error and "in progress" not in error)]
    check(not lies, f"bound to {place}, but the answers were {lies}")
    check(bind(cluster, "wanted", uid, place) == "", "a repeated bind is not a success")
    cluster.wait_inspect_agrees()


def health_port(cluster):
    """It tells how things are, and schedules nothing."""
    for verb in ("filter", "prioritize", "preempt", "bind", "inspect"):
        status = cluster.extender.ask("POST", f"{PREFIX}/{verb}", "{}",
                                      port=cluster.extender.health_port)[0]
        check(status == 404, f"the health port answers {verb} with {status}")


def vanished_node(cluster):
    uid = cluster.create_pods([pod("late", 2)])[0]["metadata"]["uid"]
    cluster.api.delete(node_path("n2"))
    bind(cluster, "late", uid, "n2")
    cluster.wait_inspect_agrees()


def body():
    with Cluster(nodes=[node("n1", [16]), node("n2", [16])], scheduler=None) as cluster:
        unknown_things(cluster)
        malformed(cluster)
        many_binds_at_once(cluster)
        health_port(cluster)
        vanished_node(cluster)


run(body)
