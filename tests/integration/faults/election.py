#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two replicas elect a leader while their clocks jump. At no moment do both bind, and a leader whose
machine slept knows that its lease is over before it answers the first request.

    election.py BUILD_DIR
"""

import argparse
import os
import signal
import sys
import time

from clocks import Clocks
from world import Failure, World, exit_status, pod, wait_until

LEASE_S, RETRY_S = 15, 2
FLAGS = ("--leader-elect", "--pod-namespace", "default", "--pod-name")
ROWS = (  # how the machine of the leader stood still
    ("stopped", "clock_pause"),
    ("slept", "clock_suspend"),
)


class Replica:
    def __init__(self, world, clocks, http):
        self.world, self.clocks, self.http = world, clocks, http
        self.serial = 0

    def binds(self):
        """Does it bind a pod now? Its answer otherwise must be a standby's."""
        self.serial += 1
        name = f"p-{os.path.basename(self.clocks.path)}-{self.serial}"
        made = self.world.api.json("POST", "/api/v1/namespaces/default/pods", pod(name, 1, 1))
        error = self.http.json("POST", "/gpushare-scheduler/bind", {
            "PodName": name, "PodNamespace": "default", "PodUID": made["metadata"]["uid"],
            "Node": "n3"})["Error"]
        self.world.api.json("DELETE", f"/api/v1/namespaces/default/pods/{name}")
        if error and "standby" not in error:
            raise Failure(f"{name}: {error}")
        return not error


def only(leader, other):
    if other.binds():
        raise Failure("the standby binds")
    return None if leader.binds() else "the leader does not bind"


def one_row(row, kind, leader, other):
    wait_until(f"{row}: a leader", lambda: only(leader, other), LEASE_S + 10)
    for hours in (6, -6, 0.01, -48, 0):
        leader.clocks.set_wall(hours * 3600)
        other.clocks.set_wall(-hours * 3600)
        if only(leader, other):
            raise Failure(f"{row}: the lead was lost when the clocks were set by {hours} h")
    # the leader's machine stands still, and on the other's the lease runs out
    os.kill(leader.clocks.pid, signal.SIGSTOP)
    try:
        time.sleep(RETRY_S + 0.5)  # it sees the last renewal
        other.clocks.pass_by("clock_pause", LEASE_S + 1)
        wait_until(f"{row}: the other leads", lambda: None if other.binds() else "not yet", 10)
        at = 1 if kind == "clock_pause" else 2
        leader.clocks.put(at, leader.clocks.shift_ns[at] + int((LEASE_S + 1) * 1e9))
        # what it asks the API server on waking comes too late to tell it
        leader.world.plan("agent=gpushare-extender,stall=1000,stall_ms=1500")
    finally:
        os.kill(leader.clocks.pid, signal.SIGCONT)
    if leader.binds():
        raise Failure(f"{row}: it woke up and bound a pod, though another leads")
    leader.world.plan("")
    wait_until(f"{row}: one leader", lambda: only(other, leader), 10)


def body(build, folder):
    clocks = [Clocks(os.path.join(folder, name)) for name in ("a", "b")]
    with World(build, folder, 1, (*FLAGS, "a"), clocks[0]) as world:
        replicas = [Replica(world, clocks[0], world.extender)]
        world.flags, world.clocks = [*FLAGS, "b"], clocks[1]
        world.start_extender()
        replicas.append(Replica(world, clocks[1], world.extender))
        began = time.monotonic()
        clocks[0].pass_by("clock_pause", LEASE_S + 1)  # somebody may have led before
        for row, kind in ROWS:
            one_row(row, kind, *replicas)
            replicas.reverse()
        print(f"{len(ROWS)} changes of the leader, 10 settings of both clocks, "
              f"{sum(one.serial for one in replicas)} binds asked, {time.monotonic() - began:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    options = parser.parse_args()
    return exit_status("election", lambda folder: body(options.build, folder))


if __name__ == "__main__":
    sys.exit(main())
