# SPDX-License-Identifier: Apache-2.0
"""An API server with one lease that does wrong what its plan says: FAULT=so many of 1,000 requests (of the sort that it concerns) or lines of a
watch, and what it did is counted.

  delay          a request is carried out 20 to 300 ms late
  stall          its answer comes after stall_ms
  drop           the connection breaks, nothing was carried out
  conflict, gone, throttle, internal, unavailable
                 409 (to a write), 410 (to a list or watch), 429, 500, 503; nothing was carried out
  lost_answer    a write is carried out, then the connection breaks
  late_timeout   a write is carried out and answered 504
  truncated      the answer breaks off in the middle
  oversized      the answer is followed by big_mib of spaces
  old_list       a list says an older resourceVersion than it has
  watch_delay    a line comes 20 to 300 ms late
  watch_stall    a line comes after stall_ms
  watch_cut      the connection breaks in the middle of a line
  watch_end      the watch ends properly, but early
  watch_gone     it ends with an ERROR of 410, watch_error: of 500
  watch_garbage  a line is no JSON
  watch_big      a line has big_mib of spaces in it
  watch_back     a bookmark takes the resourceVersion back to 1
  watch_twice    a line comes again, at once or after the next one
  watch_swap     a line comes after the next one
  watch_lose     a line never comes. No API server does that; the comparison of ledger and API is there for it"""

import asyncio
import collections
import json
import re

from api import LAST, Served, bookmark_of, chunk, line_of

REFUSALS = (("conflict", 409, "Conflict"), ("gone", 410, "Expired"), ("throttle", 429, "TooManyRequests"),
            ("internal", 500, "InternalError"), ("unavailable", 503, "ServiceUnavailable"))
ENDS = (("watch_gone", 410, "Expired"), ("watch_error", 500, "InternalError"))
MIB = b" " * (1 << 20)


class Faulty(Served):
    def __init__(self, objects, rng):
        self.rng, self.plan, self.counts, self.held, self.leased = rng, {}, collections.Counter(), {}, None
        super().__init__(objects)

    def hit(self, fault):
        hit = self.rng.random() * 1000 < self.plan.get(fault, 0)
        self.counts[fault] += hit
        return hit

    async def late(self, fault):
        if self.hit(fault):
            await asyncio.sleep(self.rng.uniform(0.02, 0.3) if fault.endswith("delay") else self.plan["stall_ms"] / 1000)

    # ---- requests

    async def answer(self, method, path, query, body, writer):
        writes, listed = method != "GET", method == "GET" and path.endswith(("/pods", "/nodes"))
        await self.late("delay")
        if self.hit("drop"):
            return None
        for fault, code, reason in REFUSALS:
            if (writes or fault != "conflict") and (listed or fault != "gone") and self.hit(fault):
                return self.failure(code, reason, "injected fault")
        answer = self.lease(method, body) if "/leases" in path else await super().answer(method, path, query, body, writer)
        if not answer or answer[0] >= 300:
            return answer
        await self.late("stall")
        if writes and self.hit("lost_answer"):
            return None
        if writes and self.hit("late_timeout"):
            return self.failure(504, "Timeout", "injected fault, after it was done")
        return self.spoil(answer, listed, writer)

    def lease(self, method, body):
        if method == "GET":
            return (200, self.leased) if self.leased else self.failure(404, "NotFound", "no")
        sent, now = json.loads(body), self.leased and self.leased["metadata"]["resourceVersion"]
        if sent["metadata"].get("resourceVersion") != now:
            return self.failure(409, "Conflict", "the object has been modified")
        self.rev += 1
        sent["metadata"]["resourceVersion"], self.leased = str(self.rev), sent
        return 200 if now else 201, sent

    def spoil(self, answer, listed, writer):
        text = answer[1] if isinstance(answer[1], (bytes, str)) else json.dumps(answer[1])
        text = text if isinstance(text, bytes) else text.encode()
        if listed and self.hit("old_list"):
            text = re.sub(rb'(?<="resourceVersion":")\d+', lambda found: b"%d" % max(1, int(found[0]) - self.rng.randrange(50)), text, count=1)
        if self.hit("oversized"):
            text += MIB * self.plan["big_mib"]
        if text and self.hit("truncated"):
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n" % len(text) + text[:self.rng.randrange(len(text))])
            return None
        return answer[0], text

    # ---- watches

    async def send(self, watch, lines, writer):
        held = self.held.setdefault(watch, [])      # what comes after the next line, or soon if none comes
        if not lines:
            lines, held[:] = held[:], []
            return await super().send(watch, lines, writer)
        for line in lines:
            await self.late("watch_delay")
            await self.late("watch_stall")
            if self.hit("watch_cut"):
                writer.write(b"%x\r\n" % len(line) + line[:self.rng.randrange(len(line))])
                return False
            for fault, code, reason in ENDS:
                if self.hit(fault):
                    await super().send(watch, [line_of("ERROR", json.dumps(self.failure(code, reason, "injected fault")[1]))], writer)
                    writer.write(LAST)
                    return False
            if self.hit("watch_end"):
                writer.write(LAST)
                return False
            await super().send(watch, self.spoil_line(watch, line, held), writer)
        return True

    def spoil_line(self, watch, line, held):
        if self.hit("watch_lose"):
            return []
        if self.hit("watch_garbage"):
            return [b'{"type":"MODIFIED","object":}\n']
        out = [bookmark_of(watch.kind, 1)] if self.hit("watch_back") else []
        if not held and self.hit("watch_swap"):
            held.append(line)
            return out
        out += [line[:-2] + MIB * self.plan["big_mib"] + line[-2:] if self.hit("watch_big") else line, *held]
        held.clear()
        if self.hit("watch_twice"):
            (held if self.rng.random() < 0.5 else out).append(line)
        return out
