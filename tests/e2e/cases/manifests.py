#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every overlay renders, is accepted by the API server, agrees with itself and with the programs."""

import glob
import json
import os
import re
import subprocess

from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import EXTENDER_NAMESPACE, ROOT, built_program

KUBE = ">=1.20"

OVERLAYS = ("ha-mtls", "kubeadm", "original-nodeport", "second-scheduler",
            "second-scheduler-v1beta1")
OURS = re.compile(r"^gpushare\.invalid/(gpushare-[a-z-]+):(.+)$")


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as text:
        return re.search(r"project\(gpushare VERSION ([0-9.]+)", text.read()).group(1)


def objects(cluster, overlay):
    """What the API server makes of it; nothing is stored."""
    path = cluster.control_plane.manifest(f"overlays/{overlay}")
    return json.loads(cluster.control_plane.kubectl(
        "apply", "--dry-run=server", "-o", "json", "-k", path))["items"]


def of_kind(items, *kinds):
    return [item for item in items if item["kind"] in kinds]


def names(items, kind):
    return {item["metadata"]["name"] for item in of_kind(items, kind)}


def port_of(container, flag):
    """The port in a flag such as --listen=0.0.0.0:29999, or None."""
    found = [arg for arg in container.get("args", []) if arg.startswith(f"{flag}=")]
    return int(found[0].rpartition(":")[2]) if found else None


def wrong_flags(container, program):
    """The program itself reads its flags; --version ends it after the last one."""
    done = subprocess.run([built_program(program), *container.get("args", []), "--version"],
                          capture_output=True, text=True, timeout=20, check=False)
    return [] if done.returncode == 0 else [done.stderr.strip()]


def wrong_ports(container):
    """Each port that is named listens, and each that probes ask is named."""
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    listening = {port_of(container, flag) for flag in ("--listen", "--health-listen")}
    wrong = [f"nothing listens on {name}" for name, port in ports.items() if port not in listening]
    for probe in ("livenessProbe", "readinessProbe"):
        port = container.get(probe, {}).get("httpGet", {}).get("port")
        if port not in ports:
            wrong.append(f"{probe} asks {port}")
    return wrong


def wrong_container(container):
    found = OURS.match(container["image"])
    if not found:
        return []
    program, tag = found.groups()
    wrong = [] if tag == version() else [f"image of version {tag}"]
    security = container["securityContext"]
    if not (security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"] and
            security["capabilities"]["drop"] == ["ALL"]):
        wrong.append("may do more than it needs")
    if "memory" not in container["resources"].get("limits", {}):
        wrong.append("no memory limit")
    return wrong + wrong_flags(container, program) + wrong_ports(container)


def wrong_pod(template, items):
    """What a pod names exists: account, volumes, ConfigMaps."""
    spec = template["spec"]
    wrong = []
    if spec["serviceAccountName"] not in names(items, "ServiceAccount"):
        wrong.append("its ServiceAccount is not there")
    volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
    for volume in volumes.values():
        if "configMap" in volume and volume["configMap"]["name"] not in names(items, "ConfigMap"):
            wrong.append(f"no ConfigMap {volume['configMap']['name']}")
    for container in spec["containers"]:
        wrong += [f"no volume {mount['name']}" for mount in container.get("volumeMounts", [])
                  if mount["name"] not in volumes]
        wrong += [f"{container['name']}: {what}" for what in wrong_container(container)]
    return wrong


def wrong_bindings(items):
    """Every account that is given a right exists."""
    return [f"{item['metadata']['name']} binds to no account"
            for item in of_kind(items, "RoleBinding", "ClusterRoleBinding")
            for subject in item["subjects"] if subject["name"] not in names(items, "ServiceAccount")]


def wrong_services(items):
    """A Service's port is a port of the pods that it selects."""
    wrong = []
    for service in of_kind(items, "Service"):
        # the leader's label is put on by the extender itself
        wanted = {key: value for key, value in service["spec"]["selector"].items()
                  if key != "gpushare/leader"}
        pods = [item["spec"]["template"] for item in of_kind(items, "Deployment", "DaemonSet")
                if wanted.items() <= item["spec"]["template"]["metadata"]["labels"].items()]
        named = {port["name"] for pod in pods for container in pod["spec"]["containers"]
                 for port in container.get("ports", [])}
        wrong += [f"Service port {port['targetPort']} is nobody's"
                  for port in service["spec"]["ports"] if port["targetPort"] not in named]
    return wrong


def wrong_overlay(items):
    wrong = wrong_bindings(items) + wrong_services(items)
    for item in of_kind(items, "Deployment", "DaemonSet"):
        found = wrong_pod(item["spec"]["template"], items)
        wrong += [f"{item['metadata']['name']}: {what}" for what in found]
    return wrong


def network_policies(cluster):
    path = cluster.control_plane.manifest("network-policies")
    made = json.loads(cluster.control_plane.kubectl("apply", "--dry-run=server", "-o", "json", "-k",
                                                    path))
    return made.get("items", [made])


def ports_let_in(policy):
    return {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}


def wrong_network(items, policies):
    """Each pod that has a network of its own is selected by one policy, which lets in its ports and
    those that probes ask, and no others; each rule says from where."""
    wrong = [f"{policy['metadata']['name']}: a rule lets in everybody" for policy in policies
             for rule in policy["spec"]["ingress"] if not rule.get("from")]
    for item in of_kind(items, "Deployment", "DaemonSet"):
        template = item["spec"]["template"]
        chosen = [policy for policy in policies if policy["spec"]["podSelector"]["matchLabels"].items()
                  <= template["metadata"]["labels"].items()]
        ports = {port["name"] for container in template["spec"]["containers"]
                 for port in container["ports"]}
        if template["spec"].get("hostNetwork"):
            continue
        if len(chosen) != 1:
            wrong.append(f"{item['metadata']['name']}: {len(chosen)} NetworkPolicies")
        elif ports_let_in(chosen[0]) != ports:
            wrong.append(f"{item['metadata']['name']}: {ports_let_in(chosen[0])} are let in, not {ports}")
    return wrong


def check_overlays(cluster):
    found = sorted(os.listdir(cluster.control_plane.manifest("overlays")))
    check(found == sorted(OVERLAYS), f"overlays are {found}")
    policies = network_policies(cluster)
    check(len(policies) == 3, f"{len(policies)} NetworkPolicies")
    for overlay in OVERLAYS:
        items = objects(cluster, overlay)
        wrong = wrong_overlay(items) + wrong_network(items, policies)
        check(not wrong, f"{overlay}: {'; '.join(wrong)}")
        check(names(items, "DaemonSet") >= {"gpushare-device-plugin"}, f"{overlay}: no plugin")


def check_settled(cluster):
    """What applies an overlay again and again (Argo CD, Flux) finds nothing to do the second time."""
    kubectl = cluster.control_plane.kubectl
    for overlay in OVERLAYS:
        path = cluster.control_plane.manifest(f"overlays/{overlay}")
        kubectl("apply", "-k", path)
        again = kubectl("apply", "-k", path).splitlines()
        restless = [line for line in again if not line.endswith(" unchanged")]
        check(again and not restless, f"{overlay}, applied twice: {'; '.join(restless)}")
        kubectl("diff", "-k", path)  # fails when there is a difference


def is_served(cluster, version, kind):
    listed = cluster.api.find(f"/apis/{version}")
    return listed and kind in {resource["kind"] for resource in listed["resources"]}


def check_policies(cluster):
    """They ask for newer releases than the rest; one or the other is said of each."""
    for path in sorted(glob.glob(cluster.control_plane.manifest("policies/**/*.yaml"),
                                 recursive=True)):
        if os.path.basename(path) == "kustomization.yaml":
            continue
        with open(path, encoding="utf-8") as text:
            kinds = re.findall(r"^apiVersion: (.*)\nkind: (.*)$", text.read(), re.M)
        check(kinds, f"{path} has no object")
        if all(is_served(cluster, *kind) for kind in kinds):
            cluster.control_plane.kubectl("apply", "--dry-run=server", "-f", path)
        else:
            print(f"note: {os.path.basename(path)} needs a newer API server than this one")


def check_kubeadm_patch(cluster):
    """kubeadm's manifest and the shipped patch give the shipped example."""
    kubectl = cluster.control_plane.kubectl
    shipped = os.path.join(ROOT, "config", "kube-scheduler-static-pod.yaml")
    wanted = json.loads(kubectl("patch", "--local", "-p", "{}", "-o", "json", "-f", shipped))
    before = json.loads(json.dumps(wanted))
    container = before["spec"]["containers"][0]
    container["command"].remove("--config=/etc/kubernetes/gpushare/kube-scheduler-config.yaml")
    for mounts in (container["volumeMounts"], before["spec"]["volumes"]):
        mounts.remove(next(mount for mount in mounts if mount["name"] == "gpushare"))
    path = cluster.control_plane.path("kube-scheduler.json")
    with open(path, "w", encoding="ascii") as out:
        json.dump(before, out)
    with open(os.path.join(ROOT, "config/kubeadm/kube-scheduler+json.yaml"), encoding="utf-8") as text:
        patched = kubectl("patch", "--local", "--type=json", "-p", text.read(), "-o", "json", "-f", path)
    check(json.loads(patched) == wanted, "the patch does not give the example")


def body():
    with Cluster(scheduler=None, extender=False) as cluster:
        cluster.control_plane.apply("base/namespace/namespace.yaml")
        check(EXTENDER_NAMESPACE in cluster.control_plane.kubectl("get", "namespaces"), "namespace")
        check_overlays(cluster)
        check_settled(cluster)
        check_policies(cluster)
        check_kubeadm_patch(cluster)


run(body)
