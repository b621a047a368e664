#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/visible-devices.yaml: pods with GPU memory do not name their GPUs themselves,
whichever container does it; envFrom is warned of; nothing else is disturbed."""

import json

from harness.api import MERGE_PATCH, ApiError, pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, annotation, container, pod
from harness.processes import wait_for

KUBE = ">=1.30"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def with_env(made, which, *names):
    made["spec"][which][0]["env"] = [{"name": name, "value": "all"} for name in names or [VISIBLE]]
    return made


def with_env_from(made, which="containers"):
    made["spec"][which][0]["envFrom"] = [{"configMapRef": {"name": "any"}}]
    return made


# (row, pod, "refused", "warned" or "")
ROWS = (
    ("no environment", pod("r0", 8), ""),
    ("another variable", with_env(pod("r1", 8), "containers", "CUDA_CACHE_PATH"), ""),
    ("more variables than are read", with_env(pod("r2", 8), "containers", *(f"E{i}" for i in range(1001))), "refused"),
    ("a container beside the one that asks", with_env(pod("r3", containers=[0, 8]), "containers"),
     "refused"),
    ("an init container", with_env(pod("r4", 8, init=[0]), "initContainers"), "refused"),
    ("only an init container asks", with_env(pod("r5", 0, init=[8]), "containers"), "refused"),
    ("nobody asks", with_env(pod("r6"), "containers"), ""),
    ("envFrom", with_env_from(pod("r7", 8)), "warned"),
    ("envFrom of an init container", with_env_from(pod("r8", 0, init=[8]), "initContainers"),
     "warned"),
    ("envFrom, nobody asks", with_env_from(pod("r9")), ""),
)


def send(cluster, method, path, body, content_type="application/json"):
    """(status, message, Warning headers), which the shared client does not show."""
    conn = cluster.api.connect()
    try:
        conn.request(method, path, json.dumps(body), cluster.api.headers(content_type))
        response = conn.getresponse()
        warnings = response.headers.get_all("Warning") or []
        return response.status, json.loads(response.read()).get("message", ""), warnings
    finally:
        conn.close()


def outcome(status, message, warnings):
    if status == 422 or status == 403:
        check("must not set" in message, f"refused, but: {message}")
        return "refused"
    check(status in (200, 201), f"{status}: {message}")
    return "warned" if any("ConfigMap or Secret" in text for text in warnings) else ""


def stands(cluster):
    """Policies take effect a moment after they were created."""
    refused = with_env(pod("probe", 8), "containers")
    try:
        cluster.api.create(f"{pod_path(NAMESPACE)}?dryRun=All", refused)
    except ApiError:
        warned = send(cluster, "POST", f"{pod_path(NAMESPACE)}?dryRun=All",
                      with_env_from(pod("probe", 8)))
        return outcome(*warned) == "warned"
    return False


def ephemeral(cluster, name, made):
    """What becomes of a debug container added to a pod."""
    return outcome(*send(cluster, "PATCH", pod_path(NAMESPACE, name, "ephemeralcontainers"),
                         {"spec": {"ephemeralContainers": [made]}}, MERGE_PATCH))


def debug_container(**more):
    return {**container("debug"), "targetContainerName": "c0", **more}


def body():
    with Cluster(scheduler=None, extender=False) as cluster:
        cluster.create_pods([with_env(pod("older", 8), "containers")])
        cluster.control_plane.apply("policies/visible-devices.yaml")
        wait_for("the policies stand", lambda: stands(cluster))
        for row, made, expected in ROWS:
            found = outcome(*send(cluster, "POST", pod_path(NAMESPACE), made))
            check(found == expected, f"{row}: {found or 'let in'}, not {expected or 'let in'}")
        env = [{"name": VISIBLE, "value": "all"}]
        check(ephemeral(cluster, "r0", debug_container(env=env)) == "refused",
              "a debug container that names GPUs was let in")
        check(ephemeral(cluster, "r6", debug_container(env=env)) == "",
              "a debug container of a pod without GPU memory was refused")
        check(ephemeral(cluster, "r0", debug_container()) == "", "a debug container was refused")
        # The plugin goes on writing on pods that are older than the policy.
        cluster.api.patch(pod_path(NAMESPACE, "older"), {"metadata": {"annotations": {"a": "b"}}})
        check(annotation(cluster.pod("older"), "a") == "b", "the older pod was not annotated")


run(body)
