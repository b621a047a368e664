#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `kubectl inspect gpushare web` against an oracle of its own, and against people who are rude to it.

  run.py --build DIR [--seed N] [--seconds S | --worlds N] [--only figures|stream|rude]

Clusters are random (world.py), the API server is a script (api.py), documents are read strictly (rows.py), and every figure, row,
group and cell is one that the documents promise of that cluster (judge.py); what the command says with -o json and
`why` is the same. `stream` changes a cluster while somebody follows: who is told nothing has what a new reader gets. `rude` asks in
ways that no browser does, while the API server restarts, freezes, forgets and says 410 (rude.py).

Whatever is wrong is printed with the seed of its world, and the exit status is 1."""

import argparse
import random
import sys
import time
import traceback

import rude
from api import Api, Web, wait_for
from judge import judge_world, read
from rows import Wrong
from stream import judge_stream
from world import random_world

SHOWN = 20


def is_told(web, world):
    return not world.usage or "usedBytes" in read(web, "")["total"]


def figures(args, seed, size=None):
    rng = random.Random(f"figures {seed}")
    world = random_world(rng, size)
    with Api(world.objects(), world.events, world.usage) as api, Web(args.build, api) as web:
        wait_for("lists are read", lambda: web.get("rows")[0] == 200)
        wait_for("device plugins have told", lambda: is_told(web, world))
        pages = judge_world(web, world, rng, args.views)
    if web.status:
        raise Wrong(f"the page ended with {web.status}")
    return pages


def stream(args, seed, size=None):
    rng = random.Random(f"stream {seed}")
    world = random_world(rng, size or rng.choice(["small", "small", "wide", "waits"]))
    with Api(world.objects(), world.events) as api, Web(args.build, api) as web:
        wait_for("lists are read", lambda: web.get("rows")[0] == 200)
        news = judge_stream(web, api, world, rng, args.rounds)
        for node in world.nodes:
            node.told = False
        news += judge_world(web, world, rng, args.views, exact=False)
    if web.status:
        raise Wrong(f"the page ended with {web.status}")
    return news


def rudely(args, seed, size=None):
    rng = random.Random(f"rude {seed}")
    world = random_world(rng, size or rng.choice(["small", "small", "wide"]))
    with Api(world.objects(), world.events) as api, Web(args.build, api) as web:
        wait_for("lists are read", lambda: web.get("rows")[0] == 200)
        done = rude.odd_queries(web, rng, args.requests // 10) + rude.duplicates(web, world)
        done += rude.half_sent(web, rng, 200) + rude.in_parallel(web, rng, world, args.requests // 10)
        done += rude.while_deleted(web, api, rng, world, args.requests / 500)
        done += rude.restarted(web, api, world, rng) + rude.frozen(web, api, world, rng)
        done += rude.grows(web, rng, world, args.requests)
        done += judge_world(web, world, rng, args.views, exact=False)
    if web.status:
        raise Wrong(f"the page ended with {web.status}")
    return done


PARTS = {"figures": figures, "stream": stream, "rude": rudely}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--worlds", type=int, default=1)
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--size")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", choices=PARTS, default="figures")
    args = parser.parse_args()
    end, done, pages, wrong = time.monotonic() + args.seconds, 0, 0, 0
    while done < args.worlds or time.monotonic() < end:
        seed = args.seed + done
        done += 1
        try:
            pages += PARTS[args.only](args, seed, args.size)
        except Wrong as why:
            wrong += 1
            if wrong <= SHOWN:
                print(f"WRONG, --seed {seed} --worlds 1 --only {args.only}{' --size ' + args.size if args.size else ''}: {why}", flush=True)
        except Exception:                       # pylint: disable=broad-exception-caught
            print(f"seed {seed}", flush=True)
            traceback.print_exc()
            wrong += 1
    print(f"note: {done} worlds from seed {args.seed}, {pages} pages, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
