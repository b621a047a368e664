#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the API server lists anew, because it forgot a list's continue token (410), counts once.

  restarted_list.py --build DIR

20 pods run on a node; `what-if --without-node` says that 20 have to move, whatever the server forgets.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from api import Served  # noqa: E402
from attack import Wrong  # noqa: E402
from objects import Pod, new_node  # noqa: E402
from programs import cli  # noqa: E402

SAID = b"n0 can be drained: 20 of 20 pods with GPU memory fit on other nodes\n"


class Forgetful(Served):
    """It forgets its first token."""
    forgot = False

    async def answer(self, method, path, query, body, writer):
        if query.get("continue") and not self.forgot:
            self.forgot = True
            self.rest.clear()
        return await super().answer(method, path, query, body, writer)


def one_world(build, *_):
    nodes = [new_node(f"n{i}", [80] * 8) for i in range(200)]
    with Forgetful([*nodes, *(Pod(f"p{i}", 8).bind(f"n{i % 200}", i // 200 % 8).obj for i in range(4000))]) as api:
        found = cli(build, api, "what-if", "--without-node", "n0")
        if found[0] or not found[1].startswith(SAID) or not api.forgot:
            raise Wrong(f"{found}")
    return {}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"lists": sys.modules[__name__]}))
