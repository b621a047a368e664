# SPDX-License-Identifier: Apache-2.0
"""Two extenders bind at the same time, every time: what a race does once in a thousand times."""

import threading

from harness.case import check
from harness.objects import NAMESPACE
from harness.webhook import BindingHook


class Gate:
    """The API server keeps a binding of this pod until the gate is opened."""

    def __init__(self, name):
        self.name = name
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, _namespace, name):
        if name == self.name:
            self.reached.set()
            self.opened.wait(9)  # the API server itself waits ten seconds


def bind(extender, made, node_name):
    """As kube-scheduler asks. Returns the reason, "" when it is bound."""
    meta = made["metadata"]
    return extender.verb("bind", {"PodName": meta["name"], "PodNamespace": NAMESPACE,
                                  "PodUID": meta["uid"], "Node": node_name})["Error"]


def bind_at_once(control_plane, pool, pair, pods, node_name):
    """The first extender's binding of the first pod is in flight while the second one binds the
    other: neither can know what the other has chosen."""
    gate = Gate(pods[0]["metadata"]["name"])
    with BindingHook(control_plane, gate):
        in_flight = pool.submit(bind, pair[0], pods[0], node_name)
        check(gate.reached.wait(10), "the first bind never came")
        said = bind(pair[1], pods[1], node_name)
        check(said == "", f"the second extender did not bind: {said}")
        gate.opened.set()
        check(in_flight.result() == "", f"the first bind: {in_flight.result()}")
