# SPDX-License-Identifier: Apache-2.0
"""What runs an attacker: worlds in turn by a seed. A part is a module with

  one_world(build, rng, wrong) -> {what: how often}   wrong(text) for each thing that is wrong
  seed_of(seed, number)                               what its random numbers begin with, if not "NAME SEED NUMBER\""""

import argparse
import json
import random
import signal
import sys
import time
import traceback

SHOWN = 5       # of what is wrong; the rest is counted


class Wrong(Exception):
    """What ends a world."""


def live(world):
    """Runs it, and ends what it began: its counts."""
    try:
        world.run()
    finally:
        for one in world.programs:
            one.kill()
        world.api.end()
    return world.counts


def one_world(args, name, part, number, wrong):
    seed = getattr(part, "seed_of", lambda seed, number: f"{name} {seed} {number}")(args.seed, number)
    try:
        return part.one_world(args.build, random.Random(seed), wrong)
    except Wrong as why:
        wrong(str(why))
    except Exception as why:                        # pylint: disable=broad-exception-caught
        wrong(f"{type(why).__name__} {why}: {traceback.format_exc()[-900:]}")
    return {}


def main(about, parts):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--worlds", type=int, default=1, help="at least so many of each part")
    parser.add_argument("--first", type=int, default=0, help="the number of the first world")
    parser.add_argument("--step", type=int, default=1, help="from one world's number to the next one's")
    parser.add_argument("--only", choices=parts)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # and takes its programs along
    names = [args.only] if args.only else list(parts)
    bad, sums, number, end = 0, {}, args.first, time.monotonic() + args.seconds
    while number < args.first + args.worlds * len(names) or time.monotonic() < end:
        name = names[number % len(names)]

        def wrong(text, name=name, number=number):
            nonlocal bad
            bad += 1
            if bad <= SHOWN:
                print(f"WRONG, --seed {args.seed} --first {number} --only {name}: {text}", flush=True)
        for key, value in one_world(args, name, parts[name], number, wrong).items():
            most = key in ("rss", "longest_s")
            sums[key] = max(sums.get(key, 0), value) if most else sums.get(key, 0) + value
        number += args.step
    print(f"note: seed {args.seed}, {(number - args.first) // args.step} worlds, {json.dumps(sums)}, {bad} wrong", flush=True)
    return 1 if bad else 0
