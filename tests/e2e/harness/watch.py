# SPDX-License-Identifier: Apache-2.0
"""A pod watch that remembers when it first saw each pod bound, and every state in between."""

import http.client
import json
import threading
import time

from harness.objects import bound_node, key


class PodWatch:
    """with PodWatch(api) as watch: ...; watch.bound_at["ns/name"] is a monotonic time.

    Calls on_change(pods) after every event, if given, with the live {uid: pod} in the watch's
    thread; what that raises is raised again where the watch ends. An API server ends a watch that
    does not keep up: it goes on from the last event."""

    def __init__(self, api, on_change=None):
        self.api = api
        self.on_change = on_change
        self.pods = {}
        self.bound_at = {}
        self.condition = threading.Condition()
        self.error = None
        self.stopping = False
        self.conn = None
        self.version = None
        self.thread = threading.Thread(target=self.follow, daemon=True)

    def __enter__(self):
        listed = self.api.get("/api/v1/pods")
        for pod in listed["items"]:
            self.take("ADDED", pod)
        self.version = listed["metadata"]["resourceVersion"]
        self.ask()
        self.thread.start()
        return self

    def ask(self):
        self.conn = self.api.connect(timeout_s=None)
        self.conn.request("GET", f"/api/v1/pods?watch=1&resourceVersion={self.version}",
                          headers=self.api.headers())

    def __exit__(self, *_):
        self.stopping = True
        while self.thread.is_alive():  # it may be asking anew just now
            try:
                self.conn.sock.shutdown(2)
            except (AttributeError, OSError):
                pass
            self.thread.join(0.1)
        self.conn.close()
        if self.error:
            raise self.error

    def follow(self):
        try:
            while not self.stopping:
                for line in self.conn.getresponse():
                    self.hear(json.loads(line))
                if not self.stopping:
                    self.conn.close()
                    self.ask()
        except (OSError, ValueError, http.client.HTTPException) as error:
            if not self.stopping:
                self.error = error
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        with self.condition:
            self.condition.notify_all()

    def hear(self, event):
        if event["type"] == "ERROR":
            raise OSError(f"the watch cannot go on: {event['object'].get('message')}")
        self.version = event["object"]["metadata"]["resourceVersion"]
        with self.condition:
            self.take(event["type"], event["object"])
            if self.on_change:
                self.on_change(self.pods)
            self.condition.notify_all()

    def take(self, kind, pod):
        if kind == "DELETED":
            self.pods.pop(pod["metadata"]["uid"], None)
            return
        self.pods[pod["metadata"]["uid"]] = pod
        if bound_node(pod):
            self.bound_at.setdefault(key(pod), time.monotonic())

    def wait(self, predicate, timeout_s):
        """Wait until predicate(self) holds; False when it does not in time."""
        with self.condition:
            done = self.condition.wait_for(lambda: self.error or predicate(self), timeout_s)
        if self.error:
            raise self.error
        return done
