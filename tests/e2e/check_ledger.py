#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the cluster hold together? Computes every GPU's use from the API alone, and exits 1 when a
GPU is over its size, or, with --complete, when an unbound pod would fit somewhere.

    kubectl get nodes,pods -A -o json | tests/e2e/check_ledger.py --complete
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ledger  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("file", nargs="?", default="-", help="a List (default: stdin)")
    parser.add_argument("--complete", action="store_true", help="no unbound pod may fit anywhere")
    options = parser.parse_args()
    with sys.stdin if options.file == "-" else open(options.file, encoding="utf-8") as source:
        items = json.load(source)["items"]
    pods = [item for item in items if item["kind"] == "Pod"]
    nodes = ledger.build([item for item in items if item["kind"] == "Node"], pods)
    wrong = ledger.overfull(nodes)
    if options.complete:
        wrong += ledger.placeable(nodes, pods)
    gpus = sum(len(node.gpus) for node in nodes.values())
    bound = sum(1 for pod in pods if ledger.holds(pod) and ledger.per_gpu(pod))
    summary = f"{len(nodes)} nodes, {gpus} GPUs, {bound} bound GPU pods: {len(wrong)} wrong"
    print(*wrong, summary, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
