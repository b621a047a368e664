#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random attempts on what whoever is let in a little may reach. An API server that believes everything
(fake.py) and models of their own, which share no code with the product and read the documents once more.

  run.py --build DIR [--seed N] [--seconds 20] [--only PART] [--sabotage all]

| part | who tries | what is judged |
|---|---|---|
| door | who reaches the extender's loopback port (docs/security.md) | a Binding is sent for a pod and a node as asked for, of a pod that is ours and waits, to a node that it may use; it is sent when all that is so; never two; no `%` in an answer; nothing in metrics, log and inspect steers a terminal |
| answers | who runs a device plugin or may name things (docs/cli.md) | who is asked for a node's use is the plugin's own pod there, once; its word counts for its node; the CLI ends well within 1 GiB, prints nothing that steers a terminal, and JSON that is JSON |
| verbs | who tells filter, prioritize and preempt of any pod what he likes | answers are of what was asked about; the API server is sent wakes and nominations of pods of ours that wait, and nothing else |
| page | who may name things, and who asks for `kubectl inspect gpushare web` in other ways than a browser that has its address (docs/cli.md) | who may look; its rows are JSON in which no word steers a screen, whatever a cluster calls itself; headers |

Whatever is wrong is printed with the seed, and the exit status is 1. A seed gives the same worlds again.
--sabotage all has the API server note what a faulty product would have sent: each has to be found."""

import argparse
import json
import random
import sys
import time

import answers
import door
import page
import verbs

PARTS = {"door": door, "answers": answers, "verbs": verbs, "page": page}
SHOWN = 5       # of what is wrong; the rest is counted


class Judge:
    def __init__(self, seed):
        self.seed, self.wrong = seed, 0

    def __call__(self, text):
        self.wrong += 1
        if self.wrong <= SHOWN:
            print(f"WRONG, seed {self.seed}: {text}", flush=True)


def worlds(args, parts, judge, sabotage=None):
    """Whole worlds in turn, until the seconds are over."""
    end, number = time.monotonic() + args.seconds, 0
    sums = {name: [0, 0] for name in parts}
    while number < len(parts) or time.monotonic() < end:
        name = parts[number % len(parts)]
        done = PARTS[name].one_world(args.build, random.Random(f"{name} {args.seed} {number}"), judge, sabotage)
        sums[name] = [a + b for a, b in zip(sums[name], done)]
        number += 1
    return number, sums


def all_found(args):
    missed = 0
    for name, part in PARTS.items():
        for deed in part.SABOTAGE:
            found = []
            worlds(argparse.Namespace(**{**vars(args), "seconds": 0}), [name], found.append, deed)
            missed += not found
            print(f"{'found' if found else 'MISSED':6} {name} {deed}: {len(found)} times", flush=True)
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--sabotage", choices=["all"])
    args = parser.parse_args()
    if args.sabotage:
        return all_found(args)
    judge = Judge(args.seed)
    parts = [args.only] if args.only else list(PARTS)
    number, sums = worlds(args, parts, judge)
    print(f"note: seed {args.seed}, {number} worlds, attempts and what came of them {json.dumps(sums)}, "
          f"{judge.wrong} wrong")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
