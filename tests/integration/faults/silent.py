#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An API server that takes every request and answers none does not keep the extender from ending:
not in the middle of a list, nor with a lease to give back.

    silent.py BUILD_DIR
"""

import concurrent.futures
import signal
import sys
import tempfile
import time

from world import Failure, World

# Longer than the five seconds for the lease, shorter than one request's time.
MOST_S = 12
ROWS = [
    ("in the middle of a comparison", []),
    ("with a lease", ["--leader-elect", "--pod-name", "x"]),
]


def end(build, name, flags):
    with tempfile.TemporaryDirectory() as folder, World(build, folder, 1, flags, often=True) as world:
        processes = dict(world.running)
        api, extender = processes["faulty-api"], processes["gpushare-extender"]
        time.sleep(1)
        api.send_signal(signal.SIGSTOP)
        try:
            time.sleep(3)
            began = time.monotonic()
            extender.terminate()
            status = extender.wait(100)
        finally:
            api.send_signal(signal.SIGCONT)
        took = time.monotonic() - began
        if status or took > MOST_S:
            raise Failure(f"{name}: it ended with {status} after {took:.1f} s")
        return f"{name}: {took:.1f} s"


def main():
    try:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            print("\n".join(pool.map(lambda row: end(sys.argv[1], *row), ROWS)))
    except Failure as failure:
        sys.exit(str(failure))


main()
