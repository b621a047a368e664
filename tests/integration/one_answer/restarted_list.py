#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the API server lists anew, because it forgot a list's continue token (410), counts once: who may not list nodes sees each
pod of the namespace in one line.

  restarted_list.py --build DIR
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from api import Served  # noqa: E402
from attack import Wrong  # noqa: E402
from objects import Pod  # noqa: E402
from programs import cli  # noqa: E402

PODS = 4000


class Forgetful(Served):
    """It forgets its first token."""
    forgot = False

    async def answer(self, method, path, query, body, writer):
        if query.get("continue") and not self.forgot:
            self.forgot = True
            self.rest.clear()
        return await super().answer(method, path, query, body, writer)


def one_world(build, *_):
    with Forgetful([Pod(f"p{i}", 8).bind("n0", i % 8).obj for i in range(PODS)]) as api:
        api.refused["nodes"] = 403, "nodes is forbidden"
        code, out, err = cli(build, api, "-n", "default")
        lines = [line for line in out.decode().splitlines() if line.startswith("default ")]
        if code or not len(lines) == len(set(lines)) == PODS or not api.forgot:
            raise Wrong(f"{code}: {len(lines)} lines {out[:300]} {err}, forgot: {api.forgot}")
    return {}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"lists": sys.modules[__name__]}))
