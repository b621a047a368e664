# SPDX-License-Identifier: Apache-2.0
"""kube-scheduler, configured from the project's own config/ files."""

import http.client
import os
import re
import ssl

from harness import release
from harness.control_plane import HOST, ROOT, kube_program
from harness.processes import free_port, on_host, wait_for

SHIPPED_ADDRESS = "http://127.0.0.1:29999"
SHIPPED_KUBECONFIG = "/etc/kubernetes/scheduler.conf"
SHARE = re.compile(r"^percentageOfNodesToScore: .*\n", re.MULTILINE)


def shipped(name):
    with open(os.path.join(ROOT, "config", name), encoding="utf-8") as source:
        return source.read()


def replace_once(text, old, new):
    if text.count(old) != 1:
        raise ValueError(f"{old!r} occurs {text.count(old)} times in a config file, not once")
    return text.replace(old, new)


def render_config(kubeconfig, extender_url, fast_client=False):
    """The shipped configuration with this run's addresses. extender_url None: no extender at all;
    fast_client: without the limit of 50 requests/s that would hide what is being measured."""
    text = shipped(release.SCHEDULER_CONFIG)
    if "GPUSHARE_ALL_NODES" in os.environ:
        text = all_nodes(text)
    client = f"{kubeconfig}\n  qps: 5000\n  burst: 5000" if fast_client else kubeconfig
    text = replace_once(text, SHIPPED_KUBECONFIG, client)
    if extender_url is None:
        text = text[:text.index("extenders:")]
    else:
        text = replace_once(text, SHIPPED_ADDRESS, extender_url)
    return text + release.scheduler_addresses(f"{HOST}:{free_port()}")


def sampled(config, share=None):
    """It stops looking for nodes at that share of them, in per cent; None: where it does by itself."""
    return SHARE.sub("", config) + (f"percentageOfNodesToScore: {share}\n" if share else "")


def all_nodes(config):
    """It looks at every node, as below 1.22, and wherever pods are not nominated."""
    return sampled(config, 100)


def without_prioritize(config):
    """The extender is not asked for scores."""
    config = replace_once(config, "  prioritizeVerb: prioritize\n", "")
    return replace_once(config, "  weight: 1\n", "")


class Scheduler:
    """One kube-scheduler; several may run on the same control plane, after each other or, with
    names and hosts of their own, side by side."""

    def __init__(self, processes, control_plane, name="kube-scheduler", host=None):
        self.processes = processes
        self.control_plane = control_plane
        self.program = "kube-scheduler"
        self.name, self.host = name, host
        self.process = None
        self.flags = ()

    def start(self, extender_url, fast_client=False, edit=lambda text: text):
        """edit: what a case changes in the shipped configuration, on purpose."""
        kubeconfig = self.control_plane.kubeconfig("system:kube-scheduler")
        self.start_with(edit(render_config(kubeconfig, extender_url, fast_client)))

    def start_with(self, config):
        path = self.control_plane.path(f"{self.name}-config.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(release.scheduler_words(config))
        self.launch([f"--config={path}"])

    def start_with_policy(self, extender_url):
        """The legacy way, before configuration files knew extenders."""
        path = self.control_plane.path("scheduler-policy.json")
        with open(path, "w", encoding="utf-8") as out:
            out.write(replace_once(shipped("scheduler-policy.json"), SHIPPED_ADDRESS, extender_url))
        kubeconfig = self.control_plane.kubeconfig("system:kube-scheduler")
        self.launch([f"--policy-config-file={path}", f"--kubeconfig={kubeconfig}", "--port=0"])

    def launch(self, flags):
        port = free_port()
        self.process = self.processes.start(self.name, [*on_host(self.host),
            kube_program(self.program), *flags, *self.flags, f"--bind-address={HOST}",
            f"--secure-port={port}", f"--cert-dir={self.control_plane.path(self.name)}", "-v=2"])
        wait_for("kube-scheduler is healthy", lambda: self.healthy(port))

    def healthy(self, port):
        self.process.must_run()
        # Its certificate is one it just made for itself; only liveness is asked.
        tls = ssl._create_unverified_context()  # pylint: disable=protected-access
        conn = http.client.HTTPSConnection(HOST, port, context=tls, timeout=5)
        try:
            conn.request("GET", "/healthz")
            return conn.getresponse().status == 200
        finally:
            conn.close()

    def stop(self):
        self.process.stop()
