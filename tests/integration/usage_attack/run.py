#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the device plugin says that pods use, by the driver's list, against an oracle of its own.

  run.py --build DIR [--seed N] [--worlds N] [--steps N]
"""

import argparse
import sys
import time
import traceback

from worlds import Wrong, one_world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    wrong = readings = told = 0
    for seed in range(args.seed, args.seed + args.worlds):
        try:
            a, b = one_world(args.build, seed, args.steps)
            readings, told = readings + a, told + b
        except Wrong as why:
            wrong += 1
            print(f"WRONG, --seed {seed}: {why}", flush=True)
    print(f"note: {readings} readings, {told} told, {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
