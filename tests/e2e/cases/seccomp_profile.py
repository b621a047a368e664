#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The extender does all its work under the shipped seccomp profile, and none without one of its
calls."""

import signal
import subprocess

from harness.api import pod_path
from harness.case import check, run
from harness.certificates import Authority
from harness.cluster import EXTENDER_MANIFESTS, Cluster
from harness.control_plane import EXTENDER_NAMESPACE, HOST, ControlPlane, built_program
from harness.extender import Extender
from harness.objects import pod
from harness.processes import Failure, wait_for
from harness.replicas import pod_of
from harness.scheduler import replace_once
from harness.workload import random_nodes, random_pods

SEED = 53
# Each is needed at another place: to serve, to ask the API server, to take in a change, to stop.
NEEDED = ("accept4", "connect", "futex", "rt_sigtimedwait")


def under(*options):
    return [built_program("tests/under_profile"), *options,
            ControlPlane.manifest("seccomp/gpushare-extender.json")]


def start(cluster, before, flags=()):
    kubeconfig = cluster.control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                                  "gpushare-extender")
    extender = Extender(cluster.processes, kubeconfig, flags, before)
    extender.start(wait=False)
    return extender


def does_everything(cluster, tls):
    """Killed at the first call that the profile does not name: elections, mutual TLS, binds, a
    crash and a restart, an inspect, the metrics, a change of certificates, an orderly end."""
    server, client = tls.issue("server", "serverAuth"), tls.issue("client")
    cluster.api.create(pod_path(EXTENDER_NAMESPACE), pod_of("extender-0"))
    extender = start(cluster, under("--kill"), [
        "--leader-elect", "--pod-name", "extender-0", "--pod-namespace", EXTENDER_NAMESPACE,
        "--tls-cert", server[0], "--tls-key", server[1], "--tls-client-ca", tls.cert])
    wait_for("the extender is ready", extender.ready)
    wait_for("it leads", lambda: extender.metrics().get("gpushare_leader") == 1)
    cluster.scheduler.start(f"https://{HOST}:{extender.port}", edit=lambda text: replace_once(
        text, "enableHTTPS: false", "enableHTTPS: true\n  tlsConfig:\n"
        f"    caFile: {tls.cert}\n    certFile: {client[0]}\n    keyFile: {client[1]}"))
    cluster.create_pods(random_pods(40, SEED))  # with 60 it may be full to the last unit
    cluster.wait_settled(60)
    extender.kill()
    extender.start()
    cluster.create_pods([pod("after", 1)])
    cluster.wait_bound("after", 60)
    extender.verify_and_stop()
    cluster.scheduler.stop()


def names_are_resolved():
    """An API server's name, as libcurl asks libc for it: 2 says that there is no such host."""
    done = subprocess.run([*under("--kill"), "getent", "ahosts", "gpushare-e2e.invalid"], check=False)
    check(done.returncode == 2, f"a name was looked up with the outcome {done.returncode}")


def shipped_as_it_is(cluster):
    """What is not named is refused, not fatal: a program that was not meant to run there."""
    extender = start(cluster, under())
    wait_for("the extender is ready", extender.ready)
    extender.verify_and_stop()


def nothing_spare(cluster, name):
    """Without a call that it needs, it does not come up, or not down again."""
    extender = start(cluster, under("--without", name))
    try:
        wait_for("ready", extender.ready, 5)
        extender.process.signal(signal.SIGTERM)
        extender.process.popen.wait(5)
        ended = extender.process.popen.returncode
    except Exception:  # pylint: disable=broad-except
        return
    finally:
        extender.process.kill()
    raise Failure(f"without {name} it comes up, and ends with {ended}")


def body():
    with Cluster(nodes=random_nodes(10, SEED), extender=False, scheduler=None) as cluster:
        cluster.control_plane.apply(*EXTENDER_MANIFESTS)
        does_everything(cluster, Authority(cluster.control_plane.path("tls"), "ours"))
        names_are_resolved()
        shipped_as_it_is(cluster)
        for name in NEEDED:
            nothing_spare(cluster, name)
        print(f"note: refuses to work without each of {', '.join(NEEDED)}")


run(body)
