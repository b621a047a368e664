#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/operate.md, followed literally: the certificates of the layout ha-mtls are renewed, then their CA
is changed in three steps. In every step pods are placed, by a kube-scheduler that has the old files and
by one that has the new ones; at the end nobody believes the old CA."""

import os
import shutil
import socket
import ssl

from harness import release
from harness.case import check, run
from harness.control_plane import ROOT
from harness.deployed import DeployedCluster
from harness.documents import Operator, commands
from harness.install import BehindService
from harness.node import real_pod
from harness.processes import wait_for

PAGE = "docs/operate.md"
GPUS = "2x16GiB"


class Rotation:
    def __init__(self, cluster, operator):
        self.cluster, self.operator = cluster, operator
        self.layout = cluster.layout
        self.made = os.path.join(cluster.run_dir, "certificates")
        self.pods = 0

    def in_folder(self, block):
        """The document's folder is this case's; the configuration that of this release."""
        changes = [("extender_certificates.sh", f"extender_certificates.sh --out {self.made} --config "
                    + os.path.join(ROOT, "config", release.SCHEDULER_CONFIG))]
        return block, [change for change in (*changes, ("gpushare-certificates/", f"{self.made}/"))
                       if change[0] in block]

    def served(self):
        """The certificate that the leader shows to who trusts the CAs of the last step."""
        folder = os.path.join(self.made, "control-plane")
        tls = ssl.create_default_context(cafile=f"{folder}/ca.crt")
        tls.check_hostname = False
        tls.load_cert_chain(f"{folder}/client.crt", f"{folder}/client.key")
        return self.shown_to(tls)

    def shown_to(self, tls):
        with socket.create_connection((self.layout.extender.address, 29999), timeout=5) as plain:
            with tls.wrap_socket(plain) as connection:
                connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                check(b" 200 " in connection.recv(4096), "no answer over TLS")
                return ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))

    def place(self):
        self.pods += 1
        name = f"pod-{self.pods}"
        self.cluster.create_pods([real_pod(name, 2)])
        self.cluster.wait_bound(name, 60)
        self.cluster.wait_true_record(name)

    def step(self, block, bring):
        """Made, brought to the extender, then to kube-scheduler."""
        self.operator.run(*self.in_folder(block))
        if bring is not None:
            self.operator.run(*self.in_folder(bring))
        with open(os.path.join(self.made, "tls.crt"), encoding="ascii") as text:
            wanted = text.read()
        wait_for("the extender shows its new certificate", lambda: self.served() == wanted, 60)
        self.place()
        self.cluster.scheduler.stop()
        self.cluster.scheduler.start_with(self.layout.scheduler_config(self.made))
        self.place()


def refuses(rotation, folder):
    """Whether a client with the files of a former CA is turned away."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.load_cert_chain(f"{folder}/client.crt", f"{folder}/client.key")
    try:
        rotation.shown_to(tls)
    except OSError:
        return True
    except Exception as error:  # pylint: disable=broad-except  # check()'s
        return "no answer over TLS" in str(error)
    return False


def body():
    with DeployedCluster() as cluster:
        cluster.install(BehindService(cluster), GPUS)
        rotation = Rotation(cluster, Operator(cluster))
        rotation.place()
        renew = commands(PAGE, "Rotate certificates")[0]
        make, bring = renew.split("\n", 1)
        check("kubectl apply" in bring and "annotate pods" in bring, f"the commands are: {renew}")
        rotation.step(make, bring)
        former = shutil.copytree(os.path.join(rotation.made, "control-plane"),
                                 os.path.join(cluster.run_dir, "former"))
        check(not refuses(rotation, former), "the files of the renewal are refused at once")
        steps = commands(PAGE, "Rotate the CA")
        check(len(steps) == 3, f"{len(steps)} steps")
        for block in steps:
            rotation.step(block, bring)
        wait_for("the former CA is believed no more", lambda: refuses(rotation, former), 60)


run(body)
