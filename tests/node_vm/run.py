#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py KERNEL_FOLDER DISK_FOLDER [--snapshot FOLDER] [--only CASE]...   started by scripts/node.sh"""

import argparse
import contextlib
import os
import sys
import time
import traceback

import cases
import checks
from cluster import Cgroupfs, Systemd, VmCluster
from harness.case import run

SEEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seen.txt")


def tell_failure(name, cluster):
    print(f"FAIL  {name}: {traceback.format_exc(limit=-2)}", flush=True)
    cluster.tell()


def one(name, show, cluster):
    started = time.monotonic()
    print(f"\n== {name}: {show.__doc__.splitlines()[0]}", flush=True)
    failed = checks.FAILED.copy()
    try:
        cluster.settle()
        show(cluster)
    except Exception as error:  # pylint: disable=broad-except
        if str(error).startswith("stopped by signal"):
            raise
        checks.FAILED.append(name)
        tell_failure(name, cluster)
    word = "PASS" if failed == checks.FAILED else "FAIL"
    seconds = round(time.monotonic() - started)
    print(f"{word} {name} ({seconds} s)", flush=True)
    return word, seconds


def record(commit, kind, name, word, seconds):
    """Its line in what was seen, in place of an older one."""
    with contextlib.suppress(FileNotFoundError), open(SEEN, encoding="ascii") as text:
        lines = [line for line in text if line.split()[:len(kind) + 1] != [*kind, name]]
        lines.append(" ".join((*kind, f"{name:18} {word} {seconds:4} s ", time.strftime("%Y-%m-%d"), commit)) + "\n")
        head = [line for line in lines if line.startswith("#")]
        with open(SEEN, "w", encoding="ascii") as out:
            out.writelines(head + sorted(line for line in lines if not line.startswith("#")))


def body(options):
    started = time.monotonic()
    driver = Cgroupfs if options.cgroupfs else Systemd
    runtime = "crun" if options.crun else "runc"
    limits = "limits" if options.driver else False
    with VmCluster(options.kernel, options.disk, options.snapshot, driver, runtime, limits) as cluster:
        print(f"the cluster stands after {time.monotonic() - started:.0f} s", flush=True)
        known = cases.STOCK if cluster.stock else cases.CASES
        names = options.only or (cases.TEN if options.ten else [
            name for name in known if not options.driver or name not in cases.NO_LIMIT])
        kind = ("no-dmem" if cluster.stock else f"{driver.name}+driver" if options.driver else driver.name, runtime,
                os.environ["KUBE_VERSION"])
        for name in names:
            word, seconds = one(name, known[name], cluster)
            if options.record:
                record(options.record, kind, name, word, seconds)
        print(f"\n{len(names)} cases, failed: {', '.join(checks.FAILED) or 'none'}", flush=True)
        if checks.FAILED:
            sys.exit(1)


parser = argparse.ArgumentParser()
parser.add_argument("kernel")
parser.add_argument("disk")
parser.add_argument("--snapshot")
parser.add_argument("--only", action="append", choices=list(cases.CASES | cases.STOCK))
parser.add_argument("--record")
for switch in ("--ten", "--driver", "--cgroupfs", "--crun"):
    parser.add_argument(switch, action="store_true")
run(lambda: body(parser.parse_args()))
