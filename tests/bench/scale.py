# SPDX-License-Identifier: Apache-2.0
"""The part `scale` of bench.py: three times the nodes that Kubernetes is tested with, 8 GPUs each,
and what happens there when a watch has to list anew or a replica takes over."""

import json
import signal
import statistics
import time
import urllib.request

NODES, PODS_EACH = 15000, 20
LEASE_S = 15  # GS_ELECTION_LEASE_NS
TAKE_OVERS = 3
GPU_POD = {"metadata": {"name": "probe", "namespace": "default", "uid": "probe"}, "spec": {
    "containers": [{"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}]}}


def spec(nodes):
    return f"nodes={nodes},gpus=8,mem=80,pods={nodes * PODS_EACH}"


def ask(port, method, path, body):
    text = body if isinstance(body, str) else json.dumps(body)
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", text.encode(),
                                     {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def create_pod(api, name):
    ask(api, "POST", "/api/v1/namespaces/default/pods", {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "none"}]}})


def verbs(bench, ours, api):
    bench.create(ours, api, 5, 20000)
    bench.settle(ours)
    for verb, most_ms in (("filter", 1.8), ("prioritize", 2.9)):
        bench.latency(f"the same: {verb}", most_ms, ours, verb, "--names", NODES, "--duration",
                      bench.args.duration, api=api)
    bench.latency("the same: bind", 2, ours, "bind", "--requests", 600, "--duration", 0, "--names",
                  5000, api=api)


def names_a_node(port):
    try:
        answer = ask(port, "POST", "/gpushare-scheduler/filter",
                     {"Pod": GPU_POD, "NodeNames": ["node-00000"]})
    except OSError:
        return False
    return json.loads(answer)["NodeNames"] == ["node-00000"]


class Replicas:
    """Two, of which one leads."""

    def __init__(self, bench, config, api):
        self.bench, self.config = bench, config
        for name in "ab":
            create_pod(api, name)
        self.pair = [self.start("a"), self.start("b")]
        self.wait(self.pair[0])

    def start(self, name):
        process, port, _ = self.bench.extend(self.config, "--leader-elect", "--pod-namespace",
                                             "default", "--pod-name", name)
        return name, process, port

    def wait(self, replica):
        _, process, port = replica
        self.bench.wait(process, lambda: names_a_node(port))

    def take_over(self, number):
        """Seconds from the leader's signal until the other one answers with names."""
        (name, leader, _), other = self.pair
        began = time.monotonic()
        leader.send_signal(number)
        self.wait(other)
        seconds = time.monotonic() - began
        leader.wait()
        self.pair = [other, self.start(name)]
        return seconds

    def stop(self):
        for _, process, _ in self.pair:
            self.bench.stop(process)


def take_overs(bench, config, api):
    replicas = Replicas(bench, config, api)
    rounds = min(bench.args.rounds, TAKE_OVERS)
    killed, ended = (statistics.median(replicas.take_over(number) for _ in range(rounds))
                     for number in (signal.SIGKILL, signal.SIGTERM))
    bench.row(f"take-over after SIGKILL, beyond the Lease's {LEASE_S} s", killed - LEASE_S, 5, "s")
    bench.row("take-over after SIGTERM", ended, 5, "s")
    replicas.stop()


def rows(bench):
    api, config = bench.serve(spec(NODES))
    process, ours, seconds = bench.extend(config)
    bench.row("15,000 nodes, 300,000 GPU pods: start to ready", seconds, 3, "s")
    verbs(bench, ours, api)
    bench.stop(process)
    take_overs(bench, config, api)
