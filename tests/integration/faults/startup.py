#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The extender starts, loads its lists, answers and ends, and its n-th allocation fails, for every
n. It says why it cannot start and exits with 1, or it goes on and answers as if nothing had
happened; it never crashes, hangs or charges wrongly.

    startup.py --build DIR
"""

import collections
import concurrent.futures
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from api import Served  # noqa: E402
from attack import Wrong  # noqa: E402
from ledger import difference, new_nodes, settle  # noqa: E402
from objects import Pod  # noqa: E402
from programs import Extender, wait_for  # noqa: E402

AT_ONCE = 12


def is_ready(one):
    try:
        return one.get("/readyz")[0] == 200
    except OSError:
        return False


def fail(build, api, n):
    """(could it start, was there an n-th allocation)"""
    one = Extender(build, api, program="tests/extender_out_of_memory", env={"GS_FAIL_ALLOC": str(n)})
    try:
        wait_for(f"allocation {n}: ready, or ended", lambda: is_ready(one) or not one.alive())
        if ready := one.alive():        # an answer of its own may fail: the next one does not
            settle(f"allocation {n}: ledger equals API", lambda: difference(api, one), 30)
        status, said = one.end(), one.said()
    finally:
        one.kill()
        os.unlink(one.log)
    if status != (0 if ready else 1) or not ready and "memory" not in said:
        raise Wrong(f"allocation {n}: {'ready' if ready else 'not ready'}, ended with {status}:\n{said[-2000:]}")
    return ready, "allocation failed" in said


def one_world(build, *_):
    with Served(new_nodes()) as api, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for n in range(6):
            api.put(Pod(f"p{n}", 4).bind("n1", n // 2).obj)
        ends = collections.Counter()
        for first in itertools.count(1, AT_ONCE):
            found = list(pool.map(lambda n: fail(build, api, n), range(first, first + AT_ONCE)))
            ends.update(ready for ready, failed in found if failed)
            if not found[-1][1]:
                break
    if not ends[True] or not ends[False]:
        raise Wrong(f"too few allocations failed: {ends}")
    return {"it went on": ends[True], "it could not start, and said so": ends[False]}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"startup": sys.modules[__name__]}))
