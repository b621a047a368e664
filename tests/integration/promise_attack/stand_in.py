# SPDX-License-Identifier: Apache-2.0
"""hostile_surface's API server with PodDisruptionBudgets, Leases and faults. It refuses what a real one refuses
(another UID, a pod that is being deleted), and judges each Binding as it comes: no GPU is over-booked."""

import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile_surface"))
import fake  # noqa: E402
from fake import request, wait_for  # noqa: E402,F401

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
LEASE = re.compile(r"/apis/coordination.k8s.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")


class Handler(fake.Handler):
    def answer(self):
        api = self.server.api
        path = self.path.partition("?")[0]
        if api.away:
            self.close_connection = True
            return None
        if path == BUDGETS:
            if api.budgets_status != 200:
                return self.fails(api.budgets_status)
            query = dict(part.partition("=")[::2] for part in self.path.partition("?")[2].split("&"))
            if query.get("watch") and api.budgets_expired:
                api.budgets_expired -= 1
                return self.fails(410, "too old resource version")
            return self.collection(api, "poddisruptionbudgets", "", query)
        if match := LEASE.fullmatch(path):
            return self.lease(api, match, self.read_body())
        return super().answer()

    do_GET = do_POST = do_PATCH = do_PUT = answer

    def lease(self, api, match, body):
        with api.lock:
            key = (match[1], match[2] or (json.loads(body)["metadata"]["name"] if body else ""))
            old = api.leases.get(key)
            if self.command == "GET":
                return self.say(200, old) if old else self.fails(404)
            sent = json.loads(body)
            if self.command == "POST" and old:
                return self.fails(409)
            if self.command == "PUT" and (not old or sent["metadata"].get("resourceVersion") not in (
                    None, old["metadata"]["resourceVersion"])):
                return self.fails(409 if old else 404)
            api.rev += 1
            sent["metadata"]["resourceVersion"] = str(api.rev)
            api.leases[key] = sent
            return self.say(201 if self.command == "POST" else 200, sent)

    def one(self, api, kind, key, sub, body):
        if kind != "pods" or sub != "/binding":
            if self.command == "PATCH" and api.rng.random() < api.lost:
                api.fault("PATCH lost", key)
                if api.rng.random() < 0.5:
                    self.close_connection = True
                    return None
                return self.fails(500)
            return super().one(api, kind, key, sub, body)
        with api.lock:
            obj, sent = api.objects["pods"].get(key), json.loads(body or b"{}")
            fate = api.rng.random()
            if fate < api.lost:
                api.fault("Binding lost", key)
                self.close_connection = True
                return None
            uid = (sent.get("metadata") or {}).get("uid")
            if not obj:
                return self.fails(404)
            if obj["spec"].get("nodeName"):
                return self.fails(409, f'pod is already assigned to node "{obj["spec"]["nodeName"]}"')
            if obj["metadata"].get("deletionTimestamp") or (uid and uid != obj["metadata"]["uid"]):
                return self.fails(409, "the UID in the precondition does not match")
            api.bindings.append((time.monotonic(), key, sent))
            obj["spec"]["nodeName"] = sent["target"]["name"]
            obj["metadata"].setdefault("annotations", {}).update(sent["metadata"].get("annotations") or {})
            obj.setdefault("status", {}).pop("nominatedNodeName", None)
            api.on_binding(obj)
            api.note("pods", "MODIFIED", obj)
            if fate < 2 * api.lost:
                api.fault("Binding's answer lost", key)
                self.close_connection = True
                return None
            if fate < 3 * api.lost:
                api.fault("500 after a Binding", key)
                return self.fails(500)
            return self.say(201, {"kind": "Status", "status": "Success", "code": 201})


class Api(fake.Api):
    handler = Handler

    def __init__(self, rng, objects=()):
        self.rng, self.away, self.lost = rng, False, 0
        self.budgets_status, self.budgets_expired, self.leases = 200, 0, {}
        self.on_binding = lambda _: None
        self.fault = lambda *_: None
        super().__init__()
        self.objects["poddisruptionbudgets"], self.history["poddisruptionbudgets"] = {}, []
        for obj in objects:
            self.put(obj)


class Extender(fake.Extender):
    """fake.Extender over its process' end: begins anew on the same port."""

    def __init__(self, build, api, *flags, port=0, log=None):
        self.port, self.api = port or fake.free_port(), api
        self.log = log or os.path.join(api.folder, f"extender-{self.port}.log")
        self.command = [os.path.join(build, "gpushare-extender"), "--kubeconfig", api.kubeconfig, "--listen",
                        f"{fake.HOST}:{self.port}", "--log-level", "info", *flags]
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})

    def rss_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])
