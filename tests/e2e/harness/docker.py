# SPDX-License-Identifier: Apache-2.0
"""Kubelets up to 1.23 ask Docker for its folder, five times with a second between, before they take it
that there is no Docker. This one has a folder, but no version and no driver: they ask once, do not take
it for Docker either, and are ready 5 s earlier."""

import http.server
import json
import socketserver
import threading


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"DockerRootDir": "/nonexistent"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        """Not into the case's log."""


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def serve(path):
    """On a socket, for as long as this program runs."""
    threading.Thread(target=Server(path, Answer).serve_forever, daemon=True).start()
