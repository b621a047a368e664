#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second opinion of gpushare-extender: an API server, a kube-scheduler, device plugins and an
oracle of their own, which share no code with the product and read the contract once more.
Everything that tenants, nodes, operators and API servers may do happens at random; at quiet
moments the ledgers are held against the API.

  run.py PROGRAM [--seconds 60] [--seed N] [--replicas 1|2] [--election leader|scheduler]

Whatever is wrong is printed with the seed and the last events; the whole trace stays in --folder.
--go-on does not end at the first such thing. --only TROUBLE leaves out the other troubles,
--without EVENT that one. --sabotage all shows that this test can fail.
A seed gives the same draws again; which of them meets which moment is the machine's.

| event | who | what it is |
|---|---|---|
| create, end, drop_waiting, anew | tenants | pods come, end, are deleted; the same name again |
| burst | kube-schedulers | binds by the dozen for one of --bind-workers; clients that go away |
| edit_waiting, edit_bound, edit_noise | tenants | all annotations and labels, junk, deep JSON |
| create_gated, open_gate | tenants | scheduling gates; pods of another scheduler |
| by_hand | tenants | nodeName set, with a record that is right, forged or missing |
| phase_back | kubelet | a pod that had failed runs |
| exchange, another_gpu, silence | plugin | gpu-reassigned; a plugin that is silent for a while |
| unreadable, strangers | plugin | gpu-reassigned that is no JSON, or full of others' entries |
| health, resize, max_pods, vanish | plugin | the inventory; a node that goes and comes back |
| cordon, label | nodes | cordons of GPUs and nodes, taints, labels |
| cut, expire, error_event, freeze, lag, down, stale_list | API server | watches and lists |
| restore, restore_and_kill | API server | versions fall, as from a backup |
| binds, slow | API server | Bindings lost, late, 500 before and after, 409, 429 |
| lease_trouble, lease_deleted, hand_over | elections | Leases fail, go, change hands |
| kill, stop | operators | KILL, TERM, STOP and CONT, and a new start |

| what is so, always | judged |
|---|---|
| no bind over-books a GPU, its compute or its pods, nor goes where it may not | at a Binding |
| a record is what was asked for, and adds up | at a Binding |
| a replica binds only while the Lease is its own | at a Binding |
| its nominations stay; gates and bound pods are left alone; wakes are few | at a patch |
| inspect and metrics are the API's truth, on every replica | 5 s after all is quiet |
| filter by names is filter by objects; its yes is bind's, where the pod may use the node; its no is right | when quiet |
| of binds that wait none is refused that fits wherever the others are; filter counts them | when quiet |
| holds are given back at SIGTERM, and by the next leader | then; when quiet |
| it never dies, and ends at SIGTERM with 0 | always |

A bind is excused by what its process had not been told two seconds before (oracle.py). A bind without
an answer may stay open for a minute: runs that are no longer do not wait for that at the end."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import sabotage  # noqa: E402
from world import World  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=1, choices=(1, 2))
    parser.add_argument("--election", choices=("leader", "scheduler"), default="leader")
    parser.add_argument("--rate", type=float, default=25, help="events a second")
    parser.add_argument("--trouble", type=float, default=0.7, help="troubles a second")
    parser.add_argument("--go-on", action="store_true")
    parser.add_argument("--only", action="append", metavar="TROUBLE")
    parser.add_argument("--without", action="append", metavar="EVENT")
    parser.add_argument("--flag", action="append", default=[], help="of the extender")
    parser.add_argument("--folder")
    parser.add_argument("--sabotage", choices=["all", *sabotage.ALL],
                        help="this is wrong on purpose, and must be found")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    return args


def one_world(args, folder):
    world = World(args, folder)
    if args.sabotage:
        act, world.expected = sabotage.ALL[args.sabotage]
        act(world)
    try:
        asyncio.run(world.run())
    finally:
        world.trace_file.flush()
        for one in world.extenders:
            one.kill()
    return world


def report(world, folder):
    print(world.sums())
    if world.oracle.bad:
        print("the last events:")
        print("\n".join(world.tail))
        print(f"\nseed {world.seed}, {len(world.oracle.bad)} wrong; {folder} has the trace and the "
              "logs:")
        print("\n".join(world.oracle.bad[:20]))


def all_found(args):
    """Each on its own, with the seconds that it took: 1 if one of them was not found."""
    missed = 0
    for args.sabotage in sabotage.ALL:
        with tempfile.TemporaryDirectory(prefix="second-opinion.") as folder:
            began = time.monotonic()
            world = one_world(args, folder)
            found = [text[:80] for text in world.oracle.bad if world.expected in text]
            missed += not found
            print(f"{'found' if found else 'MISSED':6} {args.sabotage:15} "
                  f"{time.monotonic() - began:4.0f} s  {found[0] if found else ''}", flush=True)
    return 1 if missed else 0


def main():
    sys.setrecursionlimit(20000)        # of deep JSON
    args = parse()
    if args.sabotage == "all":
        return all_found(args)
    folder = args.folder or tempfile.mkdtemp(prefix="second-opinion.")
    os.makedirs(folder, exist_ok=True)
    world = one_world(args, folder)
    report(world, folder)
    if world.oracle.bad:
        return 1
    if not args.folder:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
