#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever reaches a health port holds as many connections as it lets in, each with an answer that he
does not read, and opens new ones for those that are closed. A kubelet is answered all the while: by
the extender and by the device plugin, and through connections from the attacker's own address.

    health.py BUILD_DIR
"""

import os
import socket
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from programs import HOST, Program, Serving, free_port, wait_for  # noqa: E402

MSS = 1448          # as on a network: loopback's own would take whole answers off the server's hands
ROUNDS = 12
PROBE_S = 5         # far below the time that an answer has, and above any pause of this machine's
PIPELINED = 40


class Failure(Exception):
    """Says why."""


def probe(port, path="/healthz"):
    """The answer's status line; "" when there is none."""
    try:
        with socket.create_connection((HOST, port), PROBE_S) as conn:
            conn.settimeout(PROBE_S)
            conn.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            return conn.recv(4096).split(b"\r\n")[0].decode()
    except OSError as error:
        return str(error)


def unread(port):
    conn = socket.socket()
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, MSS)
    conn.settimeout(2)
    try:
        conn.connect((HOST, port))
        conn.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * PIPELINED)
    except OSError:
        pass
    return conn


def is_open(conn):
    try:
        conn.setblocking(False)
        return conn.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def attack(name, port, connections):
    held, evicted = [], 0
    try:
        for turn in range(ROUNDS):
            for conn in [conn for conn in held if not is_open(conn)]:
                held.remove(conn)
                conn.close()
                evicted += 1
            held += [unread(port) for _ in range(connections - len(held))]
            for path in ("/healthz", "/version"):
                said = probe(port, path)
                if "200" not in said:
                    raise Failure(f"{name}: round {turn}: {path} is answered {said!r}")
    finally:
        for conn in held:
            conn.close()
    if not evicted:
        raise Failure(f"{name}: nobody was closed: this was no flood")
    print(f"{name}: {2 * ROUNDS} probes answered, {evicted} of the others closed", flush=True)


def main():
    build, running = sys.argv[1], []
    health, pages = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, Serving(
            build, folder, "tests/faulty-api", "--synthetic", "nodes=400,gpus=8") as api:
        for name, port, *flags in (
                ("extender", health, "--listen", f"{HOST}:0"), ("device-plugin", pages, "--node-name",
                 "node-00000", "--fake-gpus", "8x16384MiB", "--device-plugin-dir", folder)):
            running.append(Program([f"{build}/gpushare-{name}", "--kubeconfig", api.kubeconfig, "--health-listen", f"{HOST}:{port}",
                                    *flags], f"{folder}/{name}.log"))
            running[-1].start()
        try:
            for name, port, connections in (("extender", health, 256), ("plugin", pages, 64)):
                wait_for(f"{name} serves", lambda port=port: "200" in probe(port), 60)
                attack(name, port, connections)
        except (Failure, TimeoutError) as failure:
            print(failure)
            return 1
        finally:
            for program in running:
                program.end(seconds=60)
    return 0


sys.exit(main())
