#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets for long, a slice of time each in turn, at the lowest priority and one at a
time, and prints what was run: CPU seconds, executions, edges.

What libFuzzer keeps lies in ~/.cache/gpushare/fuzz (XDG_CACHE_HOME), so that a campaign goes on where
the last one ended. --merge takes from there the inputs that reach an edge no input in the tree
reaches into tests/fuzz/grown, one file per target: for each input its length, four bytes, the lowest
first, and the input. A target that finds something rests until its artifact is gone.
"""

import argparse
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests/fuzz"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "gpushare/fuzz")
SMALL_BYTES = 4096  # the largest input that is taken into the tree


def targets():
    return sorted(path.stem for path in FUZZ.glob("*_*.c"))


def grown(target):
    """The inputs of tests/fuzz/grown."""
    path, found = FUZZ / "grown" / target, []
    data = path.read_bytes() if path.exists() else b""
    while data:
        end = 4 + int.from_bytes(data[:4], "little")
        found.append(data[4:end])
        data = data[end:]
    return found


def unpack(target, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for one in grown(target):
        (folder / hashlib.sha1(one).hexdigest()).write_bytes(one)
    return folder


def pack(target, inputs):
    (FUZZ / "grown").mkdir(exist_ok=True)
    (FUZZ / "grown" / target).write_bytes(
        b"".join(len(one).to_bytes(4, "little") + one for one in sorted(inputs, key=len)))


def program(target):
    return ["nice", "-n19", f"{ROOT}/build-fuzz/tests/fuzz_{target}", "-timeout=60", "-rss_limit_mb=1024",
            f"-artifact_prefix={CACHE}/found/{target}-", f"-dict={FUZZ}/words.dict"]


def fuzz(target, seconds):
    """(CPU seconds, executions, edges); what libFuzzer printed lies in the cache."""
    folder = unpack(target, CACHE / target)
    before = os.times()
    with open(CACHE / f"{target}.log", "wb") as log:
        subprocess.run([*program(target), f"-max_total_time={seconds}",
                        "-print_final_stats=1", "-reload=0", str(folder), str(FUZZ / "corpus" / target)],
                       stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                       check=False)
    after = os.times()
    text = (CACHE / f"{target}.log").read_text(errors="replace")
    executions = re.findall(r"number_of_executed_units:\s*(\d+)|^#(\d+)\s", text, re.M)
    edges = re.findall(r" cov: (\d+)", text)
    cpu_s = (after.children_user + after.children_system - before.children_user -
             before.children_system)
    return (round(cpu_s), max((int(a or b) for a, b in executions), default=0),
            max(map(int, edges), default=0))


def artifacts(target):
    return sorted((CACHE / "found").glob(f"{target}-*"))


def run(options):
    deadline = time.monotonic() + options.seconds
    for target in itertools.cycle(options.targets):
        left = deadline - time.monotonic()
        if left <= 1 or all(map(artifacts, options.targets)):
            break
        if artifacts(target):
            continue
        figures = fuzz(target, max(1, round(min(left, options.slice))))
        if not figures[1]:
            sys.exit((CACHE / f"{target}.log").read_text(errors="replace")[-2000:])
        print(f"{target}: {figures[0]} s of CPU, {figures[1]} executions, {figures[2]} edges"
              f"{''.join(f', FOUND {path}' for path in artifacts(target))}", flush=True)
    return 1 if any(artifacts(target) for target in options.targets) else 0


def merge(options):
    """Few inputs that reach every edge; counters would keep ten times more."""
    for target in options.targets:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FUZZ / "corpus" / target, folder, dirs_exist_ok=True)
            named = set(os.listdir(folder))
            subprocess.run([*program(target), "-set_cover_merge=1", "-use_counters=0",
                            f"-max_len={SMALL_BYTES}", folder, str(unpack(target, CACHE / target))],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True)
            inputs = [pathlib.Path(folder, name).read_bytes()
                      for name in set(os.listdir(folder)) - named]
            before = len(grown(target))
            pack(target, inputs)
        print(f"{target}: {len(inputs)} inputs, {before} before", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="service_verbs, codec_pod, …")
    parser.add_argument("--seconds", type=int, default=3600, help="in all [3600]")
    parser.add_argument("--slice", type=int, default=120, help="seconds at a time [120]")
    parser.add_argument("--merge", action="store_true", help="take what was found into the tree")
    parser.add_argument("--unpack", type=pathlib.Path, metavar="DIR",
                        help="write the inputs of tests/fuzz/grown as files, for other tools")
    options = parser.parse_args()
    unknown = set(options.targets) - set(targets())
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    options.targets = options.targets or targets()
    if options.unpack:
        for target in options.targets:
            unpack(target, options.unpack / target)
        return 0
    (CACHE / "found").mkdir(parents=True, exist_ok=True)
    return merge(options) if options.merge else run(options)


if __name__ == "__main__":
    sys.exit(main())
