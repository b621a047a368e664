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
BOX = "c0"      # the container of each pod


def wait_for(what, true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not in time: {what}")
        time.sleep(.02)


class Api:
    """The API server; node n1."""

    def __init__(self, folder, build):
        self.kubeconfig = f"{folder}/kubeconfig"
        with open(f"{folder}/api.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [f"{build}/gpushare-sim", "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out",
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

    def make_pod(self, name, units, notes):
        made = self.request("POST", PODS, {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "d", "annotations": notes},
            "spec": {"nodeName": "n1", "containers": [
                {"name": BOX, "image": "i", "resources": {"limits": {RESOURCE: str(units)}}}]}})
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
    """Ids are drawn at random."""

    def __init__(self, folder, random):
        self.folder, self.random = folder, random
        self.pods = {}  # uid: (ids, answer)
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
        entries = [{"PodUID": uid, "ContainerName": BOX, "ResourceName": RESOURCE, "DeviceIDs": {"-1": ids},
                    "AllocResp": base64.b64encode(answer.SerializeToString()).decode()}
                   for uid, (ids, answer) in self.pods.items()]
        with open(f"{self.folder}/new", "w", encoding="utf-8") as file:
            json.dump({"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}}, file)
        os.rename(f"{self.folder}/new", f"{self.folder}/kubelet_internal_checkpoint")

    def admit(self, uid, units):
        """The answer to Allocate."""
        wait_for("devices", lambda: self.devices)
        used = {one for ids, _ in self.pods.values() for one in ids}
        free = [one for one, well in self.devices.items() if well and one not in used]
        ids = self.random.sample(free, units)
        answer, = self.call("Allocate", M["AllocateRequest"](containers=[M["Ids"](ids=ids)]),
                            "AllocateAnswer").containers
        self.pods[uid] = ids, answer
        self.write_checkpoint()
        return answer

    def start_container(self, uid):
        """None, or why not."""
        try:
            self.call("PreStartContainer", M["Ids"](ids=self.pods[uid][0]), "Empty")
        except grpc.RpcError as error:
            return error.details() or "no words"
        return None

    def forget(self, uid):
        self.pods.pop(uid)
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
