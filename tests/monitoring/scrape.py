#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people see in Prometheus: a real one scrapes a real extender and a real device plugin of a
cluster with ten namespaces, and every query of ours has rows there.

    scrape.py BUILD PROMETHEUS       20 s

Once as the Prometheus operator makes of manifests/monitoring/podmonitor.yaml, once with the
configuration of docs/operate.md. Asked are the dashboard's panels with everything chosen, the
queries of docs/operate.md, and each selector of the alerts: an alert shall be silent, and not
because nobody has its series. Namespaces are tenants', and a plugin's instance is its node.

The operator's part: prometheus-operator, pkg/prometheus/promcfg.go, generatePodMonitorConfig().
"""

import http.server
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness.processes import free_port  # noqa: E402

MONITORING = os.path.join(ROOT, "manifests", "monitoring")
TEAMS = [f"team-{number}" for number in range(10)]
NODE = "gpu-node-0"
GIB = 1 << 30
PERIOD = "20s"
LIMIT_S = 60


def get(url, data=None):
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def until(what, fn, seconds=LIMIT_S):
    deadline = time.monotonic() + seconds
    while True:
        try:
            value = fn()
        except (OSError, KeyError, IndexError, ValueError):
            value = None
        if value:
            return value
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.2)


# --- the cluster ---

def inventory():
    gpus = [{"idx": idx, "uuid": f"GPU-{idx}", "mem": 40, "memMiB": 40960, "model": "A100",
             "healthy": idx != 1, "schedulable": True} for idx in range(2)]
    return json.dumps({"v": 1, "unit": "GiB", "gpus": gpus})


def node(name):
    size = {"aliyun.com/gpu-mem": "80", "aliyun.com/gpu-count": "2", "cpu": "64", "pods": "250"}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"gpushare": "true"},
                         "annotations": {"aliyun.com/gpu-inventory": inventory()}},
            "status": {"capacity": size, "allocatable": size,
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(namespace, name, units, where=None):
    made = {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": {}},
            "spec": {"schedulerName": "default-scheduler", "containers": [
                {"name": "main", "image": "i",
                 "resources": {"limits": {"aliyun.com/gpu-mem": str(units)}}}]},
            "status": {"phase": "Pending"}}
    if where:
        made["spec"]["nodeName"] = where
        made["status"]["phase"] = "Running"
        made["metadata"]["annotations"] = {
            "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
            "ALIYUN_COM_GPU_MEM_POD": str(units), "ALIYUN_COM_GPU_MEM_DEV": "40",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"}
    return made


def objects():
    made = [node(NODE), node("gpu-node-1")]
    for team in TEAMS:
        made += [pod(team, "serve", 2, NODE), pod(team, "train", 2, "gpu-node-1")]
    return made + [pod(TEAMS[0], "waits", 30)]


class Beside(http.server.BaseHTTPRequestHandler):
    """The plugin's page, and what only a driver and a kernel with dmem add to it: the same pods."""
    plugin = 0

    def do_GET(self):
        page = get(f"http://127.0.0.1:{self.plugin}{self.path}")
        for labels in re.findall(r"^gpushare_device_plugin_pod_gpu_info\{(.*)\} 1$", page, re.M):
            of_pod = ",".join(re.findall(r'(?:namespace|pod|gpu|owner)="[^"]*"', labels))
            for what, size in (("allocated", 2), ("used", 1), ("peak", 1)):
                page += (f"gpushare_device_plugin_pod_gpu_memory_{what}_bytes{{{of_pod}}} "
                         f"{size * GIB}\n")
        for name in ("used", "used_by_pods"):
            page += f'gpushare_device_plugin_gpu_memory_{name}_bytes{{gpu="0"}} {20 * GIB}\n'
        page += 'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-0"} 50\n'
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass


class World:
    def __init__(self, build, folder):
        self.build, self.folder, self.processes = build, folder, []

    def start(self, program, *args):
        with open(os.path.join(self.folder, os.path.basename(program) + ".log"), "wb") as log:
            self.processes.append(subprocess.Popen([program, *args], stdin=subprocess.DEVNULL,
                                                   stdout=log, stderr=log))

    def ours(self, name, *args):
        self.start(os.path.join(self.build, name), *args)

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(20)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start_all(self):
        """Returns the pods of gpushare-system as Prometheus' discovery would find them."""
        with open(self.path("cluster.json"), "w", encoding="utf-8") as out:
            json.dump({"apiVersion": "v1", "kind": "List", "items": objects()}, out)
        with open(self.path("gpus.json"), "w", encoding="utf-8") as out:
            out.write(inventory())
        kubeconfig = self.path("kubeconfig")
        self.ours("gpushare-sim", "serve", "--listen=127.0.0.1:0", f"--load={self.path('cluster.json')}",
                  f"--kubeconfig-out={kubeconfig}")
        until("the API server", lambda: os.path.getsize(kubeconfig))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
                        "-subj", "/CN=localhost", "-keyout", self.path("key"), "-out",
                        self.path("cert")], check=True, capture_output=True)
        verbs, health, http_port = free_port(), free_port(), free_port()
        self.ours("gpushare-extender", f"--kubeconfig={kubeconfig}", f"--listen=127.0.0.1:{verbs}",
                  f"--health-listen=127.0.0.1:{health}", f"--tls-cert={self.path('cert')}",
                  f"--tls-key={self.path('key')}")
        self.verbs = verbs
        os.makedirs(self.path("plugins"))
        self.ours("gpushare-device-plugin", f"--kubeconfig={kubeconfig}", f"--node-name={NODE}",
                  f"--gpu-file={self.path('gpus.json')}", f"--device-plugin-dir={self.path('plugins')}",
                  f"--health-listen=127.0.0.1:{http_port}", "--pod-usage=on")
        until("the extender's ledger", lambda: "gpushare_memory_stranded_bytes" in
              get(f"http://127.0.0.1:{health}/metrics"))
        until("the plugin's pods", lambda: "gpushare_device_plugin_pod_gpu_info{" in
              get(f"http://127.0.0.1:{http_port}/metrics"))
        Beside.plugin = http_port
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Beside)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return [{"app": "gpushare-extender", "port": "health", "node": "control-plane",
                 "address": f"127.0.0.1:{health}"},
                {"app": "gpushare-device-plugin", "port": "http", "node": NODE,
                 "address": f"127.0.0.1:{server.server_port}"}]

    def ask_filter(self):
        """kube-scheduler, as far as the metrics are concerned."""
        body = json.dumps({"Pod": objects()[-1] | {"metadata": {
            "name": "waits", "namespace": TEAMS[0], "uid": "u"}}, "NodeNames": [NODE]}).encode()
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.verbs}/gpushare-scheduler/filter", body,
            {"Content-Type": "application/json"})
        context = ssl._create_unverified_context()
        for _ in range(3):
            urllib.request.urlopen(request, timeout=10, context=context).read()


# --- Prometheus ---

def found(pods):
    """What role pod of its discovery says of them."""
    return [{"targets": [pod["address"]], "labels": {
        "__meta_kubernetes_namespace": "gpushare-system",
        "__meta_kubernetes_pod_name": f"{pod['app']}-x7k2p",
        "__meta_kubernetes_pod_container_name": "main",
        "__meta_kubernetes_pod_container_port_name": pod["port"],
        "__meta_kubernetes_pod_node_name": pod["node"],
        "__meta_kubernetes_pod_phase": "Running", "__meta_kubernetes_pod_ready": "true",
        "__meta_kubernetes_pod_label_app_kubernetes_io_name": pod["app"],
        "__meta_kubernetes_pod_label_app_kubernetes_io_part_of": "gpushare"}} for pod in pods]


def snake(name):
    return re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)


def selected(selector):
    label = "__meta_kubernetes_pod_label_"
    rules = [{"action": "keep", "source_labels": [label + re.sub(r"\W", "_", name)],
              "regex": f"({value})"} for name, value in selector.get("matchLabels", {}).items()]
    for one in selector.get("matchExpressions", []):
        if one["operator"] != "In":
            raise ValueError(f"matchExpressions: {one['operator']} is not known here")
        rules.append({"action": "keep", "source_labels": [label + re.sub(r"\W", "_", one["key"])],
                      "regex": "|".join(one["values"])})
    return rules


def as_operator(pods):
    """The operator's scrape configuration of our PodMonitors."""
    jobs = []
    with open(os.path.join(MONITORING, "podmonitor.yaml"), encoding="utf-8") as text:
        monitors = list(yaml.safe_load_all(text))
    for monitor in monitors:
        for number, end in enumerate(monitor["spec"]["podMetricsEndpoints"]):
            name = f"{monitor['metadata']['namespace']}/{monitor['metadata']['name']}"
            meta = "__meta_kubernetes_"
            rules = selected(monitor["spec"]["selector"]) + [
                {"action": "drop", "source_labels": [meta + "pod_phase"],
                 "regex": "(Failed|Succeeded)"},
                {"action": "keep", "source_labels": [meta + "pod_container_port_name"],
                 "regex": end["port"]},
                {"source_labels": [meta + "namespace"], "target_label": "namespace"},
                {"source_labels": [meta + "pod_container_name"], "target_label": "container"},
                {"source_labels": [meta + "pod_name"], "target_label": "pod"},
                {"target_label": "job", "replacement": name},
                {"target_label": "endpoint", "replacement": end["port"]}]
            rules += [{snake(key): value for key, value in rule.items()}
                      for rule in end.get("relabelings", [])]
            jobs.append({"job_name": f"podMonitor/{name}/{number}",
                         "honor_labels": end.get("honorLabels", False),
                         "metrics_path": end["path"], "relabel_configs": rules,
                         "static_configs": found(pods)})
    return jobs


def as_documented(pods):
    """The scrape configuration of docs/operate.md."""
    with open(os.path.join(ROOT, "docs", "operate.md"), encoding="utf-8") as text:
        blocks = re.findall(r"^```yaml\n(.*?)^```", text.read(), re.M | re.S)
    jobs = [yaml.safe_load(block) for block in blocks if "scrape_configs:" in block][0]
    for job in jobs["scrape_configs"]:
        del job["kubernetes_sd_configs"]
        job["static_configs"] = found(pods)
    return jobs["scrape_configs"]


class Prometheus:
    def __init__(self, world, program, name, jobs):
        config = world.path(f"{name}.json")
        with open(config, "w", encoding="utf-8") as out:  # JSON is YAML
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                       "scrape_configs": jobs}, out)
        self.name, self.url = name, f"http://127.0.0.1:{free_port()}"
        world.start(program, f"--config.file={config}", f"--storage.tsdb.path={world.path(name)}",
                    f"--web.listen-address={self.url[7:]}", "--log.level=warn")

    def ask(self, query):
        answer = json.loads(get(f"{self.url}/api/v1/query?" + urllib.parse.urlencode(
            {"query": query})))
        return answer["data"]["result"]

    def values(self, selector, label):
        return sorted({row["metric"].get(label, "") for row in self.ask(selector)})


# --- what is asked ---

def panels(prometheus):
    """(title, query) of each, every value of every variable chosen, as Grafana fills it in."""
    with open(os.path.join(MONITORING, "dashboard.json"), encoding="utf-8") as text:
        board = json.load(text)
    chosen = {"__rate_interval": PERIOD}
    for variable in board["templating"]["list"]:
        if variable["type"] == "datasource":
            continue
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
        values = prometheus.values(fill(selector, chosen), label)
        chosen[variable["name"]] = ".*" if values == [""] else "|".join(values)
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", fill(target["expr"], chosen)


def fill(query, chosen):
    return re.sub(r"\$(\w+)", lambda match: chosen[match[1]], query)


SELECTOR = re.compile(r"\b(gpushare_\w+)(\{[^}]*\})?(?:\[\w+\])?")


def alerts():
    with open(os.path.join(MONITORING, "rules.yaml"), encoding="utf-8") as text:
        rules = yaml.safe_load(text)["groups"]
    for rule in (rule for group in rules for rule in group["rules"] if "alert" in rule):
        for name, labels in SELECTOR.findall(rule["expr"]):
            yield f"alert {rule['alert']}", name + labels


def documented(prometheus):
    with open(os.path.join(ROOT, "docs", "operate.md"), encoding="utf-8") as text:
        table = re.search(r"^\| question \| query \|\n(.*?)\n\n", text.read(), re.M | re.S)[1]
    replica = prometheus.values("gpushare_ready", "instance")[0]
    for line in table.splitlines()[1:]:
        question, answer = line.strip("| ").split(" | ", 1)
        for query in re.findall(r"`(.*?)`", answer):
            if "…" not in query.replace('="…"', ""):
                query = query.replace('"…"', f'"{replica}"')
                yield f"docs: {question}", re.sub(r"\[\d+d\]", f"[{PERIOD}]", query)


def problems(prometheus):
    if prometheus.values("gpushare_device_plugin_registered", "instance") != [NODE]:
        yield "instance of a plugin is not its node"
    asked = [*panels(prometheus), *alerts(), *documented(prometheus)]
    for what, query in asked:
        rows = prometheus.ask(query)
        if not rows:
            yield f"{what}: no rows: {query}"
        named = {row["metric"]["namespace"] for row in rows if "namespace" in row["metric"]}
        by_pod = re.search(r"\bnamespace\b", query)
        if rows and by_pod and named != set(TEAMS):
            yield f"{what}: namespaces {sorted(named)}: {query}"
    print(f"note: {prometheus.name}: {len(asked)} queries", file=sys.stderr)


def main():
    build, program = sys.argv[1:]
    bad = []
    with tempfile.TemporaryDirectory(prefix="scrape.") as folder:
        world = World(build, folder)
        try:
            pods = world.start_all()
            servers = [Prometheus(world, program, "operator", as_operator(pods)),
                       Prometheus(world, program, "documented", as_documented(pods))]
            for server in servers:
                until(f"two targets of {server.name}", lambda server=server:
                      len([1 for row in server.ask("up") if row["value"][1] == "1"]) == 2)
            for _ in range(5):
                world.ask_filter()
                time.sleep(1)
            for server in servers:
                bad += [f"{server.name}: {problem}" for problem in problems(server)]
        finally:
            world.stop()
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
