#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py KERNEL_FOLDER DISK_FOLDER [--only CASE]... [--show]   started by scripts/node.sh"""

import argparse
import sys
import time
import traceback

import cases
from cluster import VmCluster
from harness.case import run


def tell_failure(name, cluster):
    print(f"FAIL  {name}: {traceback.format_exc(limit=-2)}", flush=True)
    cluster.tell()


def one(name, show, cluster):
    started = time.monotonic()
    print(f"\n== {name}: {show.__doc__.splitlines()[0]}", flush=True)
    failed = cases.FAILED.copy()
    try:
        cluster.settle()
        show(cluster)
    except Exception:  # pylint: disable=broad-except
        cases.FAILED.append(name)
        tell_failure(name, cluster)
    word = "PASS" if failed == cases.FAILED else "FAIL"
    print(f"{word} {name} ({time.monotonic() - started:.0f} s)", flush=True)


def body(options):
    started = time.monotonic()
    with VmCluster(options.kernel, options.disk) as cluster:
        print(f"the cluster stands after {time.monotonic() - started:.0f} s", flush=True)
        cases.facts(cluster)
        known = cases.STOCK if cluster.stock else cases.CASES
        names = options.only or list(known)
        if options.show:
            cases.show(cluster)
            return
        for name in names:
            one(name, known[name], cluster)
        print(f"\n{len(names)} cases, failed: {', '.join(cases.FAILED) or 'none'}", flush=True)
        if cases.FAILED:
            sys.exit(1)


parser = argparse.ArgumentParser()
parser.add_argument("kernel")
parser.add_argument("disk")
parser.add_argument("--only", action="append", choices=list(cases.CASES | cases.STOCK))
parser.add_argument("--show", action="store_true")
run(lambda: body(parser.parse_args()))
