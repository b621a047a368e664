#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An API server that takes every request and answers none does not keep the extender from ending:
not in the middle of a comparison, nor with a lease to give back.

    silent.py --build DIR
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from attack import Wrong  # noqa: E402
from faulty import Faulty  # noqa: E402
from ledger import OFTEN, new_nodes  # noqa: E402
from programs import Extender, wait_for  # noqa: E402

MOST_S = 12     # longer than the five seconds for the lease, shorter than one request's time


def one_world(build, rng, *_):
    with Faulty(new_nodes(), rng) as api:
        with Extender(build, api, program=OFTEN) as one, Extender(build, api, "--leader-elect", "--pod-name", "x", program=OFTEN) as two:
            wait_for("the lease", lambda: api.leased)
            time.sleep(1)
            api.plan = {"stall": 1000, "stall_ms": 100_000}
            time.sleep(3)
            began = time.monotonic()
            for each in (one, two):
                each.process.terminate()
            for each in (one, two):
                status, took = each.process.wait(100), time.monotonic() - began
                if status or took > MOST_S:
                    raise Wrong(f"{each.command}: it ended with {status} after {took:.1f} s")
    return {}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"silent": sys.modules[__name__]}))
