#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Was any GPU ever over its size? Reads the nodes and the whole watch log of the pods, and judges
every moment between two events. Written from the documented rules alone: it shares no code and no
figure with the programs under test.

    check_log.py nodes.json watch.log        exit 1 and one line per fault found
"""

import json
import sys

MEM, COUNT, IDX = "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "ALIYUN_COM_GPU_MEM_IDX"


def asked(container):
    return int((container.get("resources", {}).get("limits") or {}).get(MEM, 0))


def placement(pod):
    """(node, GPU indices or None, units on each) of a pod that holds memory now, else None."""
    meta, spec = pod["metadata"], pod["spec"]
    node = spec.get("nodeName")
    units = sum(asked(c) for c in spec["containers"])
    if not node or not units or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return None
    count = int((meta.get("labels") or {}).get(COUNT, 1))
    text = (meta.get("annotations") or {}).get(IDX)
    gpus = tuple(sorted(int(part) for part in text.split(","))) if text else None
    return node, gpus, units // count


class Judge:
    """Takes one event after the other."""

    def __init__(self, nodes):
        self.sizes = {(n["metadata"]["name"], gpu["idx"]): gpu["mem"] for n in nodes
                      for gpu in json.loads(n["metadata"]["annotations"]
                                            ["aliyun.com/gpu-inventory"])["gpus"]}
        self.used = dict.fromkeys(self.sizes, 0)
        self.held = {}
        self.first = {}
        self.events = self.peak_pct = 0
        self.wrong = []

    def free(self, uid):
        keys, units = self.held.pop(uid, ((), 0))
        for key in keys:
            self.used[key] -= units

    def charge(self, uid, where):
        node, gpus, units = where
        keys = [(node, idx) for idx in gpus]
        self.held[uid] = (keys, units)
        for key in keys:
            self.used[key] += units
            self.peak_pct = max(self.peak_pct, 100 * self.used[key] // self.sizes[key])
            if self.used[key] > self.sizes[key]:
                self.wrong.append(f"event {self.events}: GPU {key} holds {self.used[key]} of "
                                  f"{self.sizes[key]} units")

    def take(self, event):
        self.events += 1
        pod = event["object"]
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        self.free(uid)
        where = placement(pod)
        if event["type"] == "DELETED" or where is None:
            return
        if where[1] is None or any((where[0], idx) not in self.sizes for idx in where[1]):
            self.wrong.append(f"event {self.events}: pod {name} is bound to {where[0]}, GPU "
                              f"{where[1]}")
            return
        if self.first.setdefault(uid, where) != where:
            self.wrong.append(f"event {self.events}: pod {name} moved from {self.first[uid]} to "
                              f"{where}")
        self.charge(uid, where)


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        judge = Judge(json.load(source)["items"])
    with open(sys.argv[2], encoding="utf-8") as source:
        for line in source:
            event = json.loads(line)
            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                judge.take(event)
            elif event["type"] != "BOOKMARK":
                judge.wrong.append(f"the log itself is broken: {line[:200]}")
    print(*judge.wrong[:20], sep="\n", end="\n" if judge.wrong else "")
    print(f"{judge.events} events, {len(judge.first)} pods held memory, fullest moment of a GPU "
          f"{judge.peak_pct} %, {len(judge.wrong)} wrong")
    return 1 if judge.wrong or not judge.first else 0


if __name__ == "__main__":
    sys.exit(main())
