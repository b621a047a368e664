# SPDX-License-Identifier: Apache-2.0
"""An admission webhook: a hook of the case's own inside the API server's handling of a binding."""

import base64
import contextlib
import http.server
import json
import ssl
import subprocess
import threading

from harness.api import ApiError, pod_path
from harness.control_plane import HOST
from harness.processes import wait_for

NAME = "e2e-binding-hook"


class BindingHook:
    """Calls on_binding(namespace, pod name) while the API server holds the binding back, then lets
    it pass. That is the one place where a race "during bind" happens every time."""

    def __init__(self, control_plane, on_binding):
        self.api = control_plane.admin
        self.cert, self.key = control_plane.path("hook.crt"), control_plane.path("hook.key")
        self.on_binding = on_binding
        self.error = None
        self.server = None
        self.called = False

    def __enter__(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}",
                        "-keyout", self.key, "-out", self.cert], check=True, capture_output=True)
        self.server = http.server.ThreadingHTTPServer((HOST, 0), self.handler())
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.cert, self.key)
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.register()
        wait_for("the API server calls the hook", self.probe)
        return self

    def __exit__(self, *_):
        self.api.delete(f"{REGISTRATIONS}/{NAME}")
        self.server.shutdown()
        self.server.server_close()
        if self.error:
            raise self.error

    def register(self):
        with open(self.cert, "rb") as cert:
            bundle = base64.b64encode(cert.read()).decode()
        self.api.create(REGISTRATIONS, {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME}, "webhooks": [{
                "name": "binding.e2e.gpushare", "failurePolicy": "Fail", "sideEffects": "None",
                "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://{HOST}:{self.server.server_port}/",
                                 "caBundle": bundle},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                           "resources": ["pods/binding"]}]}]})

    def probe(self):
        """Binds a pod that does not exist: the registration takes effect some time after it is created."""
        with contextlib.suppress(ApiError):
            self.api.create(pod_path("default", NAME, "binding"), {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": NAME}, "target": {"kind": "Node", "name": NAME}})
        return self.called

    def handler(self):
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One AdmissionReview per POST."""

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = json.dumps(hook.review(json.loads(body)["request"])).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        return Handler

    def review(self, request):
        self.called = True
        try:
            if request["name"] != NAME:
                self.on_binding(request["namespace"], request["name"])
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": {"uid": request["uid"], "allowed": True}}


REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
