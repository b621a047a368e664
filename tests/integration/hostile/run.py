#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, against the built extender, over HTTP and over TLS: slow ones, 10,000
connections, huge heads and bodies, deep nesting, pipelining, broken requests, handshakes that stop.
Its memory stays bounded, and two clients, one that asks on a kept connection as kube-scheduler does
and one that connects anew for each request, are served all the while. How much longer they wait is
measured by scripts/bench.sh --only hostile.

    run.py BUILD_DIR [--connections N] [--seconds N]
"""

import argparse
import contextlib
import http.client
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from api import Served  # noqa: E402
from attack import Wrong  # noqa: E402
from objects import Pod, new_node  # noqa: E402
from programs import HOST, PREFIX, Extender, free_port, request  # noqa: E402

# What the server may hold in bodies all together (256 MiB), heads of 1,000 connections, and slack.
GROWTH_MIB_MAX = 400
NODES = {"n1": [16, 16], "n2": [32]}


def head(length, extra=b"", path=f"{PREFIX}filter"):
    return (b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s"
            b"Content-Length: %d\r\n\r\n" % (path.encode(), extra, length))


DEEP = b"[" * 200000
ATTACKS = {
    "slow head": [b"POST /gpushare-scheduler/filter HTTP/1.1\r\n"] + [b"X: y\r\n"] * 50,
    "slow body": [head(1000)] + [b" "] * 50,
    "huge head": [b"GET / HTTP/1.1\r\n" + b"X-Long: " + b"x" * (4 << 20)],
    "many headers": [b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200000],
    "huge body told": [head(1 << 40)],
    "huge body sent": [head(64 << 20)] + [b" " * (1 << 20)] * 64,
    "endless chunks": [b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: x\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n"] + [b"10000\r\n" + b" " * 65536 +
                                                                 b"\r\n"] * 600,
    "deep nesting": [head(len(DEEP)) + DEEP],
    "nested in the pod": [head(len(DEEP) + 7) + b'{"Pod":' + DEEP],
    "pipelining": [(head(2) + b"{}") * 2000],
    "pipelined and never read": [b"GET /gpushare-scheduler/inspect HTTP/1.1\r\nHost: x\r\n\r\n"
                                 * 5000],
    "two lengths": [b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                    b"Content-Length: 7\r\n\r\n{}{}{}{}"],
    "no protocol": [bytes(range(256)) * 64],
}
# The begin of a TLS 1.2 ClientHello: record, handshake of 508 bytes, version, random.
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)
TLS_ATTACKS = {
    "silence": [b""],
    "half a hello": [HELLO],
    "slow hello": [bytes([byte]) for byte in HELLO],
    "a record of nothing": [b"\x16\x03\x01\x00\x00"] * 2000,
    "a huge record": [b"\x16\x03\x01\xff\xff" + b"x" * 65535],
    "not TLS": [bytes(range(256)) * 64],
    "plain HTTP": [head(2) + b"{}"],
    "handshakes": [],
}
SLOW = ("slow head", "slow body", "slow hello")
SILENT = ("silence", "half a hello")
KINDS = {"idle": [], "slow": SLOW[:2], "all": list(ATTACKS), "tls": list(TLS_ATTACKS),
         **{name: [name] for name in (*ATTACKS, *TLS_ATTACKS)}}


def shake_hands(conn):
    """As far as the server's demand for a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLError), context.wrap_socket(conn) as secure:
        secure.recv(1)


def attack(port, name, until):
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 2) as conn:
            conn.settimeout(2)
            if name == "handshakes":
                shake_hands(conn)
            for part in {**ATTACKS, **TLS_ATTACKS}[name]:
                conn.sendall(part)
                if name in SLOW:
                    time.sleep(0.2)
                if name in SILENT:
                    time.sleep(1)
                if time.monotonic() > until:
                    return
            if "never read" not in name:
                while conn.recv(65536):
                    pass
        time.sleep(0.02)


def crowd(port, count):
    """Connections that say nothing; those that are refused are not counted."""
    held = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            held.append(socket.create_connection((HOST, port), 1))
    return held


class Asker:
    """A client as kube-scheduler is one: asks filter, and knows what the answer must be."""

    def __init__(self, port, certs):
        self.port = port
        self.context = None
        if certs:
            self.context = ssl.create_default_context(cafile=f"{certs}/ca.pem")
            self.context.load_cert_chain(f"{certs}/client.pem", f"{certs}/client.key")
        self.body = json.dumps({"Pod": Pod("good", 4).obj, "NodeNames": list(NODES)})

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection(HOST, self.port, timeout=30, context=self.context)
        return http.client.HTTPConnection(HOST, self.port, timeout=30)

    def ask(self, conn):
        conn.request("POST", f"{PREFIX}filter", self.body, {"Content-Type": "application/json"})
        answer = conn.getresponse()
        text = answer.read().decode()
        if answer.status != 200 or not json.loads(text)["NodeNames"]:
            raise Wrong(f"a good client was answered {answer.status} {text[:200]}")

    def repeat(self, kept, until, times):
        """Appends how long each request took."""
        conn = self.connect()
        while time.monotonic() < until:
            began = time.monotonic()
            self.ask(conn)
            times.append(time.monotonic() - began)
            if not kept:
                conn.close()
                conn = self.connect()
            time.sleep(0.002)


def good_clients(port, certs, seconds):
    """A process of its own, so that it does not wait for the attackers' interpreter. Prints p99 in
    ms and number of the requests on a kept connection, and of those on a new one each."""
    asker, until, broken = Asker(port, certs), time.monotonic() + seconds, []
    times = {True: [], False: []}

    def run(kept):
        try:
            asker.repeat(kept, until, times[kept])
        except (Wrong, OSError, http.client.HTTPException) as error:
            broken.append(f"{'kept' if kept else 'new'} connection, after {len(times[kept])}: "
                          f"{error!r}")
    threads = [threading.Thread(target=run, args=(kept,)) for kept in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if broken:
        sys.exit("; ".join(broken))
    for each in times.values():
        each.sort()
        print(1000 * each[len(each) * 99 // 100], len(each))


class GoodClients:
    """Begin at once; result() waits: [(p99 in ms, how many requests)] of the two."""

    def __init__(self, port, certs, seconds):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--good", str(port), "--certs", certs or "",
             "--seconds", str(seconds), "-"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        out, err = self.process.communicate(timeout=120)
        if self.process.returncode:
            raise Wrong(f"a good client: {err.strip()[-500:]}")
        return [(float(line.split()[0]), int(line.split()[1])) for line in out.splitlines()]


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) >> 10


class Memory:
    """The largest resident size while it watches."""

    def __init__(self, pid):
        self.pid, self.peak, self.stopping = pid, 0, False
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.stopping:
            self.peak = max(self.peak, resident_mib(self.pid))
            time.sleep(0.05)

    def stop(self):
        self.stopping = True
        self.thread.join()
        return self.peak


def attackers(port, kinds, until):
    threads = [threading.Thread(target=attack, args=(port, name, until), daemon=True)
               for name in kinds for _ in range(3)]
    for thread in threads:
        thread.start()
    return threads


def one_round(what, one, certs, options):
    kinds = KINDS["tls" if certs else "all"]
    before = resident_mib(one.process.pid)
    memory = Memory(one.process.pid)
    good = GoodClients(one.port, certs, options.seconds + 3)
    time.sleep(1)
    held = crowd(one.port, options.connections)
    threads = attackers(one.port, kinds, time.monotonic() + options.seconds)
    loud = good.result()
    for thread in threads:
        thread.join()
    peak = memory.stop()
    for conn in held:
        conn.close()
    words = [f"{name} {p99_ms:.1f} ms ({count} requests)"
             for name, (p99_ms, count) in zip(("a kept connection", "new ones"), loud)]
    print(f"{what}: {len(held)} idle connections, {len(threads)} attackers of {len(kinds)} kinds; "
          f"p99 on {', on '.join(words)}; memory {before} MiB, at most {peak} MiB", flush=True)
    if len(held) < options.connections * 9 // 10:
        raise Wrong(f"only {len(held)} connections could be made")
    if peak - before > GROWTH_MIB_MAX:
        raise Wrong(f"memory grew by {peak - before} MiB")


def make_certificates(folder):
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *new, "-subj", "/CN=ca", "-days", "2", "-keyout", "ca.key", "-out",
            "ca.pem")
    for name, usage in (("server", "serverAuth"), ("client", "clientAuth")):
        with open(f"{folder}/{name}.ext", "w", encoding="ascii") as out:
            out.write(f"extendedKeyUsage={usage}\nsubjectAltName=IP:{HOST}\n")
        openssl("req", *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out",
                f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")


class Tls(Extender):
    """Its metrics and readiness lie on a health port."""

    def __init__(self, build, api):
        self.health = free_port()
        certs = [f"{api.folder}/{name}" for name in ("server.pem", "server.key", "ca.pem")]
        super().__init__(build, api, "--health-listen", f"{HOST}:{self.health}", "--tls-cert", certs[0], "--tls-key", certs[1],
                         "--tls-client-ca", certs[2])

    def get(self, path):
        return request(self.health, "GET", path)


def judge(options):
    with Served([new_node(name, sizes) for name, sizes in NODES.items()]) as api:
        make_certificates(api.folder)
        for what, certs, start in (("HTTP", None, Extender), ("TLS", api.folder, Tls)):
            with start(options.build, api) as one:
                one_round(what, one, certs, options)
                if "gpushare_ledger_drift 0\n" not in one.get("/metrics")[1]:
                    raise Wrong(f"{what}: the ledger drifted")
            if one.status:
                raise Wrong(f"{what}: it ended with {one.status}")


def only_attack(options):
    """For the benchmark: until it is killed."""
    held = crowd(options.attack, options.connections)
    print(len(held), flush=True)
    attackers(options.attack, KINDS[options.kinds], time.monotonic() + 600)
    time.sleep(600)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=3)
    for name in ("--good", "--attack"):
        parser.add_argument(name, type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--certs", help=argparse.SUPPRESS)
    parser.add_argument("--kinds", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    options.connections = min(options.connections, hard - 500)
    if options.good:
        good_clients(options.good, options.certs, options.seconds)
        return 0
    if options.attack:
        only_attack(options)
        return 0
    return judge(options)


if __name__ == "__main__":
    sys.exit(main())
