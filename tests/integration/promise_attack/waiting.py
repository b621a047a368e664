# SPDX-License-Identifier: Apache-2.0
"""Binds that wait for one of --bind-workers: hundreds at once, repeated, for other nodes, of pods that end or are made anew
meanwhile, by clients that go away; an API server that is slow, hangs, loses, refuses or carries a Binding out late; watches
that freeze, are cut or expire; nodes that shrink or go; extenders that are killed or frozen, and elections. What the API
server carried out is judged as it comes, what was refused by sums that hold wherever the memory is, and the ledger at the end."""

import http.client
import json
import re
import signal
import socket
import threading
import time

import model
import stand_in
from model import Pod
from stand_in import Extender, fake, wait_for

PREFIX = "/gpushare-scheduler/"
SLACK_S = 2.0               # by which the extender, the watch or this machine may be late
BACK_S = 30 + SLACK_S       # a bind whose turn does not come gives its place back
OPEN_S = 65                 # one without an answer is open
METRICS = {"gpushare_invariant_violations_total": 0, "gpushare_binding_pods": 0, "gpushare_reserved_pods": 0}
SABOTAGE = ["over-books", "drops one", "false success", "refuses", "forgets who waits", "other units", "keeps", "dies"]
KINDS = {   # what may happen; calm ones are judged by what is refused as well
    "calm": {"fates": ["ok", "slow", "slow", "409", "422"], "late": 0, "troubles": ["none"]},
    "ends": {"fates": ["ok", "slow", "slow", "late answer"], "late": 0, "troubles": ["delete", "delete", "anew", "finish", "none"]},
    "faults": {"fates": ["ok", "ok", "slow", "late answer", "500", "500 done", "cut", "cut done", "409", "429", "hang", "hang done"],
               "late": 50, "troubles": ["freeze", "410", "cut", "delete", "anew", "finish", "shrink", "gone", "hang all"]},
    "restarts": {"fates": ["ok", "slow", "slow", "late answer", "500 done", "cut", "cut done", "hang", "hang done"], "late": 2,
                 "troubles": ["kill", "kill", "term", "stop", "stop long", "freeze", "410", "delete", "anew", "gone"]},
    "election": {"fates": ["ok", "slow", "slow", "late answer", "500 done", "cut done", "hang done"], "late": 2,
                 "troubles": ["kill leader", "term leader", "stop leader", "lease", "freeze", "410", "delete", "anew"]}}


def ready(one):
    try:
        return one.process.poll() is not None or one.get("/readyz")[0] == 200
    except OSError:
        return False


class Handler(stand_in.Handler):
    def collection(self, api, kind, namespace, query):
        if query.get("watch") not in ("1", "true"):
            return super().collection(api, kind, namespace, query)
        self.close_connection = True
        since, cut = int(query.get("resourceVersion") or 0), api.cut
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        if since < api.expired:
            return self.wfile.write(json.dumps({"type": "ERROR", "object": {
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}}).encode() + b"\n")
        with api.lock:
            at = sum(rev <= since for rev, _ in api.history[kind])
        while not api.ended and cut == api.cut:
            with api.changed:
                while (at == len(api.history[kind]) or api.frozen) and not api.ended and cut == api.cut:
                    api.changed.wait(0.5)
                events = [] if api.frozen else api.history[kind][at:]
                at += len(events)
            self.wfile.write(b"".join(line for _, line in events))
        return None

    def one(self, api, kind, key, sub, body):
        if kind != "pods" or sub != "/binding":
            if self.command == "GET" and "500" in api.fates and api.rng.random() < 0.2:
                return self.fails(api.rng.choice([500, 429, 504]))
            return super().one(api, kind, key, sub, body)
        came, sent = time.monotonic(), json.loads(body)
        uid = (sent.get("metadata") or {}).get("uid")
        with api.lock:
            api.sent.add(uid)
            fate, pause = "hang" if api.hang_all else api.rng.choice(api.fates), api.rng.random()
        if fate in ("409", "422", "429", "500"):
            return self.fails(int(fate), "Operation cannot be fulfilled on pods: try again")
        if fate == "slow":
            time.sleep(pause * api.slow_s)
        elif fate.startswith("hang"):
            time.sleep(4.2 if api.late > 4 and fate == "hang done" else 0)
            time.sleep(pause ** 3 * max(0, api.late - 4.2) if api.late > 4 else pause * api.late)
            if fate == "hang done":
                self.carry_out(api, key, sent, came)
            time.sleep(max(0, 5 - (time.monotonic() - came)))
        elif fate.endswith("done"):
            self.carry_out(api, key, sent, came)
        if fate == "500 done":
            return self.fails(500)
        if fate.startswith(("cut", "hang")):
            self.close_connection = True
            return None
        status, text = self.carry_out(api, key, sent, came)
        if fate == "late answer":
            time.sleep(pause * (5 if api.late > 4 else 2))
        return self.say(201, {"kind": "Status", "status": "Success", "code": 201}) if status == 201 else self.fails(status, text)

    @staticmethod
    def carry_out(api, key, sent, came):
        with api.lock:
            obj, uid = api.objects["pods"].get(key), sent["metadata"].get("uid")
            if not obj:
                return 404, f'pods "{key[1]}" not found'
            if uid and uid != obj["metadata"]["uid"]:
                return 409, "the UID in the precondition does not match"
            if obj["metadata"].get("deletionTimestamp"):
                return 409, f"pod {key[1]} is being deleted, cannot be assigned to a host"
            if obj["spec"].get("nodeName"):
                return 409, f'pod {key[1]} is already assigned to node "{obj["spec"]["nodeName"]}"'
            obj["spec"]["nodeName"] = sent["target"]["name"]
            obj["metadata"].setdefault("annotations", {}).update(sent["metadata"].get("annotations") or {})
            api.on_carried_out(obj, came)
            api.note("pods", "MODIFIED", obj)
            return 201, ""


class Api(stand_in.Api):
    handler = Handler

    def __init__(self, rng, kind):
        self.frozen, self.cut, self.expired, self.hang_all = False, 0, 0, False
        self.sent, self.fates, self.late, self.slow_s = set(), KINDS[kind]["fates"], KINDS[kind]["late"], rng.choice([0.1, 0.5, 2])
        super().__init__(rng)


class Bind:
    """A bind that was asked for. What it may hold from began to until, whoever refused it."""

    def __init__(self, pod, name):
        self.pod, self.node, self.began, self.answered, self.until, self.error = pod, name, time.monotonic(), None, None, None


class World:
    def __init__(self, build, rng, judge, sabotage, log):
        self.rng, self.judge, self.sabotage = rng, judge, sabotage
        self.kind = rng.choice(["calm", "ends"]) if sabotage in ("refuses", "forgets who waits") else rng.choice(list(KINDS))
        self.exact = self.kind in ("calm", "ends")
        self.api, self.counts, self.lock = Api(rng, self.kind), {self.kind: 1}, threading.RLock()
        self.api.on_carried_out = self.judge_binding
        self.sizes, self.pods, self.binds, self.filters, self.uids, self.threads = {}, {}, [], [], {}, []
        self.blind, self.carried, self.ended, self.dropped, self.serial = [], {}, {}, False, 0
        for at in range(rng.choice([1, 2, 4, 8])):
            self.put_node(f"n{at}", rng.choice([[80], [80], [16, 16]] if self.kind == "calm" else [
                [16], [80], [16, 16], [80] * 4, [80] * 8, [24, 8, 8]]))
        self.names, self.closes = list(self.sizes), rng.random() < (0.3 if self.exact else 0.7)
        self.workers, flags = rng.choice([1, 1, 2, 16]), []
        if self.kind == "election":
            flags = ["--leader-elect", "--pod-namespace", "kube-system"]
            for at in range(2):
                self.api.put({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"ext-{at}", "namespace": "kube-system",
                              "uid": f"ext-{at}", "labels": {}}, "spec": {"nodeName": "none", "containers": []},
                              "status": {"phase": "Running"}})
        self.replicas = [Extender(build, self.api, "--nominate=false", "--bind-workers", str(self.workers), *flags, *(
            ["--pod-name", f"ext-{at}"] if flags else []), log=log and f"{log}.{at}")
                         for at in range(2 if flags else 1)]
        self.says = f"{self.kind} --bind-workers {self.workers}"

    def count(self, what, more=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + more

    def wrong(self, *words):
        self.judge(" ".join(str(word) for word in (f"{self.says}:", *words)))

    def put_node(self, name, sizes):
        with self.api.lock:
            self.sizes.setdefault(name, []).append((time.monotonic(), sizes))
            self.api.put(model.node(name, sizes))

    def new_pod(self, units, name=None, group=None, count=1):
        self.serial += 1
        pod = Pod(name or f"p{self.serial}", units, count=count, spec_group=group)
        with self.api.lock:
            self.pods[pod.uid] = pod
            self.api.put(pod.obj)
        return pod

    # ---- what the API server carried out

    def charged(self, name, but=None):
        """{GPU: units} of who is bound there, as the API has it. Its lock is held."""
        sums = {}
        for obj in self.api.objects["pods"].values():
            pod = self.pods.get(obj["metadata"]["uid"])
            if pod and pod is not but and obj["spec"].get("nodeName") == name and obj["status"]["phase"] not in ("Succeeded", "Failed"):
                for gpu in model.idx_of(obj):
                    sums[gpu] = sums.get(gpu, 0) + pod.share
        return sums

    def known_since(self, moment):
        """What was so from then until the moment may be what the extender went by."""
        since = moment - SLACK_S
        for began, ended in reversed(self.blind):
            if (ended or moment) + SLACK_S > since:
                since = min(since, began - SLACK_S)
        return since

    def judge_binding(self, obj, came):
        notes, name = obj["metadata"]["annotations"], obj["spec"]["nodeName"]
        pod = self.pods[obj["metadata"]["uid"]]
        if self.sabotage == "over-books":
            notes[model.IDX] = "0"
        if self.sabotage == "other units":
            notes["ALIYUN_COM_GPU_MEM_POD"] = "1"
        self.count("bound")
        self.carried[pod.uid] = name
        if notes["ALIYUN_COM_GPU_MEM_POD"] != str(pod.share * pod.count) or len(set(model.idx_of(obj))) != pod.count:
            self.wrong("another pod's units", pod.name, pod.uid, pod.share, pod.count, notes)
        since, history = self.known_since(came), self.sizes[name]
        sizes = [one for at, (_, one) in enumerate(history) if at + 1 == len(history) or history[at + 1][0] > since]
        sums = self.charged(name, pod)
        for gpu in model.idx_of(obj):
            if sums.get(gpu, 0) + pod.share > max((one[gpu] for one in sizes if gpu < len(one)), default=0):
                self.wrong("OVER-BOOKED", pod.name, pod.uid, pod.share, name, gpu, sums, history, f"came {came:.2f}",
                           [(one.obj["metadata"]["name"], one.gpus) for one in self.pods.values() if self.carried.get(one.uid) == name])
        if self.sabotage == "drops one" and not self.dropped:
            self.dropped = True
            threading.Timer(1, self.drop, (pod,)).start()

    def drop(self, pod):
        self.api.objects["pods"].pop(pod.key, None)     # and nobody is told

    # ---- asking

    def send(self, port, verb, body, seconds):
        conn = http.client.HTTPConnection(fake.HOST, port, timeout=seconds)
        try:
            conn.connect()
            conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            conn.request("POST", PREFIX + verb, json.dumps(body))
            answer = conn.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            conn.close()

    def bind(self, pod, name, patience=100.0):
        """Of every replica, until one says that it leads."""
        bind = Bind(pod, name)
        with self.lock:
            self.binds.append(bind)
            self.uids.setdefault(pod.uid, []).append(bind)
        known, answer = self.exact and pod.uid not in self.api.sent, None
        for one in self.replicas:
            try:
                status, answer = self.send(one.port, "bind", {"PodName": pod.name, "PodNamespace": pod.namespace,
                                                              "PodUID": pod.uid, "Node": name}, patience)
                if status == 503:  # one namespace's part of the queue is full
                    answer = None
                    break
                if status != 200:
                    self.wrong("bind answers", status, answer)
            except TimeoutError:
                if patience == 100 and self.exact:
                    self.wrong("a bind without an answer for 100 s", pod.name, name)
            except (OSError, http.client.HTTPException, ValueError):
                pass        # it was killed
            if answer and not any(word in answer["Error"] for word in ("standby", "not ready", "does not lead")):
                break
            answer = None
        self.count("binds" if answer else "no answer")
        if not answer:
            return None
        now = time.monotonic()
        if self.sabotage == "false success" and self.rng.random() < 0.3:
            answer["Error"] = ""
        if self.sabotage == "refuses" and self.rng.random() < 0.2 and not answer["Error"]:
            answer["Error"], known = "insufficient", True
            self.api.sent.discard(pod.uid)
        bind.error = answer["Error"]
        with self.lock:
            self.counts["longest_s"] = max(self.counts.get("longest_s", 0), round(now - bind.began, 1))
            bind.answered = now
            if bind.error:
                self.count("refused: " + re.sub(r'\S*\d\S*', "_", bind.error)[:70])
                bind.until = None if self.carried.get(pod.uid) == name and self.sabotage != "refuses" else now + SLACK_S
            elif self.carried.get(pod.uid) != name:
                self.wrong("success, and it is on", self.carried.get(pod.uid), pod.name, pod.uid, name)
        if bind.error and known and pod.uid not in self.api.sent and len(self.uids[pod.uid]) == 1 and \
                pod.uid not in self.ended and now - bind.began < 28:
            if self.surely_fits(pod, name, bind.began, now):
                self.wrong("refused, though it fits wherever all others are:", pod.name, pod.share, pod.count, name, bind.error,
                           f"{bind.began:.2f} {now:.2f}", self.holders(name, bind.began, now, pod.uid))
        return bind

    def holders(self, name, began, ended, but):
        """(name, units, ...) of all that may hold memory there at any time then."""
        with self.lock:
            return [(one.pod.name, one.pod.share * one.pod.count, round(one.began, 2), one.until and round(one.until, 2))
                    for one in self.binds if one.node == name and one.pod.uid != but and one.began <= ended and
                    min(one.until or 1e9, self.ended.get(one.pod.uid, 1e9) + (SLACK_S if one.answered else 1e9)) >= began - SLACK_S]

    def surely_fits(self, pod, name, began, ended):
        total = sum(one[1] for one in self.holders(name, began, ended, pod.uid))
        return pod.count == 1 and not pod.group and sum(max(0, size - pod.share + 1) for size in self.sizes[name][-1][1]) > total

    def ask(self, verb, pod):
        began = time.monotonic()
        try:
            status, answer = self.send(self.replicas[0].port, verb, {"Pod": pod.obj, "NodeNames": self.names}, 20)
        except (OSError, http.client.HTTPException, ValueError) as err:
            return self.wrong(verb, type(err).__name__, err) if self.exact else None
        self.count(verb)
        if status != 200:
            self.wrong(verb, status, answer)
        if verb == "filter" and self.exact and pod.uid not in self.uids:
            if self.sabotage == "forgets who waits":
                with self.api.lock:
                    answer["NodeNames"] = [name for name in self.names if pod.share <= max(
                        size - self.charged(name).get(gpu, 0) for gpu, size in enumerate(self.sizes[name][-1][1]))]
            now, found = time.monotonic(), answer.get("NodeNames") or []
            self.filters.append((began, now, pod, found))
            for name in set(self.names) - set(found):
                if self.surely_fits(pod, name, began, now):
                    self.wrong("filter leaves out", name, "for", pod.share, answer, self.holders(name, began, now, pod.uid))
            return found
        return verb == "filter" and answer.get("NodeNames")

    def judge_filters(self):
        """No node was named whose memory binds held that were read before, found room for sure, and succeeded later.
        Of one that is repeated the place goes with the first answer."""
        for began, ended, pod, found in self.filters:
            for name in found:
                held = [one for one in self.binds if one.node == name and one.error == "" and one.began + SLACK_S < began and
                        one.answered - one.began < 28 and self.ended.get(one.pod.uid, 1e9) > ended and len(self.uids[one.pod.uid]) == 1 and
                        self.surely_fits(one.pod, name, one.began, one.began + SLACK_S)]
                held = {one.pod.uid: one.pod.share * one.pod.count for one in held}
                if sum(held.values()) + pod.share * pod.count > sum(self.sizes[name][-1][1]):
                    self.wrong("filter named", name, "for", pod.share, f"at {began:.2f}, where there were", held)

    # ---- what happens

    def start(self, *args):
        thread = threading.Thread(target=self.bind, args=args, daemon=True)
        thread.start()
        self.threads.append(thread)

    def burst(self):
        rng = self.rng
        some = [pod for pod in self.pods.values() if pod.uid not in self.carried and pod.uid not in self.ended]
        batch = [self.new_pod(rng.choice([2, 4, 4, 8, 16]), group="g" if not self.exact and rng.random() < 0.1 else None,
                              count=rng.choice([1] * 9 + [2]))
                 for _ in range(rng.choice([3, 8, 20] if self.kind == "calm" else [3, 20, 60, 150]))] + rng.sample(some, min(len(some), 20))
        time.sleep(rng.choice([0, 0.05]))
        for pod in batch:
            name = rng.choice(self.names)
            if pod.group or rng.random() < 0.05:
                name = ((self.ask("filter", pod) or []) + [name])[0]
            if not self.exact or pod.uid not in self.uids:
                self.start(pod, name, rng.choice([0.01, 0.5, 5]) if self.closes and rng.random() < 0.2 else 100.0)
            while rng.random() < 0.15:
                self.start(pod, name if rng.random() < 0.5 else rng.choice(self.names))
        end = time.monotonic() + rng.random() * 5
        while time.monotonic() < end:
            self.ask(rng.choice(["filter", "filter", "prioritize"]), Pod("asker", rng.choice([1, 4, 16, 16, 80])))
            time.sleep(rng.random())

    def end(self, pod, what):
        with self.api.lock:
            obj = self.api.objects["pods"].get(pod.key)
            if not obj or obj["metadata"]["uid"] != pod.uid:
                return
            self.ended[pod.uid] = time.monotonic()
            if what == "finish":
                obj["status"]["phase"] = "Succeeded"
                return self.api.put(obj)
            self.api.delete("pods", pod.key)
            if what == "anew":
                pod = self.new_pod(self.rng.choice([1, 2, 8, 16]), pod.name)
        if what == "anew":
            self.start(pod, self.rng.choice(self.names))

    def signalled(self, one, what):
        one.process.send_signal(signal.SIGKILL if what.startswith("kill") else signal.SIGTERM)
        if (status := one.process.wait(60)) not in (0, -9, -15):
            self.wrong("it ended with", status, one.said()[-1500:])
        one.start()

    def trouble(self, what):
        rng, api, one = self.rng, self.api, self.rng.choice(self.replicas)
        self.count(what)
        if what.endswith("leader"):
            holder = next(iter(api.leases.values()), {"spec": {}})["spec"].get("holderIdentity") or ""
            one = next((each for at, each in enumerate(self.replicas) if f"ext-{at}" in holder), one)
        if what in ("delete", "anew", "finish"):
            some = [pod for pod in self.pods.values() if pod.uid not in self.ended]
            for pod in rng.sample(some, min(len(some), rng.choice([1, 10, 40]))):
                self.end(pod, what)
        elif what.startswith(("kill", "term", "stop")):
            self.blind.append([time.monotonic(), None])
            if what.startswith("stop"):
                one.process.send_signal(signal.SIGSTOP)
                time.sleep({"stop": 6, "stop long": 34, "stop leader": rng.choice([3, 22])}[what])
                one.process.send_signal(signal.SIGCONT)
            else:
                self.signalled(one, what)
            wait_for("ready", lambda: ready(one), 60)
            self.blind[-1][1] = time.monotonic()
        elif what in ("freeze", "410", "cut"):
            self.blind.append([time.monotonic(), None])
            api.frozen = what == "freeze"
            time.sleep(rng.choice([0.5, 3, 9]) if api.frozen else 0)
            with api.changed:
                api.frozen, api.cut, api.expired = False, api.cut + (what != "freeze"), api.rev if what == "410" else api.expired
                api.changed.notify_all()
            time.sleep(1 if what != "freeze" else 0)
            self.blind[-1][1] = time.monotonic()
        elif what == "shrink":
            name = rng.choice(self.names)
            self.put_node(name, [rng.choice([size, max(size // 2, min(size, 16))]) for size in self.sizes[name][0][1]])
        elif what == "gone":
            name = rng.choice(self.names)
            self.api.delete("nodes", ("", name))
            time.sleep(rng.choice([0.1, 3]))
            self.put_node(name, self.sizes[name][-1][1])
        elif what == "hang all":
            api.hang_all = True
            time.sleep(rng.choice([5, 20, 38]))
            api.hang_all = False
        elif what == "lease":
            with api.lock:
                if rng.random() < 0.5:
                    api.leases.clear()
                for lease in api.leases.values():
                    lease["spec"]["holderIdentity"] = ""

    def quiet(self, seconds):
        """No place is kept, and inspect is what the API has."""
        began, differs = time.monotonic(), []
        if self.sabotage == "dies":
            self.replicas[0].process.send_signal(signal.SIGABRT)
            self.replicas[0].process.wait()

        def agrees():
            differs.clear()
            for one in self.replicas:
                if one.process.poll() is not None:
                    differs.append(f"it ended with {one.process.poll()}: {one.said()[-1500:]}")
                    return True
                found = dict(re.findall(r"^(gpushare_\w+) (\S+)$", one.get("/metrics")[1], re.M))
                differs.extend((key, found[key]) for key, value in METRICS.items() if float(found[key]) != value)
                for node in json.loads(one.get(PREFIX + "inspect")[1])["nodes"]:
                    with self.api.lock:
                        sums = self.charged(node["name"])
                    differs.extend((node["name"], dev["id"], dev["usedGPU"], sums.get(dev["id"], 0), dev["pods"])
                                   for dev in node["devs"] if dev["usedGPU"] != sums.get(dev["id"], 0))
            return not differs and self.sabotage != "keeps"
        try:
            wait_for("quiet", agrees, 3 if self.sabotage == "keeps" else seconds)
        except TimeoutError:
            differs.append("kept")
        if differs:
            self.wrong(f"not the API's when quiet for {time.monotonic() - began:.0f} s:", differs[:8])
        self.count("quiet_s", round(time.monotonic() - began))

    def fill(self):
        """Each GPU to its brim, by pods of its size first: nothing is lost, and nobody is refused."""
        for name in self.names:
            for _ in self.sizes[name][-1][1]:
                with self.api.lock:
                    sums = self.charged(name)
                if (left := max(size - sums.get(gpu, 0) for gpu, size in enumerate(self.sizes[name][-1][1]))) > 0:
                    pod = self.new_pod(left)
                    time.sleep(0.3)
                    bind = wait_for("a leader", lambda pod=pod, name=name: self.bind(pod, name), 60)
                    if bind.error:
                        self.wrong("nothing else waits, and it is refused:", left, name, sums, bind.error)
        found = not self.replicas[1:] and self.ask("filter", Pod("last", 1)) or []
        if any(sum(self.charged(name).values()) >= sum(self.sizes[name][-1][1]) for name in found):
            self.wrong("filter names a full node", found)

    def run(self):
        rng = self.rng
        for one in self.replicas:
            wait_for("ready", lambda one=one: ready(one), 60)
        end = time.monotonic() + (12 if self.exact else 30)
        while time.monotonic() < end:
            self.burst()
            for _ in range(rng.randint(0, 2)):
                self.trouble(rng.choice(KINDS[self.kind]["troubles"]))
            time.sleep(rng.random() * 2)
        self.api.fates = ["ok"]
        for thread in self.threads:
            thread.join()
        self.judge_filters()
        for one in self.replicas:
            wait_for("ready", lambda one=one: ready(one), 60)
        late = 0 if self.exact else max(self.api.late, 5)
        self.quiet(SLACK_S + (BACK_S if self.closes else 0) + (SLACK_S + OPEN_S + late if not self.exact else 8))
        if not self.sabotage and all(one.process.poll() is None for one in self.replicas):
            self.fill()
            self.quiet(8)
        for one in self.replicas:
            if one.process.poll() is None:
                one.process.terminate()
                if (status := one.process.wait(40)) != 0 and not self.sabotage:
                    self.wrong("it ended with", status, one.said()[-1500:])


def one_world(build, rng, judge, sabotage=None, log=None):
    world = World(build, rng, judge, sabotage, log)
    try:
        world.run()
    finally:
        for one in world.replicas:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        world.api.end()
    return world.counts
