# SPDX-License-Identifier: Apache-2.0
"""Many at once: schedulers that ask and bind in threads, tenants that delete, an API server that loses PATCHes, Bindings and
their answers, or is away, replicas that are killed while they lead. Nothing is known of who was told what; what is so
always is judged, and what is so when all is quiet."""

import json
import random
import re
import signal
import threading
import time

import model
from model import Pod
from stand_in import Api, Extender, request, wait_for

SECONDS, THREADS = 14, 6
PREFIX = "/gpushare-scheduler/"
KEPT = re.compile(r"^gpushare_promised_pods (\S+)$", re.M)
SABOTAGE = ["over-books", "keeps", "dies"]


class Storm:
    def __init__(self, build, rng, judge, sabotage, log):
        self.rng, self.judge, self.sabotage = rng, judge, sabotage
        self.api, self.counts, self.lock = Api(rng), {}, threading.Lock()
        self.api.on_binding = self.judge_binding
        self.names = [f"n{at}" for at in range(rng.randint(2, 6))]
        for name in self.names:
            self.api.put(model.node(name, rng.choice([[16], [16, 16], [24, 8, 8]])))
        self.pods, self.tried, self.serial, self.over = {}, set(), 0, False
        replicas, flags = rng.choice([1, 1, 2]), []
        if replicas == 2:
            flags = ["--leader-elect", "--pod-namespace", "kube-system"]
            for at in range(2):
                self.api.put({"kind": "Pod", "apiVersion": "v1", "metadata": {
                    "name": f"ext-{at}", "namespace": "kube-system", "uid": f"ext-{at}", "labels": {}}, "spec": {
                        "nodeName": "none", "containers": []}, "status": {"phase": "Running"}})
        self.replicas = [Extender(build, self.api, *flags, *(["--pod-name", f"ext-{at}"] if flags else []),
                                  *(["--nominate=false"] if rng.random() < 0.5 else []), log=log and f"{log}.{at}")
                         for at in range(replicas)]

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def charged(self, name, but=None):
        """{GPU: [units, percent, pods]} of who is bound there, as the API has it. Its lock is held."""
        sums = {}
        for obj in self.api.objects["pods"].values():
            pod = self.pods.get(obj["metadata"]["uid"])
            if pod and pod is not but and obj["spec"].get("nodeName") == name:
                for gpu in gpus_of(obj):
                    model.Model.add(sums, gpu, pod)
        return sums

    def judge_binding(self, obj):
        if self.sabotage == "over-books":
            obj["metadata"]["annotations"][model.IDX] = "0"
        self.count("bound")
        pod, name = self.pods[obj["metadata"]["uid"]], obj["spec"]["nodeName"]
        gpus = {gpu["idx"]: gpu for gpu in model.gpus_of(self.api.objects["nodes"][("", name)])}
        sums = self.charged(name, pod)
        for gpu in gpus_of(obj):
            if not model.Model.takes(gpus[gpu], sums.get(gpu, [0, 0, 0]), pod):
                self.judge(f"OVER-BOOKED {pod.name} {name} {gpu} {sums.get(gpu)}")

    def ask(self, verb, body):
        """Of who leads; None: nobody does, or no answer came."""
        for one in self.replicas:
            try:
                status, text = request(one.port, "POST", PREFIX + verb, body, seconds=15)
            except (OSError, TimeoutError):
                continue
            self.count(verb)
            if status != 200:
                self.judge(f"{verb} answers {status} {text[:200]}")
                continue
            answer = json.loads(text)
            error = answer.get("Error") or "" if isinstance(answer, dict) else ""
            if not any(word in error for word in ("standby", "not ready", "does not lead")):
                return answer
        return None

    def gang(self, rng):
        with self.lock:
            self.serial += 1
            number = self.serial
        size, namespace, units = rng.choice([1, 2, 3, 5, 8]), rng.choice("ab"), rng.choice([2, 4, 6, 10])
        found = []
        for at in range(size):
            pod = Pod(f"p{number}.{at}", units, namespace, percent=rng.choice([0, 0, 20]), priority=rng.choice([0, 0, 5]),
                      spec_group=f"g{number % 7}" if size > 1 and at % 2 else None,
                      labels={model.KEYS[0]: f"g{number % 7}"} if size > 1 else None)
            with self.api.lock:
                self.pods[pod.uid] = pod
                self.api.put(pod.obj)
            found.append(pod)
        return found

    def scheduler(self, seed):
        rng, members = random.Random(seed), []
        while not self.over:
            if not members or rng.random() < 0.5:
                members = self.gang(rng)
            named = []
            for pod in members:
                answer = self.ask("filter", {"Pod": pod.obj, "NodeNames": self.names})
                found = (answer or {}).get("NodeNames") or []
                with self.api.lock:     # who has ended, or is bound, is answered as any pod
                    known = self.pods.get(pod.uid) and not pod.obj["spec"].get("nodeName") and pod.uid not in self.tried
                if len(found) > 1 and pod.group and known:
                    self.judge(f"a member gets several nodes: {found}")
                if found:
                    named.append((pod, found[0]))
                elif rng.random() < 0.3:
                    break
            rng.shuffle(named)
            for pod, name in named:
                self.tried.add(pod.uid)
                if rng.random() < 0.85:
                    self.ask("bind", {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid,
                                      "Node": name if rng.random() < 0.95 else rng.choice(self.names)})
            with self.api.lock:
                for pod in list(self.pods.values()):
                    bound = self.api.objects["pods"][pod.key]["spec"].get("nodeName")
                    if rng.random() < (0.12 if bound else 0.02) and pod not in members:
                        del self.pods[pod.uid]
                        self.api.delete("pods", pod.key)
            members = [pod for pod in members if pod.uid in self.pods and rng.random() < 0.8 and
                       not pod.obj["spec"].get("nodeName")]

    def troubles(self, until):
        rng = self.rng
        while time.monotonic() < until:
            what = rng.choice(["lost", "away", "kill", "term", "calm", "stop"])
            one = rng.choice(self.replicas)
            self.count(what)
            if what == "lost":
                self.api.lost = rng.choice([0.02, 0.1])
            elif what == "away":
                self.api.away = True
                time.sleep(rng.random())
                self.api.away = False
            elif what in ("kill", "term"):
                one.process.send_signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)
                status = one.process.wait(40)
                if status not in (0, -9, -15):      # it had not begun yet
                    self.judge(f"it ended with {status}: {one.said()[-1500:]}")
                one.start()
            elif what == "stop":
                one.process.send_signal(signal.SIGSTOP)
                time.sleep(rng.random())
                one.process.send_signal(signal.SIGCONT)
            else:
                self.api.lost = 0
            time.sleep(rng.random() * 1.5)

    def quiet(self):
        """No place is kept, and inspect says what the API has."""
        self.api.lost = 0
        if self.sabotage == "dies":
            self.replicas[0].process.send_signal(signal.SIGABRT)
            self.replicas[0].process.wait()
        for one in self.replicas:
            if one.process.poll() is not None:
                return self.judge(f"it ended with {one.process.poll()}: {one.said()[-1500:]}")

        def agrees():
            texts = [one.get(PREFIX + "inspect") for one in self.replicas]
            if any(status != 200 for status, _ in texts):
                return False
            for _, text in texts:
                for node in json.loads(text)["nodes"]:
                    if node["name"] in self.names:
                        with self.api.lock:
                            sums = self.charged(node["name"])
                        if any(dev["usedGPU"] != sums.get(dev["id"], [0])[0] for dev in node["devs"]) or \
                                node.get("promised") or self.sabotage == "keeps":
                            return False
            return all(float(KEPT.search(one.get("/metrics")[1])[1]) == 0 for one in self.replicas)
        try:        # a bind without an answer may be open for 65 s
            wait_for("quiet", agrees, 5 if self.sabotage else 80)
        except TimeoutError:
            self.judge("when all is quiet inspect is not the API's, or places are kept: " +
                       self.replicas[0].get(PREFIX + "inspect")[1][:600])
        return None

    def run(self):
        for one in self.replicas:
            wait_for("ready", lambda one=one: ready(one), 40)
        threads = [threading.Thread(target=self.guarded, args=(self.rng.random(),)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            self.troubles(time.monotonic() + SECONDS)
        finally:
            self.over = True
            for thread in threads:
                thread.join()
        for one in self.replicas:
            if one.process.poll() is None:
                wait_for("ready", lambda one=one: ready(one), 60)
        self.quiet()
        for one in self.replicas:
            if one.process.poll() is None:
                self.counts["rss"] = max(self.counts.get("rss", 0), one.rss_kib())
                one.process.terminate()
                if (status := one.process.wait(40)) != 0 and not self.sabotage:
                    self.judge(f"it ended with {status}: {one.said()[-1500:]}")

    def guarded(self, seed):
        try:
            self.scheduler(seed)
        except (TimeoutError, OSError, KeyError, ValueError) as err:
            self.judge(f"{type(err).__name__} {err}")


def ready(one):
    try:
        return one.process.poll() is not None or one.get("/readyz")[0] == 200
    except OSError:
        return False


def gpus_of(obj):
    return [int(word) for word in obj["metadata"].get("annotations", {}).get(model.IDX, "").split(",") if word]


def one_world(build, rng, judge, sabotage=None, log=None):
    storm = Storm(build, rng, judge, sabotage, log)
    try:
        storm.run()
    finally:
        for one in storm.replicas:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        storm.api.end()
    return storm.counts
