# SPDX-License-Identifier: Apache-2.0
"""A small client of the Kubernetes API: one kept connection per client, JSON in and out."""

import concurrent.futures
import http.client
import json
import ssl
import threading
import urllib.parse

MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The API server answered, and it said no."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


def pod_path(namespace, name="", sub=""):
    return "/".join(filter(None, ("/api/v1/namespaces", namespace, "pods", name, sub)))


def node_path(name="", sub=""):
    return "/".join(filter(None, ("/api/v1/nodes", name, sub)))


class Api:
    """Speaks for one user (a bearer token). Safe to share: every thread has its own connection."""

    def __init__(self, host, port, token, ca_file):
        self.host, self.port, self.token = host, port, token
        self.tls = ssl.create_default_context(cafile=ca_file)
        self.local = threading.local()

    def connect(self, timeout_s=60):
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls,
                                           timeout=timeout_s)

    def headers(self, content_type="application/json"):
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json",
                "Content-Type": content_type}

    def send(self, method, path, body=None, content_type="application/json"):
        """One request, sent again once when the kept connection turns out to be closed."""
        data = None if body is None else json.dumps(body)
        for attempt in (1, 2):
            conn = getattr(self.local, "conn", None)
            if conn is None:
                conn = self.local.conn = self.connect()
            try:
                conn.request(method, path, data, self.headers(content_type))
                response = conn.getresponse()
                return response.status, response.read()
            except (http.client.HTTPException, OSError):
                conn.close()
                self.local.conn = None
                if attempt == 2:
                    raise

    def call(self, method, path, body=None, content_type="application/json"):
        status, raw = self.send(method, path, body, content_type)
        if status >= 300:
            raise ApiError(status, error_message(raw))
        return json.loads(raw) if raw else None

    def get(self, path):
        return self.call("GET", path)

    def find(self, path):
        """The object, or None when there is none of that name."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body):
        return self.call("PATCH", path, body, MERGE_PATCH)

    def delete(self, path, grace_s=None):
        body = None if grace_s is None else {"gracePeriodSeconds": grace_s}
        return self.call("DELETE", path, body)

    def items(self, path, **params):
        query = urllib.parse.urlencode(params)
        return self.get(f"{path}?{query}" if query else path)["items"]

    def pods(self, **params):
        return self.items("/api/v1/pods", **params)

    def nodes(self):
        return self.items("/api/v1/nodes")

    def events(self, namespace, pod_name):
        return self.items(f"/api/v1/namespaces/{namespace}/events",
                          fieldSelector=f"involvedObject.name={pod_name}")

    def create_many(self, path_and_body, threads=8):
        """Create objects side by side; the results are in the order given."""
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda pair: self.create(*pair), path_and_body))


def error_message(raw):
    try:
        return json.loads(raw).get("message", "")
    except (ValueError, AttributeError):
        return raw[:200].decode(errors="replace")
