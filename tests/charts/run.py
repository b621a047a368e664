#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart renders to the same objects as the overlays, refuses values that its schema does not
know, documents every value, and prints what is left to do by hand.

    tests/charts/run.py FOLDER_WITH_HELM_AND_KUSTOMIZE
"""

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
CHART = os.path.join(ROOT, "manifests/chart")
NAMESPACE = "gpushare-system"

# overlay, --set of the chart, Kubernetes release: they have to give the same objects
SAME = (
    ("kubeadm", ["layout=kubeadm"], "1.32.0"),
    ("ha-mtls", ["layout=haMtls"], "1.32.0"),
    ("original-nodeport", ["layout=originalNodePort"], "1.32.0"),
    ("second-scheduler", ["layout=secondScheduler"], "1.32.0"),
    ("second-scheduler", [], "1.32.0-gke.100"),
    ("second-scheduler-v1beta1", [], "1.20.2"),
)

NODES = ["networkPolicy.enabled=true", "networkPolicy.nodes={192.0.2.0/24}"]

# --set, kind, the file that has the same objects of that kind and perhaps more
OPTIONAL = (
    (["podMonitor.enabled=true"], "PodMonitor", "monitoring/podmonitor.yaml"),
    (["prometheusRule.enabled=true"], "PrometheusRule", "monitoring/prometheusrule.yaml"),
    (["disruptionBudget=true"], "PodDisruptionBudget", "policies/disruption-budget.yaml"),
    (["disruptionBudget=true", "layout=haMtls"], "PodDisruptionBudget",
     "policies/disruption-budget.yaml"),
)

# --set, kinds, the folder that has the same objects of these kinds and no others (without those whose
# names are given: of another layout)
WHOLE = (
    (["admissionPolicies.denyPods=true"], ("ValidatingAdmissionPolicy",
     "ValidatingAdmissionPolicyBinding"), "policies", ()),
    (["admissionPolicies.enabled=false", "admissionPolicies.schedulerNames={gpushare-scheduler}"], ("ValidatingAdmissionPolicy",
     "ValidatingAdmissionPolicyBinding"), "policies/scheduler-name", ()),
    ([*NODES, "layout=secondScheduler"], ("NetworkPolicy",), "network-policies",
     ("gpushare-extender",)),
    ([*NODES, "layout=haMtls"], ("NetworkPolicy",), "network-policies", ("gpushare-scheduler",)),
    ([*NODES, "layout=originalNodePort"], ("NetworkPolicy",), "network-policies",
     ("gpushare-scheduler",)),
    ([*NODES, "layout=kubeadm"], ("NetworkPolicy",), "network-policies",
     ("gpushare-scheduler", "gpushare-extender")),
)

# --set, template, the folder that has the same objects
ALONE = (
    (["web.enabled=true"], "templates/web.yaml", "web"),
)

# what manifests/policies/parameters makes of these is what the chart makes of those
PARAMETERS = ("namespace=\"'gpushare-system'\"", "domain=\"'example.com'\"",
              "schedulerNames=['one', 'two']")
PARAMETER_VALUES = ["admissionPolicies.denyPods=true", "domain=example.com",
                    "admissionPolicies.schedulerNames={one,two}",
                    "admissionPolicies.setSchedulerName=true"]

# Values of one object that every workload takes, and what of them is in its own manifest. {0}: extender or
# devicePlugin.
EVERYWHERE = (
    ("{0}.nodeSelector.pool=a", "pool: a"),
    ("{0}.affinity.nodeAffinity.x=b", "x: b"),
    ("{0}.tolerations[0].key=mine", "- key: mine"),
    ("{0}.priorityClassName=mine", "priorityClassName: mine"),
    ("{0}.annotations.of=workload", "of: workload"),
    ("{0}.podLabels.of=pod", "of: pod"),
    ("{0}.podAnnotations.team=ml", "team: ml"),
    ("{0}.logLevel=debug", "- --log-level=debug"),
    ("{0}.resources.limits.memory=7Gi", "memory: 7Gi"),
    ("{0}.extraArgs={{--config=/x}}", '- "--config=/x"'),
    ("labels.of=all", "of: all"),
)
# layout, its workload's template
WORKLOADS = (
    ("kubeadm", "extender-daemonset.yaml", "extender"),
    ("haMtls", "extender-deployment.yaml", "extender"),
    ("originalNodePort", "extender-deployment.yaml", "extender"),
    ("secondScheduler", "scheduler-deployment.yaml", "extender"),
    ("secondScheduler", "device-plugin.yaml", "devicePlugin"),
    ("secondScheduler", "web.yaml", "web"),
)
# The CLI writes no log, and has no more flags here.
NOT_OF_WEB = ("{0}.logLevel=debug", "{0}.extraArgs={{--config=/x}}")

# layout, what "helm test" waits for
TESTED = (
    ("kubeadm", "daemonset/gpushare-extender"),
    ("haMtls", "deployment/gpushare-extender"),
    ("originalNodePort", "deployment/gpushare-extender"),
    ("secondScheduler", "deployment/gpushare-scheduler"),
)

# --set, what must be in the rendered text
SHOWN = (
    (["podMonitor.enabled=true", "podMonitor.labels.release=prom"], "release: prom"),
    (["podMonitor.enabled=true", "podMonitor.interval=30s"], "interval: 30s"),
    (["prometheusRule.enabled=true", "prometheusRule.labels.release=prom"], "release: prom"),
    (["prometheusRule.enabled=true", "prometheusRule.runbooks=https://wiki.example.com/"],
     "runbook_url: https://wiki.example.com/troubleshooting.md#gpusharenoleader\n"),
    (["dashboard.enabled=true"], "grafana_dashboard: \"1\""),
    (["kubeScheduler.logLevel=4"], "- --v=4"),
    (["kubectl.repository=registry.example.com/kubectl", "kubectl.tag=v1"],
     "image: registry.example.com/kubectl:v1\n"),
    ([], "image: registry.k8s.io/kubectl:v1.32.0\n"),
    (["layout=secondScheduler", "domain=example.com"], "--domain=example.com"),
    (["layout=secondScheduler", "domain=example.com"], "- name: example.com/gpu-mem"),
    (["layout=kubeadm", "extender.policy=spread"], "--policy=spread"),
    (["layout=kubeadm", "extender.filterNames=one"], "--filter-names=one"),
    (["layout=kubeadm", "extender.nominate=false"], "--nominate=false"),
    (["layout=kubeadm"], "resources: [pods/status]"),
    (["layout=secondScheduler", "extender.nominate=false"], "percentageOfNodesToScore: 100\n"),
    (["layout=haMtls", "image.repository=registry.example.com/x", "image.tag=v7"],
     "registry.example.com/x/gpushare-extender:v7"),
    (["layout=haMtls", "tlsAllowedNames={a,b}"], "--tls-allowed-cn=a,b"),
    (["devicePlugin.runtimeClassName=nvidia"], "runtimeClassName: nvidia"),
    (["devicePlugin.extraArgs={--fake-gpus=1x1GiB}"], "--fake-gpus=1x1GiB"),
    (["devicePlugin.deviceListStrategy=cdi-annotations\\,cdi-cri"],
     '- {name: DEVICE_LIST_STRATEGY, value: "cdi-annotations,cdi-cri"}'),
    (["devicePlugin.passDeviceSpecs=true"], '- {name: PASS_DEVICE_SPECS, value: "true"}'),
    (["devicePlugin.enforce=off"], '- {name: ENFORCE, value: "off"}'),
    (["devicePlugin.enforceBy=driver"], "add: [SYS_ADMIN]"),
    (["devicePlugin.podUsage=true"], '- {name: POD_USAGE, value: "on"}'),
    (["devicePlugin.podUsageFrom=nvml"], "- {name: POD_USAGE_FROM, value: nvml}"),
    (["devicePlugin.cgroups=cgroupfs"], "path: /sys/fs/cgroup/kubepods, type"),
    (["devicePlugin.cgroups=systemd"], "mountPath: /host/cgroup/kubepods.slice}"),
    (["mps.enabled=true", "mps.driverRoot=/run/nvidia/driver"], "path: /run/nvidia/driver, type"),
    (["mps.enabled=true", f"image.digests.mps=sha256:{'3' * 64}"],
     f"gpushare-mps:0.1.0@sha256:{'3' * 64}\n"),
    (["mps.enabled=true"], "type: OnDelete"),
    (["mps.enabled=true", "mps.byLabel=true", "domain=example.com"], 'example.com/gpu-mps: "true"'),
    (["hook.library=/data/lib/x.so", f"hook.sha256={'a' * 64}"], "path: /data/lib, type"),
    (["hook.library=/data/lib/x.so", f"hook.sha256={'a' * 64}"], 'HOOK_LIBRARY, value: "/data/lib/x.so"'),
    (["devicePlugin.kubeletDir=/data/kubelet"], "path: /data/kubelet/device-plugins"),
    (["image.pullSecrets[0].name=mine"], "imagePullSecrets:"),
    (["image.pullPolicy=Never"], "imagePullPolicy: Never"),
    ([f"image.digests.extender=sha256:{'0' * 64}"], f"gpushare-extender:0.1.0@sha256:{'0' * 64}\n"),
    (["web.enabled=true", f"image.digests.inspect=sha256:{'2' * 64}"],
     f"kubectl-inspect-gpushare:0.1.0@sha256:{'2' * 64}\n"),
    (["web.enabled=true", "web.namespace=gpu-page"],
     "  name: gpushare-web\n  namespace: gpu-page\n"),
    (["web.enabled=true", "domain=example.com"], "- --no-token\n        - --domain=example.com"),
    ([f"image.digests.devicePlugin=sha256:{'1' * 64}"],
     f"gpushare-device-plugin:0.1.0@sha256:{'1' * 64}\n"),
    (["networkPolicy.enabled=true", "networkPolicy.nodes={192.0.2.0/24,2001:db8::/64}"],
     "- ipBlock: {cidr: 2001:db8::/64}"),
)

# component beside the second scheduler, --set of the chart: the same device plugin
LIMITS = (
    ("mps", ["mps.enabled=true"]),
    ("hook", ["hook.library=/opt/gpushare/libvgpu.so", f"hook.sha256={'0' * 64}"]),
    ("pod-usage", ["devicePlugin.podUsageFrom=auto"]),
    ("mps-labelled", ["mps.enabled=true", "mps.byLabel=true"]),
    ("limits/systemd", ["devicePlugin.enforce=preferred", "devicePlugin.cgroups=systemd"]),
    ("limits/cgroupfs", ["devicePlugin.enforce=preferred", "devicePlugin.cgroups=cgroupfs"]),
    ("limits/driver", ["devicePlugin.enforceBy=driver"]),
    ("limits/none", ["devicePlugin.enforce=off", "devicePlugin.cgroups=none"]),
)

# --set, what the schema has to say
REFUSED = (
    (["layout=other"], "layout"),
    (["devicePlugin.memoryUnit=GB"], "memoryUnit"),
    (["devicePlugin.enforce=always"], "enforce"),
    (["devicePlugin.podUsageFrom=kernel"], "podUsageFrom"),
    (["devicePlugin.deviceListStrategy=cdi"], "deviceListStrategy"),
    (["devicePlugin.cgroups=write"], "cgroups"),
    (["extender.replicas=0"], "replicas"),
    (["extender.filterNames=two"], "filterNames"),
    (["hook.sha256=abc"], "sha256"),
    (["extender.polcy=spread"], "polcy"),
    (["devicePlugin.extraArgs={fake}"], "extraArgs"),
    (["nodePort=70000"], "nodePort"),
    (["image.digests.extender=sha256:0"], "digests"),
    (["podMonitor.interval=often"], "interval"),
    (["extender.logLevel=loud"], "logLevel"),
    (["extender.nodeSelector.a=1"], "nodeSelector"),
    (["networkPolicy.enabled=true"], "networkPolicy.nodes"),
    (["web.enabled=true", f"web.namespace={NAMESPACE}"], "web.namespace"),
    (["networkPolicy.nodes={everybody}"], "/networkPolicy/nodes/0"),
    (["devicePlugin.enforce=required"], "set devicePlugin.cgroups to systemd or cgroupfs"),
    (["devicePlugin.enforce=preferred"], "set devicePlugin.cgroups to systemd or cgroupfs"),
    (["devicePlugin.enforce=preferred", "devicePlugin.cgroups=systemd", "mps.enabled=true"], "exclude mps and hook"),
    (["hook.library=/opt/x.so"], "needs hook.sha256"),
    (["mps.byLabel=true"], "needs mps.enabled"),
)

# layout, what the notes must name: the steps by hand
NOTES = (
    ("kubeadm", ("kubeadm init phase control-plane scheduler", "kube-scheduler-static-pod.yaml",
                 "kubectl label node NODE gpushare=true", "kubeadm join --control-plane",
                 "--reuse-values --set admissionPolicies.denyPods=true")),
    ("secondScheduler", ("schedulerName: gpushare-scheduler",)),
    ("haMtls", ("scripts/extender_certificates.sh", "/etc/kubernetes/gpushare/")),
    ("originalNodePort", ("WARNING", "32766")),
)


class Tools:
    def __init__(self, folder):
        self.folder = folder

    def run(self, program, *args):
        done = subprocess.run([os.path.join(self.folder, program), *args], capture_output=True,
                              text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def must(self, program, *args):
        code, out, err = self.run(program, *args)
        if code:
            raise RuntimeError(f"{program} {' '.join(args)}: {err.strip()}")
        return out

    def template(self, values, release="1.32.0", only=None):
        sets = [word for value in values for word in ("--set", value)]
        sets += ["--show-only", only] if only else []
        return self.run("helm", "template", "gpushare", CHART, "--namespace", NAMESPACE,
                        "--kube-version", release, *sets)

    def notes(self, layout, domain="aliyun.com"):
        """Helm prints them after an installation only, so a copy of the chart shows them in an
        object."""
        with tempfile.TemporaryDirectory() as folder:
            chart = os.path.join(folder, "gpushare")
            shutil.copytree(CHART, chart)
            templates = os.path.join(chart, "templates")
            with open(os.path.join(templates, "NOTES.txt"), encoding="utf-8") as text:
                define = '{{ define "notes" }}' + text.read() + "{{ end }}"
            with open(os.path.join(templates, "_notes.tpl"), "w", encoding="utf-8") as out:
                out.write(define)
            with open(os.path.join(templates, "notes.yaml"), "w", encoding="utf-8") as out:
                out.write('{kind: Notes, apiVersion: v1, notes: {{ include "notes" . | quote }}}')
            return yaml.safe_load(self.must(
                "helm", "template", "gpushare", chart, "--namespace", NAMESPACE, "--set",
                f"layout={layout},domain={domain}", "--show-only", "templates/notes.yaml"))["notes"]


def without_empty(value):
    """kustomize leaves empty lists where a patch removed the last entry."""
    if isinstance(value, dict):
        return {key: without_empty(one) for key, one in value.items() if one not in ([], None)}
    if isinstance(value, list):
        return [without_empty(one) for one in value]
    return value


# Only Helm writes these.
HELM_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by")


def normal(item):
    item = without_empty(item)
    for label in HELM_LABELS:
        item["metadata"].get("labels", {}).pop(label, None)
    if not item["metadata"].get("labels", True):
        del item["metadata"]["labels"]
    if "config.yaml" in item.get("data", {}):  # with comments or without
        item["data"]["config.yaml"] = yaml.safe_load(item["data"]["config.yaml"])
    template = item.get("spec", {}).get("template", {}).get("metadata", {})
    if template.get("annotations", {}).pop("checksum/config", None) and not template["annotations"]:
        del template["annotations"]
    return item


def is_test(item):
    return "helm.sh/hook" in item["metadata"].get("annotations", {})


def objects(text):
    """By kind and name. The namespace is Helm's to make (--create-namespace). Kustomize ends the name of
    the scheduler's configuration in a hash, where Helm annotates the pods."""
    found = {}
    text = re.sub(r"\bgpushare-scheduler-config-[a-z0-9]{10}\b", "gpushare-scheduler", text)
    for item in yaml.safe_load_all(text):
        if item and item["kind"] != "Namespace" and not is_test(item):
            key = (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])
            if key in found:
                raise RuntimeError(f"{key} twice")
            found[key] = normal(item)
    return found


def differences(ours, theirs):
    wrong = [f"only in {where}: {' '.join(key)}"
             for one, other, where in ((ours, theirs, "chart"), (theirs, ours, "overlay"))
             for key in one if key not in other]
    for key in sorted(set(ours) & set(theirs)):
        lines = [yaml.safe_dump(one[key]).splitlines() for one in (theirs, ours)]
        changed = [line for line in difflib.unified_diff(*lines, "overlay", "chart", n=1, lineterm="")]
        if changed:
            wrong.append(f"{' '.join(key)}:\n" + "\n".join(changed))
    return wrong


def same_objects(tools):
    for overlay, values, release in SAME:
        code, text, err = tools.template([*values, "admissionPolicies.enabled=false"], release)
        if code:
            yield f"{overlay}: {err.strip()}"
            continue
        chart = objects(text)
        kustomized = objects(tools.must("kustomize", "build",
                                        os.path.join(ROOT, "manifests/overlays", overlay)))
        yield from (f"{overlay}, {values}: {what}" for what in differences(chart, kustomized))


def by_name(daemonset):
    """Where kustomize puts what a patch adds, and the option that is without effect beside "off"."""
    spec = daemonset["spec"]["template"]["spec"]
    container = spec["containers"][0]
    container["args"] = [arg for arg in container["args"] if not arg.startswith("--cgroup-root")]
    container["env"].sort(key=lambda one: one["name"])
    container["volumeMounts"].sort(key=lambda one: one["name"])
    spec["volumes"].sort(key=lambda one: one["name"])
    return daemonset


def limits(tools):
    for component, values in LIMITS:
        with tempfile.TemporaryDirectory() as folder:
            manifests = os.path.relpath(os.path.join(ROOT, "manifests"), os.path.realpath(folder))
            with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as out:
                json.dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                           "resources": [f"{manifests}/overlays/second-scheduler"],
                           "components": [f"{manifests}/{component}"]}, out)
            theirs = tools.must("kustomize", "build", folder)
        code, text, err = tools.template(values)
        if code:
            yield f"{values}: {err.strip()}"
            continue
        both = [{key: by_name(one) for key, one in of_kinds(made, ("DaemonSet",)).items()}
                for made in (text, theirs)]
        yield from (f"{component}: {what}" for what in differences(*both))


def optional(tools):
    for values, kind, name in OPTIONAL:
        with open(os.path.join(ROOT, "manifests", name), encoding="utf-8") as text:
            ours = objects(text.read())
        code, text, err = tools.template(values)
        found = {key: one for key, one in ({} if code else objects(text)).items() if key[0] == kind}
        if not found:
            yield f"{values}: no {kind} {err.strip()}"
        yield from (f"{values}: {what}" for what in differences(
            found, {key: one for key, one in ours.items() if key in found}))


def of_kinds(text, kinds):
    return {key: one for key, one in objects(text).items() if key[0] in kinds}


def whole(tools):
    for values, kinds, folder, others in WHOLE:
        code, text, err = tools.template(values)
        if code:
            yield f"{values}: {err.strip()}"
            continue
        theirs = of_kinds(tools.must("kustomize", "build", os.path.join(ROOT, "manifests", folder)),
                          kinds)
        yield from (f"{values}: {what}" for what in differences(
            of_kinds(text, kinds), {key: one for key, one in theirs.items() if key[2] not in others}))


def alone(tools):
    for values, template, folder in ALONE:
        code, text, err = tools.template(values, only=template)
        theirs = tools.must("kustomize", "build", os.path.join(ROOT, "manifests", folder))
        if code:
            yield f"{values}: {err.strip()}"
        else:
            yield from (f"{values}: {what}" for what in differences(objects(text), objects(theirs)))


def parametrised(tools):
    kinds = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
    with tempfile.TemporaryDirectory() as folder:
        policies = os.path.relpath(os.path.join(ROOT, "manifests/policies"), os.path.realpath(folder))
        with open(os.path.join(folder, "set.yaml"), "w", encoding="utf-8") as out:
            with open(os.path.join(ROOT, "manifests/policies/scheduler-name/set.yaml"),
                      encoding="utf-8") as text:
                out.write(text.read())
        with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as out:
            json.dump({
                "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                "resources": [policies, f"{policies}/scheduler-name", "set.yaml"],
                "components": [f"{policies}/parameters"],
                "configMapGenerator": [{
                    "name": "gpushare-policies", "literals": PARAMETERS, "options": {"annotations": {
                        "config.kubernetes.io/local-config": "true"}}}]}, out)
        theirs = tools.must("kustomize", "build", folder)
    code, text, err = tools.template(PARAMETER_VALUES)
    if code:
        yield err.strip()
        return
    for left in ("aliyun.com", "kind: ConfigMap"):
        if left in theirs:
            yield f"{left} is left in what the parameters make"
    yield from differences(of_kinds(text, kinds), of_kinds(theirs, kinds))


def shown(tools):
    for values, wanted in SHOWN:
        code, text, err = tools.template(values)
        if code or wanted not in text:
            yield f"{values}: no '{wanted}' {err.strip()}"


def everywhere(tools):
    for layout, template, key in WORKLOADS:
        for value, wanted in EVERYWHERE:
            if key == "web" and value in NOT_OF_WEB:
                continue
            code, text, err = tools.template([f"layout={layout}", "web.enabled=true", value.format(key)],
                                             only=f"templates/{template}")
            if code or wanted not in text:
                yield f"{layout}, {value.format(key)}: no '{wanted}' in {template} {err.strip()}"


def tested(tools):
    for layout, workload in TESTED:
        code, text, err = tools.template([f"layout={layout}"], only="templates/tests/ready.yaml")
        items = [] if code else list(yaml.safe_load_all(text))
        commands = [" ".join(one["command"]) for item in items if item["kind"] == "Pod"
                    for one in item["spec"]["containers"]]
        for what in (workload, "daemonset/gpushare-device-plugin"):
            if sum(f" {what} " in command for command in commands) != 1:
                yield f"{layout}: helm test does not wait for {what} {err.strip()}"
        yield from (f"{item['kind']} of helm test is not its hook" for item in items
                    if not is_test(item))


def every_value(_):
    """tests/charts/every-value.yaml, which the end-to-end case chart_values takes, leaves no default."""
    with open(os.path.join(CHART, "values.yaml"), encoding="utf-8") as text:
        values = yaml.safe_load(text)
    with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as text:
        schema = json.load(text)
    with open(os.path.join(ROOT, "tests/charts/every-value.yaml"), encoding="utf-8") as text:
        others = yaml.safe_load(text)
    for path, _ in leaves(values, schema):
        default, other = values, others
        for key in path.split("."):
            default, other = default[key], (other or {}).get(key)
        if other is None or other == default:
            yield f"every-value.yaml leaves {path} at its default"


def refused(tools):
    for values, wanted in REFUSED:
        code, _, err = tools.template(values)
        if code == 0 or wanted not in err:
            yield f"{values} is taken, or '{wanted}' is not named: {err.strip()}"


def notes(tools):
    for layout, wanted in NOTES:
        text = tools.notes(layout)
        yield from (f"notes of {layout} do not name '{word}'" for word in wanted if word not in text)
        for domain, spoken in (("aliyun.com", False), ("example.com", layout != "secondScheduler")):
            if ("managedResources" in tools.notes(layout, domain)) != spoken:
                yield f"notes of {layout}: managedResources, domain {domain}"


def lint(tools):
    for layout in {values[0] for _, values, _ in SAME if values}:
        code, out, _ = tools.run("helm", "lint", "--strict", CHART, "--set", layout)
        if code:
            yield f"helm lint, {layout}: {out.strip()}"


def version(_):
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as text:
        wanted = re.search(r"project\(gpushare VERSION ([0-9.]+)", text.read()).group(1)
    with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as text:
        chart = yaml.safe_load(text)
    for key in ("version", "appVersion"):
        if chart[key] != wanted:
            yield f"Chart.yaml: {key} is {chart[key]}, the project's version {wanted}"


def leaves(value, schema, path=""):
    """Values that an operator sets, with their schema; a free-form object is one value."""
    if "properties" not in schema:
        yield path, schema
        return
    for key, one in value.items():
        yield from leaves(one, schema["properties"].get(key, {}), f"{path}.{key}" if path else key)


def documented(_):
    """Every value has a schema and a comment above it; every one in the schema exists."""
    with open(os.path.join(CHART, "values.yaml"), encoding="utf-8") as text:
        lines = text.read()
    with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as text:
        schema = json.load(text)
    values = yaml.safe_load(lines)
    for path, found in leaves(values, schema):
        name = path.rpartition(".")[2]
        if not found:
            yield f"{path} is not in values.schema.json"
        if not re.search(rf"^ *# --[^\n]*\n(?: *#[^\n]*\n)* *{name}:", lines, re.M) and \
                name != "resources":
            yield f"values.yaml does not explain {path}"
    for key, one in schema["properties"].items():
        if key != "global" and key not in values:
            yield f"{key} is in the schema only"
        for sub in one.get("properties", {}):
            if key in values and sub not in values[key]:
                yield f"{key}.{sub} is in the schema only"


def main():
    tools = Tools(sys.argv[1])
    failures = 0
    for test in (lint, version, documented, same_objects, limits, optional, whole, alone, parametrised,
                 shown, everywhere, tested, every_value, refused, notes):
        for wrong in test(tools):
            print(f"FAIL {test.__name__}: {wrong}")
            failures += 1
    print(f"{len(SAME)} overlays compared, {len(SHOWN)} values shown, {len(REFUSED)} refused")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
