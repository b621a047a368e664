# SPDX-License-Identifier: Apache-2.0
"""What stands between the page's server and the simulator's API server, which is server.api."""

import contextlib
import http.server
import json
import re
import urllib.request


class MayNotListNodes(http.server.BaseHTTPRequestHandler):
    """Between the page's server and the API server, for one of few rights."""
    def do_GET(self):
        if self.path.startswith("/api/v1/nodes"):
            status, body = 403, b'{"kind":"Status","message":"nodes is forbidden","code":403}'
        else:
            with urllib.request.urlopen(self.server.api + self.path, timeout=30) as answer:
                status, body = answer.status, answer.read()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Plugins(http.server.BaseHTTPRequestHandler):
    """Before the API server: its proxy to the device plugins, whose page is server.usage by node. Of
    server.lie it says the second for the first."""
    def do_GET(self):
        found = re.fullmatch(r"/api/v1/namespaces/gpushare-system/pods/plugin-(.*):29997/proxy/usage", self.path)
        self.send_response(200)
        self.end_headers()
        if found:
            self.server.asked += 1
            self.wfile.write(json.dumps(self.server.usage[found[1]]).encode())
            return
        with contextlib.suppress(OSError), urllib.request.urlopen(
                self.server.api + self.path, timeout=600) as answer:
            for line in answer: # a watch does not end
                self.wfile.write(line.replace(*self.server.lie))

    def log_message(self, *words):
        pass
