# SPDX-License-Identifier: Apache-2.0
"""A node around the device plugin: an API server (gpushare-sim serve), a kubelet with its device
manager and checkpoint, and cards in a file. Loopback and unix sockets only."""

import base64
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from concurrent import futures

import grpc
from kubelet_messages import M

RESOURCE = "aliyun.com/gpu-mem"
IDX = "ALIYUN_COM_GPU_MEM_IDX"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
PODS = "/api/v1/namespaces/d/pods"


def wait_for(what, true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not in time: {what}")
        time.sleep(.02)


class Api:
    """The API server; node n1."""
    server = ["gpushare-sim", "serve"]

    def __init__(self, folder, build):
        self.kubeconfig = f"{folder}/kubeconfig"
        with open(f"{folder}/api.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [f"{build}/{self.server[0]}", *self.server[1:], "--listen", "127.0.0.1:0", "--kubeconfig-out",
                 self.kubeconfig, "--log-level", "error"], stdout=log, stderr=log)
        wait_for("the API server", lambda: os.path.exists(self.kubeconfig))
        with open(self.kubeconfig, encoding="utf-8") as file:
            self.url = re.search(r'server:\s*"?(http://[^\s"]+)', file.read()).group(1)
        self.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node",
                                               "metadata": {"name": "n1"}})

    def request(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(self.url + path, method=method, headers={
            "Content-Type": kind}, data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def patch(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def node(self, key):
        """A JSON annotation of the node."""
        text = self.request("GET", "/api/v1/nodes/n1")["metadata"].get("annotations", {}).get(
            f"aliyun.com/{key}")
        return json.loads(text) if text else {}

    def annotations(self, name):
        return self.request("GET", f"{PODS}/{name}")["metadata"].get("annotations", {})

    def make_pod(self, name, boxes, notes):
        """boxes: (name, units); i*: init containers, s*: those that stay."""
        def container(box):
            limits = {RESOURCE: str(box[1])}
            return {"name": box[0], "image": "i", "resources": {"limits": limits},
                    **({"restartPolicy": "Always"} if box[0][0] == "s" else {})}

        made = self.request("POST", PODS, {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "d", "annotations": notes},
            "spec": {"nodeName": "n1",
                     "initContainers": [container(b) for b in boxes if b[0][0] in "is"],
                     "containers": [container(b) for b in boxes if b[0][0] == "c"]}})
        return made["metadata"]["uid"]

    def phase(self, name, phase):
        self.patch(f"{PODS}/{name}/status", {"status": {"phase": phase}})

    def delete(self, name):
        self.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")

    def hang(self, hung):
        self.process.send_signal(signal.SIGSTOP if hung else signal.SIGCONT)

    def stop(self):
        self.hang(False)
        self.process.kill()
        self.process.wait()


class Kubelet:
    """Ids are drawn at random, those of ended init containers used again first."""

    def __init__(self, folder, random):
        self.folder, self.random = folder, random
        self.lock = threading.RLock()
        self.pods = {}  # uid: {"name", "ids": {box: ids}, "answers": {box: bytes}}
        self.devices, self.channel = {}, None
        self.start()

    def start(self):
        for name in os.listdir(self.folder):
            if name.endswith(".sock"):
                os.unlink(f"{self.folder}/{name}")
        self.devices, self.channel = {}, None
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        unary = grpc.unary_unary_rpc_method_handler
        self.server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": unary(
                self.on_register, M["RegisterRequest"].FromString, M["Empty"].SerializeToString)}),))
        self.server.add_insecure_port(f"unix:{self.folder}/kubelet.sock")
        self.server.start()

    def stop(self):
        self.server.stop(0).wait()
        if self.channel:
            self.channel.close()

    def restart(self):
        """Pods that it had not taken in are forgotten until it takes them in again."""
        self.stop()
        with self.lock:
            self.pods = {uid: pod for uid, pod in self.pods.items() if any(pod["ids"].values())}
        self.start()

    def on_register(self, request, _):
        self.channel = grpc.insecure_channel(
            f"unix:{self.folder}/{request.endpoint}",
            options=[("grpc.max_receive_message_length", 4 << 20)])
        threading.Thread(target=self.listen, args=(self.channel,), daemon=True).start()
        return M["Empty"]()

    def listen(self, channel):
        watch = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch",
                                     M["Empty"].SerializeToString, M["List"].FromString)
        try:
            for devices in watch(M["Empty"]()):
                self.devices = {d.id: d.health == "Healthy" for d in devices.devices}
        except (grpc.RpcError, ValueError):
            if self.channel is channel:
                self.devices = {}

    def call(self, method, request, answer):
        wait_for("the plugin serves", lambda: self.channel and self.devices)
        return self.channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}", type(request).SerializeToString,
            M[answer].FromString)(request, timeout=60)

    def write_checkpoint(self):
        entries = [{"PodUID": uid, "ContainerName": box, "ResourceName": RESOURCE,
                    "DeviceIDs": {"-1": ids},
                    "AllocResp": base64.b64encode(pod["answers"][box]).decode()}
                   for uid, pod in self.pods.items() for box, ids in pod["ids"].items() if ids]
        with open(f"{self.folder}/new", "w", encoding="utf-8") as file:
            json.dump({"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}}, file)
        os.rename(f"{self.folder}/new", f"{self.folder}/kubelet_internal_checkpoint")

    def draw(self, again, units):
        used = {i for pod in self.pods.values() for ids in pod["ids"].values() for i in ids}
        free = [i for i, well in self.devices.items() if well and i not in used]
        self.random.shuffle(free)
        ids = again[:units] + free[:units - len(again[:units])]
        return ids if len(ids) == units else None

    def admit(self, uid, name, boxes, lose_answer):
        """Calls Allocate for what it has no ids for; {box: the GPUs' UUIDs}, or the error's words.
        lose_answer(box): the kubelet dies before it wrote the answer down."""
        with self.lock:
            pod = self.pods.setdefault(uid, {"name": name, "ids": {b: [] for b, _ in boxes},
                                             "answers": {}})
        again = []
        for box, units in boxes:
            if not pod["ids"][box]:
                wait_for("devices", lambda: self.devices)
                with self.lock:
                    ids = self.draw(again, units)
                if not ids:
                    return "no ids left"
                try:
                    answer = self.call("Allocate", M["AllocateRequest"](
                        containers=[M["Ids"](ids=ids)]), "AllocateAnswer")
                except grpc.RpcError as error:
                    return error.details() or "no words"
                if lose_answer(box):
                    self.restart()
                    return self.admit(uid, name, boxes, lambda box: False)
                with self.lock:
                    pod["ids"][box] = ids
                    pod["answers"][box] = answer.containers[0].SerializeToString()
                    self.write_checkpoint()
            again = [i for i in again if i not in pod["ids"][box]]
            again += pod["ids"][box] if box[0] == "i" else []
        return {box: self.environment(pod, box) for box, _ in boxes}

    @staticmethod
    def environment(pod, box):
        answer = M["ContainerAnswer"].FromString(pod["answers"][box])
        return {e.key: e.value for e in answer.envs}.get("NVIDIA_VISIBLE_DEVICES")

    def start_container(self, uid, box):
        """None, or why not."""
        try:
            self.call("PreStartContainer", M["Ids"](ids=self.pods[uid]["ids"][box]), "Empty")
        except grpc.RpcError as error:
            return error.details() or "no words"
        return None

    def forget(self, uid):
        with self.lock:
            self.pods.pop(uid, None)
            self.write_checkpoint()


class Plugin:
    """The program under test; its cards are in a file."""

    def __init__(self, folder, build, api):
        self.cards, self.log = f"{folder}/cards.json", f"{folder}/plugin.log"
        self.command = [f"{build}/gpushare-device-plugin", "--kubeconfig", api.kubeconfig,
                        "--node-name", "n1", "--device-plugin-dir", f"{folder}/kubelet",
                        "--gpu-file", self.cards]
        self.process = None

    def set_cards(self, cards):
        """(UUID, units) in the driver's order."""
        with open(f"{self.cards}.new", "w", encoding="utf-8") as file:
            json.dump({"v": 1, "unit": "GiB", "gpus": [
                {"idx": idx, "uuid": uuid, "mem": units, "memMiB": units * 1024}
                for idx, (uuid, units) in enumerate(cards)]}, file)
        os.rename(f"{self.cards}.new", self.cards)

    def start(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stderr=log, stdout=log)

    def kill(self):
        self.process.kill()
        self.process.wait()
