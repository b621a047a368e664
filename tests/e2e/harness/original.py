# SPDX-License-Identifier: Apache-2.0
"""Stand-ins of the original: its device plugin (original_plugin.py) and its extender, which patches
a pod's annotations first and binds it then; and a Deployment, whose pods they run."""

import json
import os
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.api import ApiError, pod_path
from harness.control_plane import HOST, ROOT
from harness.ledger import quantity
from harness.node import DEVICE_PLUGINS, NODE
from harness.objects import GPU_COUNT, GPU_MEM, IDX, annotation, bound_node
from harness.processes import wait_for

SUPPORT = os.path.join(ROOT, "tests/support")
E2E = os.path.join(ROOT, "tests/e2e")
ORIGINAL_ID = "-_-"  # in every id of the original's
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def python_with_grpc():
    done = subprocess.run([os.path.join(SUPPORT, "grpcio.sh")], capture_output=True, text=True,
                          check=True)
    return done.stdout.strip().splitlines()[-1]


class OriginalPlugin:
    def __init__(self, cluster, gpu_file, unit="GiB"):
        self.cluster, self.gpu_file, self.unit = cluster, gpu_file, unit
        self.process = None

    def start(self):
        control_plane = self.cluster.control_plane
        self.process = self.cluster.processes.start("original-plugin", [
            python_with_grpc(), os.path.join(E2E, "original_plugin.py"),
            "--dir", DEVICE_PLUGINS, "--node", NODE, "--gpu-file", self.gpu_file,
            "--unit", self.unit, "--api-host", HOST, "--api-port", control_plane.port,
            "--ca-file", control_plane.ca_file],
            env={"ORIGINAL_TOKEN": control_plane.tokens["admin"],
                 "PYTHONPATH": f"{E2E}:{SUPPORT}"})
        # The node's status would show what the plugin before it offered.
        wait_for("the kubelet has the original's list", lambda: self.process.must_run() or (
            listed_ids() and all(ORIGINAL_ID in i for i in listed_ids())))
        wait_for("the node shows GPU memory", self.cluster.gpu_memory)

    def stop(self):
        self.process.must_run()
        self.process.stop()


class OriginalExtender:
    """filter and bind of the original; what a GPU holds it reads from the annotations of the pods
    that are bound, and GPUs are capacity divided by count."""

    def __init__(self, api):
        self.api = api
        self.lock = threading.Lock()
        extender = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = json.dumps(extender.answer(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        if path.endswith("/bind"):
            with self.lock:
                return self.bind(body)
        names = body["NodeNames"]
        if path.endswith("/prioritize"):
            return [{"Host": name, "Score": 0} for name in names]
        units = asks(body["Pod"])
        good = [n for n in names if not units or max(self.free(n).values(), default=0) >= units]
        return {"NodeNames": good, "FailedNodes": {
            n: "Insufficient GPU Memory in one device" for n in names if n not in good}}

    def gpus(self, node):
        """(how many, size of each)"""
        capacity = self.api.get(f"/api/v1/nodes/{node}")["status"]["capacity"]
        count = int(capacity.get(GPU_COUNT, 0))
        return count, quantity(capacity.get(GPU_MEM, 0)) // count if count else 0

    def free(self, node):
        count, size = self.gpus(node)
        free = {idx: size for idx in range(count)}
        for pod in self.api.pods():
            idx = annotation(pod, IDX)
            if bound_node(pod) == node and idx and idx.isdigit() and \
                    pod["status"].get("phase") not in ("Succeeded", "Failed"):
                free[int(idx)] -= int(annotation(pod, "ALIYUN_COM_GPU_MEM_POD"))
        return free

    def bind(self, args):
        namespace, name, node = args["PodNamespace"], args["PodName"], args["Node"]
        units = asks(self.api.get(pod_path(namespace, name)))
        fitting = [(left, idx) for idx, left in self.free(node).items() if left >= units]
        if not fitting:
            return {"Error": f"The node {node} can't place the pod {name}"}
        try:
            assume(self.api, name, min(fitting)[1], units, namespace, self.gpus(node)[1])
            self.api.create(pod_path(namespace, name, "binding"), {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
        except ApiError as error:
            return {"Error": str(error)}
        return {"Error": ""}


def asks(pod):
    return sum(quantity((c.get("resources", {}).get("limits") or {}).get(GPU_MEM, 0))
               for c in pod["spec"]["containers"])


def assume(api, name, idx, units, namespace="default", gpu_size=16):
    """What the original's extender writes before it binds."""
    api.patch(pod_path(namespace, name), {"metadata": {"annotations": {
        IDX: str(idx), "ALIYUN_COM_GPU_MEM_DEV": str(gpu_size),
        "ALIYUN_COM_GPU_MEM_POD": str(units), "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(time.time_ns())}}})


class Deployment:
    """Of pods that are made from this one."""

    def __init__(self, cluster, name, pod, replicas):
        self.api, self.name = cluster.api, name
        meta = {"labels": {"app": name}, "annotations": pod["metadata"]["annotations"]}
        self.api.create(DEPLOYMENTS, {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": meta, "spec": pod["spec"]}}})
        wait_for(f"the pods of {name}", lambda: len(self.pods()) == replicas)

    def pods(self):
        """Names of those that are not being deleted."""
        return sorted(p["metadata"]["name"] for p in self.api.items(
            "/api/v1/namespaces/default/pods", labelSelector=f"app={self.name}")
            if "deletionTimestamp" not in p["metadata"])

    def scale(self, replicas):
        self.api.patch(f"{DEPLOYMENTS}/{self.name}", {"spec": {"replicas": replicas}})
        wait_for(f"{self.name} has {replicas} pods", lambda: len(self.api.items(
            "/api/v1/namespaces/default/pods", labelSelector=f"app={self.name}")) == replicas, 60)


def checkpoint():
    with open(f"{DEVICE_PLUGINS}/kubelet_internal_checkpoint", encoding="utf-8") as file:
        return json.load(file)["Data"]


def listed_ids():
    """Device ids that the kubelet has from the plugin it listens to."""
    return (checkpoint()["RegisteredDevices"] or {}).get(GPU_MEM) or []


def held_ids():
    """{resource's device ids} in the kubelet's checkpoint, by pod UID."""
    held = {}
    for entry in checkpoint()["PodDeviceEntries"] or []:
        ids = entry["DeviceIDs"]
        held.setdefault(entry["PodUID"], set()).update(
            ids if isinstance(ids, list) else (i for group in ids.values() for i in group))
    return held


class GpuFile:
    """Two GPUs of 16 GiB with UUIDs as long as real ones, for either plugin."""

    def __init__(self, sizes=(16, 16)):
        self.path = os.path.join(os.environ["GPUSHARE_RUN_DIR"], "gpus.json")
        self.uuids = {i: f"GPU-{i:08d}-1111-2222-3333-444444444444" for i in range(len(sizes))}
        gpus = [{"idx": i, "uuid": self.uuids[i], "mem": size, "memMiB": size * 1024}
                for i, size in enumerate(sizes)]
        with open(self.path, "w", encoding="ascii") as out:
            json.dump({"v": 1, "unit": "GiB", "gpus": gpus}, out)
