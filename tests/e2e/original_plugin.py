# SPDX-License-Identifier: Apache-2.0
"""A mock of the original's device plugin, for the cases of migration: its socket, its device
ids (GPU's UUID, "-_-", number), its Allocate with its faults, written from what its source does
(AliyunContainerService/gpushare-device-plugin at 45fb8b8, pkg/gpu/nvidia). Run by
harness/original.py with an interpreter that has grpcio.
"""

import argparse
import json
import os
import signal
import threading
import time
from concurrent import futures

import grpc
from kubelet_messages import M

from harness.api import Api, node_path, pod_path
from harness.ledger import quantity
from harness.objects import GPU_COUNT, GPU_MEM, IDX, annotation

ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ASSUME_TIME = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
SOCKET = "aliyungpushare.sock"


def asks(pod):
    """The original sums the containers and knows no init containers."""
    return sum(quantity((c.get("resources", {}).get("limits") or {}).get(GPU_MEM, 0))
               for c in pod["spec"]["containers"])


class Plugin:
    def __init__(self, options, api):
        self.dir, self.node, self.unit, self.api = options.dir, options.node, options.unit, api
        with open(options.gpu_file, encoding="ascii") as file:
            gpus = json.load(file)["gpus"]
        self.uuids = {gpu["idx"]: gpu["uuid"] for gpu in gpus}
        # The first GPU's size counts for all.
        self.units = gpus[0]["memMiB"] // (1 if self.unit == "MiB" else 1024)
        self.lock = threading.Lock()
        self.server = self.stop = None

    def devices(self):
        return M["List"](devices=[M["Device"](id=f"{uuid}-_-{j}", health="Healthy")
                                  for uuid in self.uuids.values() for j in range(self.units)])

    def patch_gpu_count(self):
        count = {GPU_COUNT: str(len(self.uuids))}
        self.api.patch(node_path(self.node, "status"),
                       {"status": {"capacity": count, "allocatable": count}})

    def candidates(self):
        pods = self.api.pods(fieldSelector=f"spec.nodeName={self.node},status.phase=Pending")
        assumed = [p for p in pods if asks(p) > 0 and annotation(p, ASSUME_TIME) is not None
                   and annotation(p, ASSIGNED) == "false"]
        return sorted(assumed, key=lambda p: int(annotation(p, ASSUME_TIME)))

    def environment(self, visible, idx, units):
        pairs = {"NVIDIA_VISIBLE_DEVICES": visible, IDX: str(idx),
                 "ALIYUN_COM_GPU_MEM_POD": str(units), "ALIYUN_COM_GPU_MEM_CONTAINER": str(units),
                 "ALIYUN_COM_GPU_MEM_DEV": str(self.units)}
        return M["AllocateAnswer"](containers=[M["ContainerAnswer"](
            envs=[M["Pair"](key=key, value=value) for key, value in pairs.items()])])

    def allocate(self, request, _context):
        with self.lock:
            return self.allocate_one(sum(len(c.ids) for c in request.containers))

    def allocate_one(self, units):
        found = next((p for p in self.candidates() if asks(p) == units), None)
        if found is None and len(self.uuids) == 1:
            idx, uuid = next(iter(self.uuids.items()))
            return self.environment(uuid, idx, units)
        idx = int(annotation(found, IDX) or -1) if found else -1
        if idx not in self.uuids:
            return self.environment(f"no-gpu-has-{units}{self.unit}-to-run", -1, units)
        meta = found["metadata"]
        self.api.patch(pod_path(meta["namespace"], meta["name"]), {"metadata": {"annotations": {
            ASSIGNED: "true", ASSUME_TIME: str(time.time_ns())}}})
        print(f"allocated {meta['name']} units={units} gpu={idx}", flush=True)
        return self.environment(self.uuids[idx], idx, units)

    def list_and_watch(self, _request, _context):
        stop = self.stop
        yield self.devices()
        stop.wait()

    def serve(self):
        path = os.path.join(self.dir, SOCKET)
        if os.path.lexists(path):
            os.unlink(path)
        self.stop = threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        unary = grpc.unary_unary_rpc_method_handler
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
            "v1beta1.DevicePlugin", {
                "GetDevicePluginOptions": unary(lambda *_: M["Options"](), M["Empty"].FromString,
                                                M["Options"].SerializeToString),
                "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                    self.list_and_watch, M["Empty"].FromString, M["List"].SerializeToString),
                "Allocate": unary(self.allocate, M["AllocateRequest"].FromString,
                                  M["AllocateAnswer"].SerializeToString),
                "PreStartContainer": unary(lambda *_: M["Empty"](), M["Ids"].FromString,
                                           M["Empty"].SerializeToString)}),))
        self.server.add_insecure_port(f"unix:{path}")
        self.server.start()

    def register(self):
        with grpc.insecure_channel(f"unix:{self.dir}/kubelet.sock", options=[
                ("grpc.default_authority", "localhost")]) as channel:
            channel.unary_unary("/v1beta1.Registration/Register",
                                request_serializer=M["RegisterRequest"].SerializeToString,
                                response_deserializer=M["Empty"].FromString)(
                M["RegisterRequest"](version="v1beta1", endpoint=SOCKET, resource_name=GPU_MEM),
                timeout=15)
        print("registered", flush=True)

    def end(self):
        if self.server:
            self.stop.set()
            self.server.stop(0).wait()
            self.server = None


def inode(path):
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


def main():
    parser = argparse.ArgumentParser()
    for name in ("dir", "node", "gpu-file", "unit", "api-host", "api-port", "ca-file"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    api = Api(options.api_host, int(options.api_port), os.environ["ORIGINAL_TOKEN"],
              options.ca_file)
    plugin = Plugin(options, api)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    served = None
    while not ended.wait(0.1):
        now = inode(f"{options.dir}/kubelet.sock")
        if now is None or now == served:
            continue
        try:  # a kubelet that started anew has deleted the socket
            plugin.end()
            plugin.patch_gpu_count()
            plugin.serve()
            plugin.register()
            served = now
        except (grpc.RpcError, OSError, RuntimeError) as error:
            print(f"not registered: {error}", flush=True)
    plugin.end()
    path = os.path.join(options.dir, SOCKET)
    if os.path.lexists(path):
        os.unlink(path)


if __name__ == "__main__":
    main()
