# SPDX-License-Identifier: Apache-2.0
"""What the API server, the machines and their operators do wrong."""

import asyncio
import json
import signal
import time

from api import KINDS, chunk

LEASE_S = 12        # of kube-scheduler, in the layout over loopback


class Faults:
    def __init__(self, world):
        self.world, self.api, self.rng = world, world.api, world.rng_of("faults")
        self.kills = 0

    def one(self):
        return self.rng.choice(self.world.extenders)

    def calm(self):
        for one in self.world.extenders:
            one.client.calm()

    # ---- watches and lists

    def cut(self):
        client = self.one().client
        self.api.cut(lambda other, _: other is client)
        return client.name

    def expire(self):
        self.api.expire()

    def error_event(self):
        """An ERROR event, a cut line, or no JSON at all, and the end of the watch."""
        client, kind = self.one().client, self.rng.choice(KINDS)
        words = self.rng.choice([
            chunk("ERROR", json.dumps({"kind": "Status", "code": 410, "reason": "Expired",
                                       "status": "Failure", "message": "too old"})),
            chunk("ERROR", json.dumps({"kind": "Status", "code": 500, "reason": "InternalError",
                                       "status": "Failure", "message": "etcd"})),
            b'20\r\n{"type":"MODIFIED","object":{"me', b"5\r\nxxxx\n\r\n"])
        for watch in list(self.api.watches):
            if watch.client is client and watch.kind == kind:
                watch.last_words, watch.end = words, True
                watch.set()
        return client.name, kind, words[:30].decode()

    def freeze(self):
        """A watch that stands and says nothing; then it goes on, or is cut."""
        client, kind = self.one().client, self.rng.choice(("pods", "pods", "nodes"))
        seconds = self.rng.choice([1, 4, 8, 25])
        client.hold[kind] = True
        self.api.later(seconds, self.thaw, client, kind)
        return client.name, kind, seconds

    def thaw(self, client, kind):
        client.hold[kind] = False
        if self.rng.random() < 0.5:
            self.api.cut(lambda other, what: other is client and what == kind)

    def lag(self):
        client = self.one().client
        client.lag = self.rng.choice([0, 0.05, 0.3, 1])
        return client.name, client.lag

    def down(self):
        client, kind = self.one().client, self.rng.choice(KINDS)
        client.down[kind] = True
        self.api.later(self.rng.choice([1, 5]), client.down.__setitem__, kind, False)
        return client.name, kind

    def stale_list(self):
        client = self.one().client
        client.stale_list = True
        self.api.cut(lambda other, _: other is client)
        self.api.later(5, setattr, client, "stale_list", False)
        return client.name

    def restore(self):
        """etcd from a backup: versions fall. A replica's watch may stand frozen meanwhile."""
        if self.rng.random() < 0.7:
            client = self.one().client
            client.hold["pods"] = True
            self.api.later(self.rng.choice([5, 40]), self.thaw, client, "pods")
        back = self.rng.choice([50, 500, 100000])
        self.api.restore(back)
        return back

    # ---- requests

    def binds(self):
        client, rng = self.one().client, self.rng
        client.fates = {"lost": rng.choice([0, 0.1, 0.3]), "late": rng.choice([0, 0, 0.1]),
                        "error": rng.choice([0, 0.1, 0.3]), "error_after": rng.choice([0, 0.1]),
                        "dropped": rng.choice([0, 0, 0.05]), "conflict": rng.choice([0, 0, 0.1]),
                        "throttled": rng.choice([0, 0, 0.1])}
        client.slow["late"] = rng.choice([3] * 11 + [50])
        client.slow["bind"] = rng.choice([0, 0, 0.3, 2])
        self.api.later(rng.choice([2, 6]), setattr, client, "fates", {})
        return client.name, {k: v for k, v in client.fates.items() if v}

    def slow(self):
        client, rng = self.one().client, self.rng
        for what in ("list", "get", "patch"):
            client.slow[what] = rng.choice([0, 0, 0.3, 2, 4])
        client.patch_fails = rng.choice([0, 0, 0.3])
        self.api.later(rng.choice([3, 8]), client.slow.update, {"list": 0, "get": 0, "patch": 0})
        return client.name, dict(client.slow)

    def lease_trouble(self):
        client = self.one().client
        client.lease_fails = True
        self.api.later(self.rng.choice([1, 6, 14]), setattr, client, "lease_fails", False)
        return client.name

    def lease_deleted(self):
        return [self.api.leases.pop(key, None) and key[1] for key in list(self.api.leases)]

    # ---- processes

    async def kill(self):
        one = self.one()
        self.kills += 1
        self.world.oracle.last_kill = time.monotonic()
        how = self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        await self.end(one, how)
        await asyncio.sleep(self.rng.choice([0, 0, 1, 5]))
        one.start()
        return one.name, how.name

    async def restore_and_kill(self):
        """The watch of who stands by is frozen, versions fall, and who led dies."""
        world = self.world
        if world.way != "leader":
            return None
        leads = world.extenders[world.service.last]
        for one in world.extenders:
            one.client.hold["pods"] = one is not leads
        self.api.restore(100000)
        await asyncio.sleep(self.rng.choice([2, 8]))
        leads.process.kill()
        leads.ending = True
        self.kills += 1
        world.oracle.last_kill = time.monotonic()
        await asyncio.sleep(self.rng.choice([1, 30]))
        for one in world.extenders:
            self.thaw(one.client, "pods")
        leads.start()
        return leads.name

    async def end(self, one, how):
        calm = not one.frozen and not one.client.patch_fails and \
            not one.client.slow.get("patch") and not one.client.lag
        status = await one.ends(how)
        self.world.trace("end", one.name, how.name, status)
        if how != signal.SIGTERM:
            return
        if status != 0:
            self.world.oracle.wrong("SIGTERM", f"{one.name} ends with {status}")
        elif calm:
            self.given_back(one)

    def given_back(self, one):
        for uid, (_, _, process) in self.world.oracle.offers.items():
            pod = self.world.oracle.by_uid(uid)
            if process is one.client.process and pod and pod["status"].get("nominatedNodeName"):
                self.world.oracle.wrong("a hold is not given back at SIGTERM",
                                        f"{pod['metadata']['name']} by {one.name}")

    async def stop(self):
        one = self.one()
        seconds = self.rng.choice([1, 4, 12, 20])
        one.stop()
        await asyncio.sleep(seconds)
        if one.frozen:
            one.go_on()
        return one.name, seconds

    # ---- kube-schedulers on hosts of their own

    def hand_over(self):
        """The one that leads dies; the other takes its Lease when that has run out."""
        world = self.world
        if world.way != "scheduler" or world.away_until > time.monotonic():
            return None
        orderly = self.rng.random() < 0.3
        world.away_until = time.monotonic() + (0.1 if orderly else LEASE_S + 2)
        world.orderly = orderly
        return world.host, "gives the Lease back" if orderly else "dies"

    async def renew(self):
        """kube-schedulers' Lease, as client-go keeps it."""
        world, transitions = self.world, 0
        while world.way == "scheduler":
            now = time.monotonic()
            if world.away_until and now >= world.away_until:
                world.away_until, transitions = 0, transitions + 1
                if world.orderly:
                    self.put_lease("", transitions)
                    await asyncio.sleep(self.rng.random())
                world.host = (world.host + 1) % len(world.extenders)
                self.world.trace("leads", world.host)
            if not world.away_until:
                self.put_lease(f"host-{world.host}_5f3c", transitions)
            await asyncio.sleep(1)

    def put_lease(self, holder, transitions):
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        self.api.put_lease(("kube-system", "kube-scheduler"), {
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": LEASE_S if holder else 1,
                     "acquireTime": now, "renewTime": now, "leaseTransitions": transitions}})
