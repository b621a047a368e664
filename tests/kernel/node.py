#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real device plugin on a kernel with dmem: GPUs from a file with the mock driver's PCI
addresses, the kubelet's calls from a fake one, pods as processes in the tree that a kubelet makes.

  node.py BUILD      one line per promise, PASS or FAIL"""

import http.server
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import node_world
from node_world import IDX, PODS, Api, Kubelet, Plugin, wait_for

ROOT = "/sys/fs/cgroup"
PODS_SLICE = f"{ROOT}/kubepods.slice"
GIB = 1 << 30
PCI = ["0000:41:00.0", "0000:c1:00.0"]
REGIONS = ["nvidia/0000:41:00/vidmem", "nvidia/0000:c1:00/vidmem"]
STATIC = "0123456789abcdef0123456789abcdef"
PAGES = "127.0.0.1:29998"
CLASSES = {"Guaranteed": "", "Burstable": "-burstable", "BestEffort": "-besteffort"}
# one process of a container: a GPU's commands in, what became of each out
USER = ('echo $$ >"$1/cgroup.procs"; exec 3<>"/dev/fakegpu$2"; echo ready; while read -r line; do '
        'if echo "$line" >&3; then echo given; else echo refused; fi 2>/dev/null; done')
FAILED = []


def check(true, words):
    print(("PASS  " if true else "FAIL  ") + words, flush=True)
    if not true:
        FAILED.append(words)


def in_time(true, words, seconds=60):
    try:
        wait_for(words, true, seconds)
        check(True, words)
    except AssertionError:
        check(False, words)


def put(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def get(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


class User:
    def __init__(self, folder, gpu=0):
        self.process = subprocess.Popen(["bash", "-c", USER, "bash", folder, str(gpu)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.process.stdout.readline()

    def do(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def take(self, gib):
        return self.do(f"charge {int(gib * GIB)}")

    def give_back(self):
        return self.do("uncharge")

    def end(self):
        self.process.kill()
        self.process.wait()


class Pod:
    """A pod of the kubelet's: admitted, with a cgroup, and processes in its containers."""

    def __init__(self, node, name, gib, gpu=0, qos="Burstable", static=False, insists=False):
        self.node, self.name = node, name
        notes = {IDX: str(gpu), node_world.ASSIGNED: "false"}
        notes.update({"kubernetes.io/config.mirror": STATIC} if static else {})
        notes.update({"aliyun.com/gpu-enforce": "required"} if insists else {})
        self.uid = node.api.request("POST", PODS, {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "d", "annotations": notes},
            "spec": {"nodeName": "n1", "containers": [
                {"name": "first", "image": "i"},
                {"name": "c", "image": "i",
                 "resources": {"limits": {node_world.RESOURCE: str(gib)}}}]},
            "status": {"qosClass": qos}})["metadata"]["uid"]
        if not node.api.request("GET", f"{PODS}/{name}").get("status", {}).get("qosClass"):
            node.api.patch(f"{PODS}/{name}/status", {"status": {"qosClass": qos}})
        middle = CLASSES[qos]
        above = f"{PODS_SLICE}/kubepods{middle}.slice" if middle else PODS_SLICE
        cgroup_uid = (STATIC if static else self.uid).replace("-", "_")
        self.folder = f"{above}/kubepods{middle}-pod{cgroup_uid}.slice"
        self.above, self.users = above, []

    def admit(self, gib):
        answer = self.node.kubelet.admit(self.uid, self.name, [("c", gib)], lambda box: False)
        if isinstance(answer, str):
            raise AssertionError(f"{self.name}: {answer}")
        return self

    def make_cgroup(self):
        os.makedirs(self.above, exist_ok=True)
        for folder in (ROOT, PODS_SLICE, self.above):
            put(f"{folder}/cgroup.subtree_control", "+dmem")
        os.makedirs(self.folder)
        return self

    def run(self, container, gpu=0):
        folder = f"{self.folder}/cri-containerd-{container}.scope"
        os.makedirs(folder, exist_ok=True)
        user = User(folder, gpu)
        self.users.append(user)
        return user

    def run_as_crun(self, container):
        """Its program is in a cgroup below its own, where it was for a moment. The folder below."""
        user = self.run(container)
        folder = f"{self.folder}/cri-containerd-{container}.scope/container"
        os.mkdir(folder)
        time.sleep(.3)
        put(f"{folder}/cgroup.procs", str(user.process.pid))
        return folder

    def limit(self, gpu=0):
        for line in get(f"{self.folder}/dmem.max").splitlines():
            if line.startswith(REGIONS[gpu] + " "):
                return line.split()[1]
        return None

    def is_limited(self, gib, gpu=0):
        return self.limit(gpu) == str(gib * GIB)

    def start(self):
        return self.node.kubelet.start_container(self.uid, "c")

    def remove(self):
        for user in self.users:
            user.end()
        for folder, _, _ in os.walk(self.folder, topdown=False):
            for _ in range(100):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(.02)
        self.node.kubelet.forget(self.uid)
        self.node.api.delete(self.name)


class Front(http.server.BaseHTTPRequestHandler):
    """The API server as the CLI sees it: that of the simulator, and the proxy to the plugin's pod, which
    that one lacks."""

    def do_GET(self):
        proxied = self.path.partition("/proxy/")[2]
        url = f"http://{PAGES}/{proxied}" if proxied else self.server.api + self.path
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Cli:
    """Somebody with the CLI, and the pod that the plugin would run in."""

    def __init__(self, api, folder, build):
        front = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
        front.api, front.daemon_threads = api.url, True
        threading.Thread(target=front.serve_forever, daemon=True).start()
        self.command = [f"{build}/kubectl-inspect-gpushare", "--server",
                        f"http://127.0.0.1:{front.server_port}"]
        pods = "/api/v1/namespaces/gpushare-system/pods"
        api.request("POST", pods, {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "plugin", "namespace": "gpushare-system",
                         "labels": {"app.kubernetes.io/name": "gpushare-device-plugin"},
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                                              "name": "gpushare-device-plugin", "uid": "ds",
                                              "controller": True}]},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
        api.patch(f"{pods}/plugin/status", {
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}})

    def run(self, *words):
        return subprocess.run([*self.command, *words], check=False, text=True,
                              capture_output=True).stdout

    def sizes(self):
        """{pod: (given, used, peak) in GiB}; empty when the plugin did not answer in the CLI's 2 s."""
        text = self.run("pods", "--by", "pod", "-o", "json")
        return {row["name"]: tuple(row.get(key, 0) / GIB for key in
                                   ("requestedBytes", "usedBytes", "peakBytes"))
                for row in json.loads(text or '{"items":[]}')["items"]}


class Node:
    def __init__(self, build):
        self.folder = tempfile.mkdtemp(dir="/run")
        os.mkdir(f"{self.folder}/kubelet")
        os.makedirs(PODS_SLICE, exist_ok=True)
        put(f"{ROOT}/cgroup.subtree_control", "+dmem")
        self.api = Api(self.folder, build)
        self.cli = Cli(self.api, self.folder, build)
        self.kubelet = Kubelet(f"{self.folder}/kubelet", random.Random(7))
        self.plugin = Plugin(self.folder, build, self.api)
        self.command = self.plugin.command
        put(self.plugin.cards, json.dumps({"v": 1, "unit": "GiB", "gpus": [
            {"idx": i, "uuid": f"GPU-{i}", "mem": 16, "memMiB": 16384, "pci": pci,
             "model": "mock"} for i, pci in enumerate(PCI)]}))

    def start_plugin(self, mode, *more):
        self.plugin.command = self.command + [f"--enforce={mode}", f"--health-listen={PAGES}", *more]
        self.plugin.start()
        wait_for("the plugin serves", lambda: self.kubelet.devices)
        wait_for("the node's object says so", lambda: self.said(0))

    def stop_plugin(self):
        self.plugin.process.send_signal(signal.SIGTERM)
        self.plugin.process.wait(60)
        self.kubelet.devices = {}

    def said(self, gpu):
        gpus = self.api.node("gpu-inventory").get("gpus", [])
        return gpus[gpu].get("enforced") if len(gpus) > gpu else None

    def reason(self, gpu):
        return self.api.node("gpu-inventory")["gpus"][gpu].get("enforcedReason", "")

    def label(self):
        labels = self.api.request("GET", "/api/v1/nodes/n1")["metadata"].get("labels") or {}
        return labels.get("aliyun.com/gpu-enforced")

    def metric(self, name):
        with urllib.request.urlopen(f"http://{PAGES}/metrics", timeout=60) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(f"gpushare_device_plugin_{name} "):
                    return int(float(line.split()[-1]))
        return None

    def usage(self):
        with urllib.request.urlopen(f"http://{PAGES}/usage", timeout=60) as answer:
            return json.load(answer)

    def used(self, name, gpu=0):
        """(given, used, peak) in GiB; None: nobody is named, or that pod is not."""
        for pod in self.usage().get("pods", []):
            for use in pod["gpus"]:
                if (pod["name"], use["id"]) == (name, gpu) and "usedBytes" in use:
                    return tuple(x / GIB for x in (pod["allocatedBytes"], use["usedBytes"],
                                                   use["peakBytes"]))
        return None

    def events(self, reason):
        items = self.api.request("GET", "/api/v1/namespaces/d/events").get("items", [])
        return [e["message"] for e in items if e.get("reason") == reason]


def preferred(node):
    print("\n== preferred", flush=True)
    node.start_plugin("preferred", "--pod-usage=on")
    in_time(lambda: node.said(0) == node.said(1) == "dmem", "the inventory says dmem of both GPUs")
    in_time(lambda: node.label() == "dmem", "the node has the label")
    pod = Pod(node, "a", 4).admit(4).make_cgroup()
    in_time(lambda: pod.is_limited(4), "its limit stands before any of its processes", 20)
    first = pod.run("first")
    check(first.take(5) == "refused", "a first container without gpu-mem is refused 5 of 4 GiB")
    check(first.take(3) == "given", "it is given 3")
    check(pod.start() is None, "PreStartContainer lets the other start")
    other = pod.run("c")
    check(other.take(2) == "refused" and other.take(1) == "given",
          "both share one limit: 1 GiB is given, 2 are not")
    in_time(lambda: f"{REGIONS[0]} {4 * GIB}\n" in get(f"{pod.folder}/cri-containerd-c.scope/dmem.max"),
            "the container's own cgroup shows the limit: a program takes it for the GPU's size", 20)
    below = pod.run_as_crun("crun")
    in_time(lambda: f"{REGIONS[0]} {4 * GIB}\n" in get(f"{below}/dmem.max"),
            "so does the one that crun makes below, though its program was above it for a moment", 20)
    neighbour = Pod(node, "b", 8, qos="Guaranteed").admit(8).make_cgroup()
    in_time(lambda: neighbour.is_limited(8), "a Guaranteed neighbour is limited, too", 20)
    check(neighbour.run("c").take(8) == "given", "it takes its 8 GiB beside")
    static = Pod(node, "s", 2, gpu=1, qos="BestEffort", static=True).admit(2).make_cgroup()
    in_time(lambda: static.limit(1) == str(2 * GIB), "a static pod, by its hash", 20)
    in_time(lambda: node.metric('pods_by_limit{state="limited"}') == 3, "the pages tell: 3 held")
    in_time(lambda: node.used("a") == (4, 4, 4) and node.used("b") == (8, 8, 8) and
            node.used("s", 1) == (2, 0, 0), "and what each was given, uses and ever used")
    in_time(lambda: node.cli.sizes() == {"a": (4, 4, 4), "b": (8, 8, 8), "s": (2, 0, 0)},
            "so does the CLI, through the API server")
    first.give_back()
    in_time(lambda: node.used("a") == (4, 1, 4), "less is used, the most stays")
    first.take(3)
    return pod, neighbour, static


def killed(node, pods):
    pod, neighbour, static = pods
    print("\n== the plugin is killed", flush=True)
    node.plugin.kill()
    node.kubelet.devices = {}
    check(pod.users[1].take(1) == "refused", "without it the limit stands")
    late = Pod(node, "late", 4, gpu=1)
    late.make_cgroup()
    node.start_plugin("preferred", "--pod-usage=on")
    in_time(lambda: late.limit(1) == str(4 * GIB), "a pod made meanwhile is limited when it is back")
    in_time(lambda: node.used("b") == (8, 8, 8), "the pages tell what pods use, as before")
    check(pod.is_limited(4) and neighbour.is_limited(8), "those that run keep their limits")
    late.remove()


def lost(node, pods):
    pod, neighbour, static = pods
    print("\n== the driver lets go of a GPU and takes it again", flush=True)
    for used in (pod, neighbour):
        for user in used.users:
            user.end()
    driver = User(ROOT)
    check(driver.do("unregister") == "given" and driver.do("register") == "given", "it does")
    check(pod.limit() == "max", "the limit is gone")
    in_time(lambda: pod.is_limited(4) and neighbour.is_limited(8), "the next pass repairs it")
    in_time(lambda: node.metric("limit_repairs_total") >= 2, "and counts it")
    driver.end()
    for used in (pod, neighbour, static):
        used.remove()
    node.stop_plugin()
    check(node.label() is None, "a plugin that ends takes the label off")


def observe(node):
    print("\n== observe", flush=True)
    node.start_plugin("observe")
    in_time(lambda: node.said(0) == "none" and node.reason(0) == "not-enabled",
            "the inventory says none: not switched on")
    pod = Pod(node, "o", 4).admit(4).make_cgroup()
    user = pod.run("c")
    check(pod.start() is None and user.take(5) == "given" and pod.limit() == "max",
          "5 of 4 GiB are given")
    in_time(lambda: node.metric('pods_by_limit{state="over_request"}') == 1, "the pages tell it")
    in_time(lambda: node.metric('gpu_memory_used_by_pods_bytes{gpu="0"}') == 5 * GIB and
            "pods" not in node.usage(), "its GPU's sum too; without --pod-usage=on nobody is named")
    in_time(lambda: node.events("GpuMemoryWouldBeBlocked"), "the pod has an Event: "
            "it would be refused")
    insisting = Pod(node, "i", 2, gpu=1, insists=True).admit(2).make_cgroup()
    in_time(lambda: insisting.limit(1) == str(2 * GIB), "a pod that requires it is limited all the same")
    check(insisting.start() is None, "and starts")
    check(node.label() is None, "the node has no label")
    pod.remove()
    insisting.remove()
    node.stop_plugin()


def required(node):
    print("\n== required", flush=True)
    pod = Pod(node, "r", 4).make_cgroup()
    first = pod.run("first")
    check(first.take(5) == "given", "before there is a plugin, a first container has 5 GiB")
    node.start_plugin("required", "--deny-unallocated-gpus")
    pod.admit(4)
    held = pod.start() or ""
    check("the pod used more before it was limited" in held, f"PreStartContainer holds the other: {held}")
    in_time(lambda: node.events("GpuMemoryLimitNotSet"), "the pod has an Event with the reason")
    in_time(lambda: node.metric('pods_by_limit{state="not_limited"}') == 1, "the pages tell it")
    first.give_back()
    check(pod.start() is None, "once it gives them back, the other starts")
    check(pod.is_limited(4), "with its limit")
    check(pod.run("c", gpu=1).take(1) == "refused", "nothing of the GPU that is not its own")
    pod.remove()
    node.stop_plugin()


def read_only(node):
    print("\n== required, and the mount is read-only", flush=True)
    mount = "/run/cgroup"
    os.mkdir(mount)
    subprocess.run(["mount", "--bind", ROOT, mount], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)
    done = subprocess.run([*node.command, "--enforce=required", f"--cgroup-root={mount}"], capture_output=True, text=True,
                          timeout=60, check=False)
    check(done.returncode and "mounted read-only" in done.stderr, f"required: the program ends, and says why: {done.stderr}")
    node.start_plugin("preferred", f"--cgroup-root={mount}")
    in_time(lambda: "read-only" in node.reason(0), "the inventory says none: read-only")
    pod = Pod(node, "ro", 4).admit(4).make_cgroup()
    check(pod.start() is None and node.label() is None,
          "preferred: it starts, and the node has no label")
    pod.remove()
    node.stop_plugin()


def adopted(node):
    print("\n== preferred, and a pod ran over its request before", flush=True)
    node.start_plugin("observe")
    pod = Pod(node, "e", 4).admit(4).make_cgroup()
    first = pod.run("first")
    check(pod.start() is None and first.take(6) == "given", "where it is observed it has 6 of 4 GiB")
    node.stop_plugin()
    node.start_plugin("preferred")
    in_time(lambda: pod.limit() == str(6 * GIB), "what it has is its limit")
    check(pod.run("more").take(1) == "refused", "it gets no more")
    in_time(lambda: node.metric('pods_by_limit{state="over_request"}') == 1, "the pages tell it")
    first.give_back()
    in_time(lambda: pod.is_limited(4), "once it gives it back, its share is")
    check(first.take(5) == "refused" and first.take(4) == "given", "which holds")
    in_time(lambda: node.label() == "dmem", "and the node has the label")
    pod.remove()
    node.stop_plugin()


def two_trees(node):
    print("\n== a pod in two trees", flush=True)
    old = f"{ROOT}/kubepods"
    os.makedirs(f"{old}/burstable")
    node.start_plugin("preferred")
    pod = Pod(node, "t", 4).admit(4).make_cgroup()
    in_time(lambda: node.label() == "dmem" and pod.is_limited(4), "it is limited")
    again = f"{old}/burstable/pod{pod.uid}"
    os.mkdir(again)
    check(pod.start() is None, "another container of it starts")
    in_time(lambda: node.label() is None and node.reason(0) == "not-limited",
            "a second cgroup of it, in the tree of another driver, takes the label off")
    in_time(lambda: any("several cgroups" in text for text in node.events("GpuMemoryLimitNotSet")),
            "and is told in an Event")
    os.rmdir(again)
    in_time(lambda: node.label() == "dmem", "without it the label is back")
    pod.remove()
    node.stop_plugin()
    os.removedirs(f"{old}/burstable")


def main(build):
    started = time.monotonic()
    node = Node(build)
    try:
        pods = preferred(node)
        killed(node, pods)
        lost(node, pods)
        observe(node)
        required(node)
        read_only(node)
        adopted(node)
        two_trees(node)
    except AssertionError as error:
        check(False, str(error))
    finally:
        if FAILED:
            print(get(node.plugin.log))
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if FAILED else 0


sys.exit(main(*sys.argv[1:]))
