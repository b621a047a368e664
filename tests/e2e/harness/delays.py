# SPDX-License-Identifier: Apache-2.0
"""What stands between a program and its sources and can be late: an API server that hides pods for a
while or is away."""

import collections
import contextlib
import http.client
import http.server
import json
import os
import socket
import threading
import time

from harness.control_plane import HOST
from harness.node import NodeCluster


def pod_name(event):
    return event.get("object", {}).get("metadata", {}).get("name")


class ApiProxy:
    """Plain HTTP on loopback, TLS to the API server. Passes the caller's own token on, or the one
    given here: client-go sends none without TLS."""

    def __init__(self, control_plane, token=None):
        self.api = control_plane.admin
        self.token = token
        self.changed = threading.Condition()
        self.hidden = set()
        self.held_patches = set()
        self.late_s = {}
        self.losses = collections.Counter()
        self.held_now = collections.Counter()
        self.away = False
        self.frozen = False
        self.server = http.server.ThreadingHTTPServer((HOST, 0), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://{HOST}:{self.server.server_port}"

    def hide(self, *names):
        """Pods of these names are in no list and no event, until they are shown."""
        with self.changed:
            self.hidden.update(names)

    def show(self, *names):
        with self.changed:
            self.hidden.difference_update(names)
            self.changed.notify_all()

    def hold_patches(self, name):
        """Patches of this pod wait until they are let go."""
        with self.changed:
            self.held_patches.add(name)

    def let_patches(self, name):
        with self.changed:
            self.held_patches.discard(name)
            self.changed.notify_all()

    def delay_patches(self, names, late_s):
        """Each patch of these pods arrives so much later; of others no more."""
        self.late_s = dict.fromkeys(names, late_s)

    def lose_patches(self, name):
        """Those that wait never arrive; later ones do."""
        with self.changed:
            self.losses[name] += 1
            self.held_patches.discard(name)
            self.changed.notify_all()

    def freeze_pods(self, frozen):
        """True: watches of pods, those that begin later too, tell nothing; lists do."""
        with self.changed:
            self.frozen = frozen
            self.changed.notify_all()

    def set_away(self, away):
        """True: no request is answered any more, watches break off."""
        with self.changed:
            self.away = away
            self.changed.notify_all()

    def stop(self):
        self.set_away(True)
        self.server.shutdown()
        self.server.server_close()

    def handler(self):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request at a time of one connection."""
            protocol_version = "HTTP/1.1"

            def forward(self):
                if proxy.away:
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if not proxy.wait_for_patch(self.command, self.path):
                    self.close_connection = True
                    return
                upstream = proxy.api.connect(timeout_s=None)
                headers = {key: value for key, value in self.headers.items()
                           if key.lower() not in ("host", "accept-encoding", "connection")}
                if proxy.token:
                    headers["Authorization"] = f"Bearer {proxy.token}"
                upstream.request(self.command, self.path, body or None, headers)
                response = upstream.getresponse()
                try:
                    if "watch=" in self.path and response.status == 200:
                        proxy.relay_watch(self, response, upstream)
                    else:
                        self.answer(response)
                finally:
                    upstream.close()

            def answer(self, response):
                data = response.read()
                if self.command == "GET" and "/pods" in self.path and response.status == 200:
                    data = proxy.without_hidden(data)
                self.send_response(response.status)
                self.send_header("Content-Type", response.headers["Content-Type"])
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

            def log_message(self, *_):
                pass

        return Handler

    def wait_for_patch(self, method, path):
        """False: it is lost."""
        name = path.split("?")[0].rsplit("/pods/", 1)[-1].split("/")[0]
        time.sleep(self.late_s.get(name, 0) if method == "PATCH" else 0)
        with self.changed:
            losses = self.losses[name]
            if method == "PATCH" and name in self.held_patches:
                self.held_now[name] += 1
                self.changed.wait_for(lambda: name not in self.held_patches or self.away, 60)
            return self.losses[name] == losses

    def without_hidden(self, data):
        try:
            decoded = json.loads(data)
        except ValueError:
            return data
        if not self.hidden or "items" not in decoded:
            return data
        decoded["items"] = [item for item in decoded["items"] or []
                            if item["metadata"]["name"] not in self.hidden]
        return json.dumps(decoded).encode()

    def relay_watch(self, handler, response, upstream):
        """Lines in the order they came, except that those about hidden pods wait."""
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        lines = collections.deque()
        over = threading.Event()

        def read():
            try:
                for line in response:
                    with self.changed:
                        lines.append(line)
                        self.changed.notify_all()
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                pass
            over.set()
            with self.changed:
                self.changed.notify_all()
        threading.Thread(target=read, daemon=True).start()
        try:
            self.write_lines(handler, lines, over, "/pods" in handler.path)
        except OSError:
            pass
        handler.close_connection = True
        with contextlib.suppress(OSError):  # it may have ended by itself
            if upstream.sock:
                upstream.sock.shutdown(socket.SHUT_RDWR)

    def write_lines(self, handler, lines, over, of_pods):
        while True:
            with self.changed:
                held = of_pods and self.frozen
                ready = [l for l in lines
                         if not held and pod_name(json.loads(l)) not in self.hidden]
                if self.away or (over.is_set() and not ready):
                    return
                if not ready:
                    self.changed.wait(1)
                    continue
                for line in ready:
                    lines.remove(line)
            for line in ready:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                handler.wfile.flush()


def through(path, proxy):
    """The kubeconfig, with the proxy as the server."""
    with open(path, encoding="ascii") as source:
        lines = [line for line in source if "certificate-authority" not in line]
    with open(f"{path}.proxy", "w", encoding="ascii") as out:
        for line in lines:
            out.write(f"    server: {proxy.url}\n" if "server:" in line else line)
    return f"{path}.proxy"


class DelayedCluster(NodeCluster):
    """Plugin and kubelet each see the API through a proxy of their own."""

    plugin_api = kubelet_api = None

    def kubelet_kubeconfig(self):
        if self.kubelet_api is None:
            self.kubelet_api = ApiProxy(self.control_plane, self.control_plane.tokens["admin"])
        return through(super().kubelet_kubeconfig(), self.kubelet_api)

    def plugin_kubeconfig(self):
        self.plugin_api = ApiProxy(self.control_plane)
        return through(super().plugin_kubeconfig(), self.plugin_api)

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            for proxy in (self.plugin_api, self.kubelet_api):
                if proxy:
                    proxy.stop()
