#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two replicas elect a leader while their clocks jump. At no moment do both bind, and a leader whose
machine slept knows that its lease is over before it answers the first request.

    election.py --build DIR
"""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from attack import Wrong  # noqa: E402
from clocks import Clocks  # noqa: E402
from faulty import Faulty  # noqa: E402
from ledger import new_nodes  # noqa: E402
from objects import Pod  # noqa: E402
from programs import Extender, wait_for  # noqa: E402

LEASE_S, RETRY_S = 15, 2


class Replica(Extender):
    def __init__(self, build, api, clocks):
        self.api, self.clocks = api, clocks
        program = "gpushare-extender"
        super().__init__(build, api, "--leader-elect", "--pod-namespace", "default", "--pod-name", os.path.basename(clocks.path),
                         env=clocks.environment(build, program))
        clocks.pid = self.process.pid

    def binds(self):
        """Does it bind a pod now? Its answer otherwise must be a standby's."""
        pod = Pod("p", 1)
        self.api.put(pod.obj)
        status, text = self.bind(pod, "n3")
        self.api.delete("pods", pod.key)
        error = json.loads(text)["Error"]
        if status != 200 or error and "standby" not in error:
            raise Wrong(f"a bind is answered {status} {text}")
        return not error


def only(leader, other):
    if other.binds():
        raise Wrong("the standby binds")
    return leader.binds()


def one_row(kind, leader, other):
    """How the machine of the leader stands still."""
    wait_for("a leader", lambda: only(leader, other), LEASE_S + 10)
    for hours in (6, -6, 0.01, -48, 0):
        leader.clocks.set_wall(hours * 3600)
        other.clocks.set_wall(-hours * 3600)
        if not only(leader, other):
            raise Wrong(f"{kind}: the lead was lost when the clocks were set by {hours} h")
    # the leader's machine stands still, and on the other's the lease runs out
    os.kill(leader.process.pid, signal.SIGSTOP)
    try:
        time.sleep(RETRY_S + 0.5)  # it sees the last renewal
        other.clocks.pass_by("clock_pause", LEASE_S + 1)
        wait_for("the other leads", other.binds, 10)
        leader.clocks.shift(("clock_pause", "clock_suspend").index(kind) + 1, LEASE_S + 1)
        # what it asks the API server on waking comes too late to tell it
        leader.api.plan = {"stall": 1000, "stall_ms": 1500}
    finally:
        os.kill(leader.process.pid, signal.SIGCONT)
    if leader.binds():
        raise Wrong(f"{kind}: it woke up and bound a pod, though another leads")
    leader.api.plan = {}
    wait_for("one leader", lambda: only(other, leader), 10)


def one_world(build, rng, *_):
    with Faulty(new_nodes(), rng) as api, Replica(build, api, Clocks(api.folder, rng)) as one, \
            Replica(build, api, Clocks(api.folder, rng)) as two:
        one.clocks.pass_by("clock_pause", LEASE_S + 1)  # somebody may have led before
        one_row("clock_pause", one, two)
        one_row("clock_suspend", two, one)
    if one.status or two.status:
        raise Wrong(f"they ended with {one.status} and {two.status}")
    return {"changes of the leader": 2}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"election": sys.modules[__name__]}))
