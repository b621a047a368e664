#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kube-scheduler asks over mutual TLS; others are refused; files are replaced under its feet."""

import http.client
import os
import ssl

from harness.case import check, run
from harness.certificates import Authority
from harness.cluster import EXTENDER_MANIFESTS, Cluster
from harness.control_plane import EXTENDER_NAMESPACE, HOST
from harness.extender import PREFIX, Extender
from harness.objects import node, pod
from harness.processes import wait_for
from harness.scheduler import replace_once

KUBE = ">=1.20"


def with_tls(ca_file, cert, key):
    """The shipped configuration as an administrator would change it for TLS."""
    def edit(text):
        return replace_once(text, "enableHTTPS: false", "enableHTTPS: true\n  tlsConfig:\n"
                            f"    caFile: {ca_file}\n    certFile: {cert}\n    keyFile: {key}")
    return edit


def connect(port, ca_file, cert=None, maximum=None):
    tls = ssl.create_default_context(cafile=ca_file)
    if cert:
        tls.load_cert_chain(*cert)
    if maximum:
        tls.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        tls.maximum_version = maximum
    return http.client.HTTPSConnection(HOST, port, context=tls, timeout=10)


def answered(conn):
    conn.request("GET", f"{PREFIX}/inspect")
    response = conn.getresponse()
    response.read()
    return response.status == 200


def refused(conn):
    try:
        return not answered(conn)
    except (OSError, http.client.HTTPException):
        return True
    finally:
        conn.close()


def serial(conn):
    conn.connect()
    return conn.sock.getpeercert()["serialNumber"]


def start_extender(cluster, flags):
    cluster.control_plane.apply(*EXTENDER_MANIFESTS)
    kubeconfig = cluster.control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                                  "gpushare-extender")
    cluster.extender = Extender(cluster.processes, kubeconfig, flags)
    cluster.extender.start()
    return cluster.extender.port


def replace(old, new):
    """Both files, each at once."""
    for one, other in zip(old, new):
        os.replace(other, one)


def body():
    with Cluster(nodes=[node("n1", [16])], extender=False, scheduler=None) as cluster:
        ours = Authority(cluster.control_plane.path("tls"), "ours")
        theirs = Authority(cluster.control_plane.path("tls"), "theirs")
        server, client = ours.issue("server", "serverAuth"), ours.issue("client")
        port = start_extender(cluster, ["--tls-cert", server[0], "--tls-key", server[1],
                                        "--tls-client-ca", ours.cert])
        cluster.scheduler.start(f"https://{HOST}:{port}", edit=with_tls(ours.cert, *client))
        cluster.create_pods([pod("first", 8)])
        cluster.wait_bound("first")

        rows = {"no certificate": {},
                "a certificate of another CA": {"cert": theirs.issue("stranger")},
                "an expired certificate": {"cert": ours.issue("late", days=-1)},
                "a server's certificate": {"cert": ours.issue("server2", "serverAuth")},
                "TLS 1.1": {"cert": client, "maximum": ssl.TLSVersion.TLSv1_1}}
        for row, how in rows.items():
            check(refused(connect(port, ours.cert, **how)), f"{row}: it was served")
        check(refused(http.client.HTTPConnection(HOST, port, timeout=10)), "plain HTTP was served")

        kept = connect(port, ours.cert, client)
        check(answered(kept), "a good client was not served")
        before = serial(connect(port, ours.cert, client))
        replace(server, ours.issue("server3", "serverAuth"))
        wait_for("new connections see the new certificate",
                 lambda: serial(connect(port, ours.cert, client)) != before, 30)
        kept_socket = kept.sock
        check(answered(kept) and kept.sock is not kept_socket, "a kept connection was cut, or outlives the files")
        cluster.create_pods([pod("second", 8)])
        cluster.wait_bound("second")
        print(f"note: refused: {', '.join(rows)}, plain HTTP")
        # inspect needs a certificate too; the metrics' port does not
        check(cluster.extender.metrics()["gpushare_allocated_pods"] == 2, "two pods are charged")
        for verb in ("filter", "prioritize", "preempt", "bind", "inspect"):
            status = cluster.extender.ask("POST", f"{PREFIX}/{verb}", "{}", port=cluster.extender.health_port)[0]
            check(status == 404, f"the health port answers {verb} with {status}")


run(body)
