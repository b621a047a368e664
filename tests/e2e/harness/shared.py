# SPDX-License-Identifier: Apache-2.0
"""A control plane that cases use one after the other: before each, etcd holds again what it held before the
first. Cases that want flags of their own, or other rights, start their own.

    shared.py FOLDER     starts one and serves until it is stopped by a signal (scripts/e2e.sh)
"""

import contextlib
import fcntl
import http.client
import json
import os
import signal
import sys
import time

from harness.processes import Processes, wait_for

REGISTRY = ("L3JlZ2lzdHJ5Lw==", "L3JlZ2lzdHJ5MA==")  # "/registry/" until "/registry0" in base64, as etcd's gateway has all
TXN_OPS = 100  # etcd takes 128
POLICIES_S = 1.5  # kube-apiserver looks for changed admission policies each second
KEPT = ("apiserver", "tokens.csv", "sa.key")


class Etcd:
    def __init__(self, port):
        self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, what, body):
        self.conn.request("POST", f"/v3/kv/{what}", json.dumps(body), {"Content-Type": "application/json"})
        answer = self.conn.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise OSError(f"etcd: {answer.status} {text[:200]}")
        return json.loads(text)

    def everything(self):
        """{key: value}"""
        found = self.call("range", {"key": REGISTRY[0], "range_end": REGISTRY[1]})
        return {kv["key"]: kv.get("value", "") for kv in found["kvs"]}

    def become(self, wanted):
        now = self.everything()
        steps = [{"request_delete_range": {"key": key}} for key in now.keys() - wanted.keys()]
        steps += [{"request_put": {"key": key, "value": value}} for key, value in wanted.items() if now.get(key) != value]
        for at in range(0, len(steps), TXN_OPS):
            self.call("txn", {"success": steps[at:at + TXN_OPS]})


def adopt(plane, folder):
    """Has a ControlPlane that has not been started be the one in this folder; False: the case has it already."""
    plane.claim = open(os.path.join(folder, "claim"), "ab")  # pylint: disable=consider-using-with  # as long as the plane
    try:
        fcntl.flock(plane.claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    state_file = os.path.join(folder, "state.json")
    wait_for("the shared control plane is ready", lambda: os.path.exists(state_file), 120)
    with open(state_file, encoding="ascii") as source:
        state = json.load(source)
    for name in KEPT:
        with contextlib.suppress(FileExistsError):
            os.symlink(os.path.join(folder, name), plane.path(name))
    plane.port, plane.etcd_port, plane.tokens = state["port"], state["etcd_port"], state["tokens"]
    Etcd(plane.etcd_port).become(state["kept"])
    plane.connect()
    for kind in ("pods", "nodes"):  # what the API server remembers
        wait_for(f"no {kind} of the case before are left",
                 lambda kind=kind: not plane.admin.get(f"/api/v1/{kind}?resourceVersion=0")["items"])
    time.sleep(POLICIES_S)
    return True


def part(plane):
    """What a case starts by itself must not write into the shared one's files."""
    for name in KEPT:
        if os.path.islink(plane.path(name)):
            os.remove(plane.path(name))


def main(folder):
    from harness.control_plane import ControlPlane  # pylint: disable=import-outside-toplevel  # it imports this
    processes = Processes(folder)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        plane = ControlPlane(processes, folder)
        plane.start()
        state = {"port": plane.port, "etcd_port": plane.etcd_port, "tokens": plane.tokens,
                 "kept": Etcd(plane.etcd_port).everything()}
        with open(os.path.join(folder, "state.tmp"), "w", encoding="ascii") as out:
            json.dump(state, out)
        os.rename(os.path.join(folder, "state.tmp"), os.path.join(folder, "state.json"))
        signal.pause()
    finally:
        processes.stop_all()


if __name__ == "__main__":
    main(sys.argv[1])
