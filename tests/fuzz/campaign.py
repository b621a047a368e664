#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets for long, a slice of time each in turn, at the lowest priority and one at a
time, and adds what was run to the ledger tests/fuzz/ledger.md: CPU seconds, executions, edges.

What libFuzzer keeps lies in ~/.cache/gpushare/fuzz (XDG_CACHE_HOME), so that a campaign goes on where
the last one ended. --merge takes from there the inputs that reach an edge no input in the tree
reaches into tests/fuzz/grown, one file per target: for each input its length, four bytes, the lowest
first, and the input. A target that finds something rests until its artifact is gone.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGER = ROOT / "tests/fuzz/ledger.md"
FUZZ = ROOT / "tests/fuzz"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "gpushare/fuzz")
SMALL_BYTES = 4096  # the largest input that is taken into the tree
ROW = re.compile(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|", re.M)
# Bytes that strangers send, parsed by hand, come first and get more.
WEIGHTS = {"service_verbs": 4, "codec_pod": 3, "codec_list": 3, "codec_watch": 3,
           "codec_extender_filter": 3, "codec_extender_preempt": 2, "codec_extender_bind": 2,
           "grpc_server": 3, "grpc_client": 2, "grpc_frame": 2,
           "codec_node": 2, "codec_scan": 2}


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


def read_ledger():
    """{target: [CPU seconds, executions, edges]}"""
    found = {row[0]: [int(part) for part in row[1:]] for row in ROW.findall(LEDGER.read_text())}
    return {target: found.get(target, [0, 0, 0]) for target in targets()}


def write_ledger(target, cpu_s, executions, edges):
    """Adds to one row; the words after the numbers are people's."""
    def add(row):
        return (f"| `{row[1]}` | {int(row[2]) + cpu_s} | {int(row[3]) + executions} | "
                f"{max(int(row[4]), edges)} |") if row[1] == target else row[0]
    text = LEDGER.read_text()
    if f"| `{target}` |" not in text:
        text = text.rstrip("\n") + f"\n| `{target}` | 0 | 0 | 0 | |\n"
    made = LEDGER.with_suffix(".new")
    made.write_text(ROW.sub(add, text))
    made.replace(LEDGER)


def program(options, target):
    return [str(options.build / "tests" / f"fuzz_{target}"), "-timeout=60", "-rss_limit_mb=1024",
            f"-artifact_prefix={CACHE}/found/{target}-", f"-dict={FUZZ}/words.dict"]


def lowest():
    os.nice(19)


def fuzz(options, target, seconds):
    """(CPU seconds, executions, edges); what libFuzzer printed lies in the cache."""
    folder = unpack(target, CACHE / target)
    before = os.times()
    with open(CACHE / f"{target}.log", "wb") as log:
        subprocess.run([*program(options, target), f"-max_total_time={seconds}",
                        "-print_final_stats=1", "-reload=0", str(folder), str(FUZZ / "corpus" / target)],
                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=lowest,
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
    while (left := deadline - time.monotonic()) > 1:
        known = read_ledger()
        ready = [target for target in options.targets if not artifacts(target)]
        if not ready:
            break
        weight = {one: WEIGHTS.get(one, 1) for one in ready}
        target = min(ready, key=lambda one: (known[one][0] // 60 / weight[one], -weight[one]))
        figures = fuzz(options, target, max(1, round(min(left, options.slice))))
        if not figures[1]:
            sys.exit((CACHE / f"{target}.log").read_text(errors="replace")[-2000:])
        write_ledger(target, *figures)
        print(f"{target}: {figures[0]} s of CPU, {figures[1]} executions, {figures[2]} edges"
              f"{''.join(f', FOUND {path}' for path in artifacts(target))}", flush=True)
    return 1 if any(artifacts(target) for target in options.targets) else 0


def merge(options):
    """Few inputs that reach every edge; counters would keep ten times more."""
    for target in options.targets:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FUZZ / "corpus" / target, folder, dirs_exist_ok=True)
            named = set(os.listdir(folder))
            subprocess.run([*program(options, target), "-set_cover_merge=1", "-use_counters=0",
                            f"-max_len={SMALL_BYTES}", folder, str(unpack(target, CACHE / target))],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, preexec_fn=lowest, check=True)
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
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-fuzz")
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
