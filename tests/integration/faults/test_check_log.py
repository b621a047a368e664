#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of the fault test finds what is wrong, and finds nothing where nothing is."""

import sys

from check_log import Judge
from world import node, pod


def event(kind, name, units, where=None, idx=None, phase="Running", gpus=1):
    made = pod(name, units, gpus)
    made["metadata"]["uid"] = name
    if idx is not None:
        made["metadata"]["annotations"] = {"ALIYUN_COM_GPU_MEM_IDX": idx}
    if where:
        made["spec"]["nodeName"] = where
    made["status"] = {"phase": phase}
    return {"type": kind, "object": made}


FULL = event("ADDED", "a", 16, "n1", "0")
ROWS = [
    ("nothing happens", [], 0),
    ("an unbound pod holds nothing", [FULL, event("ADDED", "b", 16)], 0),
    ("one unit too many", [FULL, event("ADDED", "b", 1, "n1", "0")], 1),
    ("beside each other", [FULL, event("ADDED", "b", 8, "n1", "1")], 0),
    ("the first is gone", [FULL, event("DELETED", "a", 16, "n1", "0"),
                           event("ADDED", "b", 16, "n1", "0")], 0),
    ("the first has finished", [FULL, event("MODIFIED", "a", 16, "n1", "0", "Succeeded"),
                                event("ADDED", "b", 16, "n1", "0")], 0),
    ("only marked for deletion", [FULL, event("MODIFIED", "a", 16, "n1", "0"),
                                  event("ADDED", "b", 16, "n1", "0")], 1),
    ("moved to another GPU", [event("ADDED", "a", 8, "n1", "0"),
                              event("MODIFIED", "a", 8, "n1", "1")], 1),
    ("no index", [event("ADDED", "a", 8, "n1")], 1),
    ("an index the node has not", [event("ADDED", "a", 8, "n1", "2")], 1),
    ("two GPUs, the second too small", [event("ADDED", "a", 10, "n1", "0,1", gpus=2)], 1),
    ("two GPUs", [event("ADDED", "a", 8, "n1", "0,1", gpus=2)], 0),
]


def main():
    failed = 0
    for row, events, wrong in ROWS:
        judge = Judge([node("n1", [16, 8])])
        for one in events:
            judge.take(one)
        if len(judge.wrong) != wrong:
            failed += 1
            print(f"{row}: found {judge.wrong}, expected {wrong}")
    print(f"{len(ROWS)} rows, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
