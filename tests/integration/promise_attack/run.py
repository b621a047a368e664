#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random attempts on what filter keeps for groups of pods and on what preempt counts of PodDisruptionBudgets, judged by
models of their own, which share no code with the product and read docs/contract.md and docs/pods.md once more.

  run.py --build DIR [--seed N] [--seconds 20] [--only PART] [--sabotage all]

| part | what happens | what is judged |
|---|---|---|
| gangs | pods of groups, of all three kinds, are asked about, bound, deleted and made anew in every wrong order, beside others, nominations, nodes that change, restarts | no GPU is over-booked or promised twice; who has a place gets it; nobody is refused for a place that is over; inspect, metric and answers say the same; whoever is in no group hears what another extender says that was asked about none |
| budgets | full nodes, PodDisruptionBudgets of all kinds, lost rights and watches | victims are needed, of lower priority, and of those the fewest violate; their number is told |
| freed | what others ask of preempt, full tables, watches that list anew, between an answer and its victim's end | who evicts is named the node and nobody of the same or lower priority; what it gives up is free |
| waiting | hundreds of binds wait for one of --bind-workers, in every way that they and those beside them can go wrong | no GPU is over-booked; nobody is refused who fits wherever the others are; filter names no node whose memory waiting binds have; when all is quiet inspect is the API's |
| tenant | one namespace's rules, budgets, texts, groups, pods by hand and webhooks that hang, several at a time | filter, prioritize and bind of another namespace take 2 s at most, requeueing 3 s; places end in time |

Whatever is wrong is printed with the seed and the last events, and the exit status is 1. --sabotage all alters what the
product said, or does: each has to be found."""

import argparse
import json
import random
import signal
import sys
import time
import traceback

import budgets
import freed
import gangs
import tenant
import waiting

PARTS = {"gangs": gangs, "budgets": budgets, "freed": freed, "tenant": tenant, "waiting": waiting}
LONG_S = 600    # a world of waiting binds takes up to three minutes
SHOWN = 5       # of what is wrong; the rest is counted


class Judge:
    def __init__(self, seed):
        self.seed, self.wrong, self.world = seed, 0, ""

    def __call__(self, text):
        self.wrong += 1
        if self.wrong <= SHOWN:
            print(f"WRONG, seed {self.seed} {self.world}: {text}", flush=True)


def add(sums, more):
    for key, value in more.items():
        sums[key] = max(sums.get(key, 0), value) if key in ("rss", "longest_s") else sums.get(key, 0) + value


def one_world(args, name, number, judge, sabotage=None):
    try:
        return PARTS[name].one_world(args.build, random.Random(f"{name} {args.seed} {number}"), judge, sabotage)
    except (TimeoutError, OSError, KeyError, json.JSONDecodeError) as err:
        judge(f"{type(err).__name__} {err}: {traceback.format_exc()[-900:]}")
        return {}


def all_found(args):
    missed = 0
    for name, part in PARTS.items():
        for deed in part.SABOTAGE:
            found, number, began = [], 0, time.monotonic()
            while not found and number < 12:
                one_world(args, name, number, found.append, deed)
                number += 1
            missed += not found
            print(f"{'found' if found else 'MISSED':6} {name} {deed}: world {number}, {time.monotonic() - began:.0f} s, "
                  f"{found[0].splitlines()[0][:90] if found else ''}", flush=True)
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the world to begin with")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--sabotage", choices=["all"])
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # and takes its programs along
    if args.sabotage:
        return all_found(args)
    judge, sums = Judge(args.seed), {}
    parts = [args.only] if args.only else [name for name in PARTS if name != "waiting" or args.seconds >= LONG_S]
    end, number = time.monotonic() + args.seconds, args.first
    try:
        while number < args.first + len(parts) or time.monotonic() < end:
            name = parts[number % len(parts)]
            judge.world = f"{name} {number}"
            add(sums, one_world(args, name, number, judge))
            number += 1
    finally:
        print(f"note: seed {args.seed}, {number - args.first} worlds, {json.dumps(sums)}, {judge.wrong} wrong", flush=True)
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
