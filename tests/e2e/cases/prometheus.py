#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes extender and device plugin: every alert rule evaluates, every query of
the dashboard has data, a healthy cluster has no alert, and a kubelet that is gone raises one."""

import json

from harness.api import node_path
from harness.case import check, run
from harness.control_plane import HOST
from harness.node import NODE, NodeCluster, real_pod
from harness.objects import pod
from harness.processes import wait_for
from harness.prometheus import Prometheus, dashboard_queries

GIB = 1 << 30
POD_INFO = "gpushare_device_plugin_pod_gpu_info"
# The extender tells what is stranded when it has seen this many pods.
PODS_SEEN = 40


def without_data(prometheus):
    return [f"{panel}: {query}" for panel, query, may_be_empty in dashboard_queries()
            if not prometheus.query(query) and not may_be_empty]


def inventory_of(cluster):
    annotations = cluster.api.get(node_path(NODE))["metadata"]["annotations"]
    return json.loads(annotations["aliyun.com/gpu-inventory"])["gpus"]


def check_values(cluster, prometheus):
    """The numbers are the cluster's, not only there."""
    allocated = {(labels["node"], labels["gpu"]): value
                 for labels, value in prometheus.query("gpushare_gpu_memory_allocated_bytes")}
    check(sorted(allocated.values()) == [0, 12 * GIB], f"allocated is {allocated}")
    given = sorted(value for _, value in
                   prometheus.query("gpushare_device_plugin_gpu_memory_allocated_bytes"))
    check(given == [0, 12 * GIB], f"the plugin says {given}")
    namespaces = {labels["namespace"]: value for labels, value in
                  prometheus.query("gpushare_namespace_memory_allocated_bytes")}
    check(namespaces == {"default": 12 * GIB}, f"the namespaces have {namespaces}")
    pods = {labels["pod"]: (labels["namespace"], labels["gpu"], labels["UUID"]) for labels, _ in
            prometheus.query(f"{POD_INFO} == 1")}
    check(pods.keys() == {"a", "b"} and len(set(pods.values())) == 1, f"the pods' GPUs are {pods}")
    inventory = {str(gpu["idx"]): gpu["uuid"] for gpu in inventory_of(cluster)}
    for name, (namespace, gpu, uuid) in pods.items():
        check((namespace, uuid) == ("default", inventory[gpu]), f"{name} is on {gpu}, {uuid}")
    refused = {labels["reason"]: value
               for labels, value in prometheus.query("gpushare_unschedulable_pods > 0")}
    check(refused == {"gpu_too_small": 1}, f"refused are {refused}")
    outcomes = {labels["outcome"]: value
                for labels, value in prometheus.query("gpushare_bind_attempts_total > 0")}
    check(outcomes == {"bound": 2}, f"binds are {outcomes}")


def evaluated(prometheus):
    """Sentences about rules that were not evaluated, or not without an error."""
    return [f"{rule['name']}: {rule['health']} {rule.get('lastError', '')}"
            for rule in prometheus.rules() if rule["health"] != "ok"]


def body():
    with NodeCluster(gpus="2x16GiB") as cluster:
        cluster.create_pods([real_pod("a", 8), real_pod("b", 4), pod("huge", 20)] + [
            pod(f"seen-{i}", 4, schedulerName="nobody") for i in range(PODS_SEEN)])
        cluster.wait_true_record("a")
        cluster.wait_true_record("b")
        cluster.wait_refused("huge")
        prometheus = Prometheus(cluster.processes, cluster.run_dir, {
            "gpushare-extender": f"{HOST}:{cluster.extender.health_port}",
            "gpushare-device-plugin": f"{HOST}:{cluster.plugin.port}"})

        def up():
            return {labels["job"]: value for labels, value in prometheus.query("up")}
        wait_for("both are up", lambda: up() == {"gpushare-extender": 1,
                                                 "gpushare-device-plugin": 1}, 20)
        wait_for("every rule is evaluated", lambda: not evaluated(prometheus), 20)
        rules = prometheus.rules()
        check(len(rules) >= 20, f"only {len(rules)} rules were loaded")

        def complete():
            missing = without_data(prometheus)
            if missing:
                raise OSError(f"without data: {missing}")
            return True
        wait_for("every query has data", complete, 20, interval_s=1)
        # the plugin tells which pod has which GPU every ten seconds
        wait_for("the pods' GPUs are told", lambda: len(prometheus.query(POD_INFO)) == 2, 20)
        check_values(cluster, prometheus)
        check(not prometheus.alerts(), f"a healthy cluster has {prometheus.alerts()}")
        queries = len(list(dashboard_queries()))

        cluster.kubelet.stop()
        wait_for("the plugin's alert is pending", lambda: "GpusharePluginNotRegistered" in
                 prometheus.alerts(), 20)
        print(f"note: {len(rules)} rules, {queries} queries")
        cluster.start_kubelet()
        wait_for("it is over", lambda: not prometheus.alerts(), 40)


run(body)
