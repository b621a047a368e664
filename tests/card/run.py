#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py OUT COMMIT [--rehearse]   started by scripts/card.sh; OUT/seen.txt gets a line for each case that passed"""

import contextlib
import os
import sys
import time
import traceback

from harness.case import check, run
from harness.control_plane import built_program
from harness.processes import wait_for
from harness.shapes import create_priorities

from cluster import SEEN_BY, CardCluster
from machine import Machine

OUT, COMMIT, REHEARSAL = sys.argv[1], sys.argv[2], "--rehearse" in sys.argv
CONTEXT_MIB = 1024  # a CUDA context takes less
CASES = []


def case(function):
    CASES.append(function)
    return function


def note(words):
    print(f"      {words}", flush=True)


def mib_of(units):
    """What a program with a context can allocate of them."""
    return units * 1024 - CONTEXT_MIB


@case
def reserve(cluster):
    """The driver's reserve: what the card has free before the first pod, and --gpu-reserve."""
    card = cluster.machine.gpus()[0]
    offered, used = cluster.units() * 1024, card["used_mib"]
    free = card["mib"] - used
    note(f"{card['mib']} MiB, of which {used} are the driver's and {free} free; advertised are {offered}"
         f"{', more than are free' if offered > free else ''}")
    cluster.replace_plugin(f"--gpu-reserve={used}")
    note(f"with --gpu-reserve={used}: {cluster.units() * 1024}")
    check(cluster.units() == free // 1024, "what is advertised is not what is free")
    cluster.replace_plugin()


@case
def sharing(cluster):
    """Inventory and allocatable are the driver's; two pods share the card, a third does not fit."""
    driver = {gpu["uuid"]: gpu["mib"] for gpu in cluster.machine.gpus()}
    told = {uuid: gpu["memMiB"] for uuid, gpu in cluster.inventory().items()}
    check(told == driver, f"the inventory has {told}, the driver {driver}")
    check(cluster.gpu_memory() == sum(mib // 1024 for mib in driver.values()), "allocatable is not the sum")
    sizes = two_pods(cluster)
    for name, size in sizes.items():
        lines = cluster.allocated(name)
        gpus = [line for line in lines if line.startswith("gpu ")]
        check(len(gpus) == 1 and f"uuid={cluster.uuid} " in gpus[0], f"{name} sees {gpus}")
        nodes = [line for line in lines if line.startswith("/dev/")]
        check(nodes == [f"/dev/nvidia{cluster.machine.card['minor']}"], f"{name} has the devices {nodes}")
        note(f"{name}, {size} GiB: {lines[-1]}")
    cluster.worker("third", sizes["large"], "exec sleep 1000000")
    message = cluster.wait_refused("third")
    check("Insufficient aliyun.com/gpu-mem" in message, message)  # one card: the node's sum does not do either
    why = cluster.why("third")
    check("insufficient free GPU memory" in why, why)
    note(f"third, {sizes['large']} GiB: {message}")
    cluster.wait_inspect_agrees()


def two_pods(cluster):
    """A quarter of the card and a half, of which each program takes all but its context."""
    sizes = {"small": cluster.units() // 4, "large": cluster.units() // 2}
    for name, size in sizes.items():
        cluster.worker(name, size, f"{SEEN_BY}; ls /dev/nvidia[0-9]*; {cluster.computes(mib_of(size))}")
    return sizes


@case
def usage(cluster):
    """The CLI shows what both programs allocated, within a context's size."""
    sizes = two_pods(cluster)
    for name in sizes:
        cluster.allocated(name)

    def probe():
        used = cluster.cli_usage()
        return used if all(0 <= used.get(name, -1) - mib_of(size) <= CONTEXT_MIB for name, size in sizes.items()) else None
    used = wait_for("the CLI shows what both allocated", probe, 40, interval_s=1)
    note(f"usage by the CLI: {used} MiB")


@case
def excess(cluster):
    """A program that takes more than its pod's request is named by metric, Event and CLI."""
    cluster.worker("over", 2, cluster.computes(3 * 1024 + 512))
    cluster.worker("under", 2, cluster.computes(1024))
    for name in ("over", "under"):
        cluster.allocated(name)
    wait_for("it has an Event", lambda: "GpuMemoryOverRequest" in cluster.events("over"), 60, interval_s=1)
    check("GpuMemoryOverRequest" not in cluster.events("under"), "the other has an Event, too")
    metric = "gpushare_device_plugin_pod_gpu_memory"
    used, given = (cluster.metric_of("over", f"{metric}_{what}_bytes") for what in ("used", "allocated"))
    check(given == 2048 and used >= 3 * 1024 + 512, f"the metrics say {used} of {given} MiB")
    said = cluster.inspect("pods", "--by", "pod", "--over-request")
    check("over" in said and "under" not in said, said)
    said = [line for line in cluster.inspect("doctor").splitlines() if "default/over" in line]
    check(said, "the doctor does not name it")
    note(f"{used} of {given} MiB; {said[0].strip()}")


def rounds(cluster, names):
    """How far each one's program has come."""
    return {name: int(cluster.lines(name, 2)[-1].split("=")[1]) for name in names}


def ledger(cluster):
    """The extender's, once the API agrees with it."""
    cluster.wait_inspect_agrees(30)
    check(not cluster.problems(complete=False), "the ledger is wrong")
    return cluster.extender.inspect()


@case
def restarts(cluster):
    """Plugin, kubelet, containerd and extender are restarted while programs compute."""
    names = ("a", "b")
    for name in names:
        cluster.worker(name, 4, cluster.computes(1024, "--work"))
    for name in names:
        cluster.running(name)
    lives, before = {name: cluster.life(name) for name in names}, ledger(cluster)

    def plugin():
        cluster.plugin.kill()
        cluster.start_plugin()

    def extender():
        cluster.extender.kill()
        cluster.extender.start()

    for restart in (plugin, cluster.restart_kubelet, cluster.restart_containerd, extender):
        started, came = time.monotonic(), rounds(cluster, names)
        restart()
        note(f"{restart.__name__.removeprefix('restart_')}: {time.monotonic() - started:.0f} s")
        wait_for("the programs go on", lambda came=came: all(
            now > came[name] for name, now in rounds(cluster, names).items()))
        check({name: cluster.life(name) for name in names} == lives, "a container is another one")
        check(ledger(cluster) == before, "the ledger is another")
    cluster.worker("after", 1, cluster.computes(128))
    note(f"a new pod: {cluster.allocated('after')[-1]}")


@case
def preemption(cluster):
    """The urgent pod gets the card's memory once the other's program has ended and the driver has it back."""
    create_priorities(cluster, {"low": 10, "urgent": 1000})
    size, free = cluster.units() * 3 // 4, cluster.machine.used_mib()
    # It ignores SIGTERM: it ends with its grace period.
    cluster.worker("victim", size, f"trap '' TERM; {cluster.computes(mib_of(size))}", priorityClassName="low",
                   terminationGracePeriodSeconds=8)
    cluster.allocated("victim")
    victim = cluster.uid("victim")
    held = cluster.machine.users()[victim]
    check(held >= mib_of(size), f"the driver lists {held} MiB of {mib_of(size)}")
    cluster.worker("urgent", size, f"sleep 3; {cluster.computes(mib_of(size))}", priorityClassName="urgent")
    wait_for("the victim is evicted", lambda: (cluster.find_pod("victim") or {"metadata": {"deletionTimestamp": "gone"}})
             ["metadata"].get("deletionTimestamp"))
    started = time.monotonic()
    cluster.wait_bound("urgent", 60)
    waited = time.monotonic() - started
    users, used = cluster.machine.users(), cluster.machine.used_mib()
    check(victim not in users, f"the victim's program was still there: {users}")
    check(used <= free + CONTEXT_MIB, f"{used} MiB were in use, {free} before both")
    note(f"bound {waited:.1f} s after the eviction, {used} MiB in use then; {cluster.allocated('urgent')[-1]}")


@case
def mps(cluster):
    """MPS: a pod of 2 GiB is given 1 and refused 3 by the plugin's own answer, and another goes on."""
    root = os.path.join(cluster.run_dir, "mps")
    os.makedirs(root)
    daemons = cluster.processes.start("gpushare-mps", [
        built_program("gpushare-mps"), "--root", root, "--nvml-library", cluster.machine.nvml])
    cluster.replace_plugin(f"--mps-root={root}")
    wait_for("the card has its daemon", lambda: daemons.must_run() or
             cluster.inventory()[cluster.uuid].get("enforced") == "mps", 60)
    cluster.worker("other", 4, cluster.computes(1024, "--work"))
    came = rounds(cluster, ["other"])
    cluster.worker("client", 2, f"cuda_probe --mib 1024; cuda_probe --mib 3072; {cluster.computes(512)}")
    lines = cluster.lines("client", 3)
    note(" | ".join(lines))
    check(lines[0].startswith("allocated_mib=1024 "), "1 GiB of 2 was refused")
    check("OUT_OF_MEMORY" in lines[1], "3 GiB of 2 were given")
    check(lines[2].startswith("allocated_mib=512 "), "it is refused memory after that")
    wait_for("the other goes on", lambda: rounds(cluster, ["other"])["other"] > came["other"])
    check(cluster.life("other")[1] == 0, "the other was restarted")
    cluster.settle()
    daemons.stop(30)


def one(show, cluster):
    """Seconds that the case took; None: it failed."""
    started = time.monotonic()
    print(f"== {show.__name__}: {show.__doc__.splitlines()[0]}", flush=True)
    try:
        cluster.settle()
        show(cluster)
    except Exception as error:  # pylint: disable=broad-except
        if str(error).startswith("stopped by signal"):
            raise
        print(f"FAIL {show.__name__}: {traceback.format_exc(limit=-2)}", flush=True)
        with contextlib.suppress(Exception):
            cluster.tell()
        return None
    return round(time.monotonic() - started)


def body():
    machine = Machine(os.environ["GPUSHARE_RUN_DIR"], REHEARSAL)
    machine.tell()
    started, failed = time.monotonic(), []
    card = machine.card["model"].replace(" ", "-")
    with CardCluster(machine) as cluster:
        info = cluster.node_object()["status"]["nodeInfo"]
        note(f"Kubernetes {info['kubeletVersion']}, {info['containerRuntimeVersion']}, ready after "
             f"{time.monotonic() - started:.0f} s")
        for show in CASES:
            seconds = one(show, cluster)
            if seconds is None:
                failed.append(show.__name__)
                continue
            line = f"{time.strftime('%Y-%m-%d')} {COMMIT} {card} {machine.driver} {machine.kernel} {show.__name__:10} {seconds} s"
            print(f"PASS {show.__name__} ({seconds} s)", flush=True)
            with open(os.path.join(OUT, "seen.txt"), "a", encoding="ascii") as out:
                out.write(line + (" (rehearsal)" if REHEARSAL else "") + "\n")
    print(f"{len(CASES)} cases, failed: {' '.join(failed) or 'none'}, {time.monotonic() - started:.0f} s", flush=True)
    sys.exit(bool(failed))


run(body)
