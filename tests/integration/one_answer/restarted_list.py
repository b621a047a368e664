#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the API server lists anew, because it forgot a list's continue token (410), counts once: who may not list nodes sees each
pod of the namespace in one line, and `doctor` counts what it cannot read, and pods that choose their GPUs themselves, once.

  restarted_list.py --build DIR
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from api import Served  # noqa: E402
from attack import Wrong  # noqa: E402
from objects import Pod, new_node  # noqa: E402
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


def new_world():
    """Of the nodes and pods that come first one cannot be read, and one pod chooses its GPUs."""
    pods = [Pod(f"p{i}", 8).bind("n0", i % 8).obj for i in range(PODS)]
    pods[0]["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    broken = [Pod("broken", 8).obj, new_node("broken", [8])]
    for obj in broken:
        obj["metadata"]["annotations"] = 7
    return [new_node("n0", [8000]), *broken, *pods]


def one_world(build, *_):
    with Forgetful(new_world()) as api:
        api.refused["nodes"] = 403, "nodes is forbidden"
        code, out, err = cli(build, api, "-n", "default")
        lines = [line for line in out.decode().splitlines() if line.startswith("default ")]
        if code or not len(lines) == len(set(lines)) == PODS or not api.forgot:
            raise Wrong(f"{code}: {len(lines)} lines {out[:300]} {err}, forgot: {api.forgot}")
        api.refused, api.forgot = {}, False
        _, out, err = cli(build, api, "doctor")
        said = out.decode()
        if "objects: 2 nodes or pods are" not in said or "pods: 1 pod sets NVIDIA_VISIBLE_DEVICES" not in said or not api.forgot:
            raise Wrong(f"{said} {err}, forgot: {api.forgot}")
    return {}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"lists": sys.modules[__name__]}))
