#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts one mistake at a time into the code and asks whether a test sees it.

    tests/mutants/run.py                          all of them: by hand, some 4 s each
    tests/mutants/run.py --seconds 170            what the last commits touch first, then others in turn
    tests/mutants/run.py --folder limit --record  note which test sees each

A mutant stands in FOLDER.mut beside this file:

    [undo-frees-no-node] src/service/bind.c
    The waiting pods of a node are not woken when a bind is undone.
    < gs_store_freed(store, slot);
    > (void)slot;
    by service_test_bind

Lines after "<" stand in the file once, those after ">" take their place; what leads each block is compared
without its indentation. A line "-" ends a block, so that another may follow. "by" names the tests that see it, and is
written by --record; "same REASON" says that nothing can see it, since it changes nothing. What no longer
applies or compiles is an error, and so is a mutant that no test sees.

The tree is copied into BUILD (build-mutants/) and built there; the checkout is not touched.
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = "gpushare-extender gpushare-device-plugin gpushare-mps kubectl-inspect-gpushare gpushare-sim".split()
# The tests that are asked where no "by" says better.
TESTS = {
    "cli": r"^(apps_inspect_|apps_common_|inspect_|bad_usage)",
    "device_plugin": r"^(apps_device_plugin_|device_plugin_|allocate_)",
    "mps": r"^(apps_mps_|mps_)",
    "core": r"^(core_test_|property_|ledger_|fragmentation)",
    "sim": r"^(sim_test_)",
}
TEST_SECONDS = 120


class Mutant:
    def __init__(self, name, path, folder):
        self.name, self.path, self.folder = name, path, folder
        self.why, self.blocks, self.by, self.same = "", [], [], None

    def apply(self, text):
        for old, new in self.blocks:
            text = replace_once(text, old, new)
        return text


def replace_once(text, old, new):
    """Finds the lines OLD in TEXT whatever their indentation; NEW gets that of the first."""
    lines = text.split("\n")
    want = [line.strip() for line in old]
    found = [i for i in range(len(lines) - len(want) + 1)
             if [line.strip() for line in lines[i:i + len(want)]] == want]
    if len(found) != 1:
        raise ValueError(f"{len(found)} places read {want[0]!r}, wanted one")
    at = found[0]
    lead = re.match(r"\s*", lines[at]).group()
    cut = len(re.match(r"\s*", old[0]).group())
    return "\n".join(lines[:at] + [lead + line[cut:] if line.strip() else line for line in new]
                     + lines[at + len(want):])


def read(path):
    mutants, block = [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            name, where = re.fullmatch(r"\[([\w.-]+)\] (\S+)", line).groups()
            mutants.append(Mutant(name, where, path.stem))
            block = None
        elif line[:2] in ("< ", "> ") or line in "<>":
            if block is None or (line[0] == "<" and block[1]):
                block = ([], [])
                mutants[-1].blocks.append(block)
            block[line[0] == ">"].append(line[2:])
        elif line == "-":
            block = None
        elif line.startswith("by "):
            mutants[-1].by = line[3:].split()
        elif line.startswith("same "):
            mutants[-1].same = line[5:]
        elif not mutants[-1].blocks:
            mutants[-1].why += (" " if mutants[-1].why else "") + line
        else:
            sys.exit(f"{path}:{number}: what is {line!r}?")
    return mutants


def record(path, seen):
    """Writes the "by" lines anew for the mutants in SEEN."""
    out, name = [], None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            name = line[1:line.index("]")]
        if line.startswith("by ") and name in seen:
            line = "by " + seen.pop(name)
        elif not line and name in seen:
            out.append("by " + seen.pop(name))
        out.append(line)
    if name in seen:
        out.append("by " + seen.pop(name))
    path.write_text("\n".join(out) + "\n")


class Tree:
    def __init__(self, build, jobs):
        self.src, self.build, self.jobs = build / "tree", build / "build", jobs
        self.sync()
        if not (self.build / "build.ninja").exists():
            subprocess.run(["cmake", "-S", self.src, "-B", self.build, "-G", "Ninja", "-DGS_WERROR=OFF",
                            "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-w -O1 -g0"],
                           check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", self.build, "build.ninja"], check=True, stdout=subprocess.DEVNULL)
        listed = subprocess.run(["ninja", "-C", self.build, "-t", "targets", "all"],
                                check=True, capture_output=True, text=True).stdout
        self.targets = set(re.findall(r"^(\w[\w.-]*): phony", listed, re.M))
        shown = subprocess.run(["ctest", "--test-dir", self.build, "-N"], check=True, capture_output=True, text=True)
        self.tests = re.findall(r"^ *Test +#\d+: (\S+)", shown.stdout, re.M)

    def sync(self):
        names = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split("\0")
        names = {name for name in names if name and (ROOT / name).is_file()}
        for name in names:
            there = self.src / name
            if there.is_file() and there.read_bytes() == (ROOT / name).read_bytes():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, there)
        for there in self.src.rglob("*"):
            if there.is_file() and str(there.relative_to(self.src)) not in names:
                there.unlink()

    def make(self, tests):
        targets = {test for test in tests if test in self.targets}
        if len(targets) < len(tests):
            targets |= set(PROGRAMS) & self.targets
        done = subprocess.run(["ninja", "-C", self.build, f"-j{self.jobs}", *sorted(targets)],
                              capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout[-600:]

    def run(self, tests):
        """The first test that fails, or None."""
        done = subprocess.run(["ctest", "--test-dir", self.build, f"-j{self.jobs}", "--stop-on-failure",
                               "--timeout", str(TEST_SECONDS), "-R", "^(" + "|".join(map(re.escape, tests)) + ")$"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})
        if done.returncode == 0:
            return None
        # a mutant that breaks an invariant ends by a signal, which ctest words in many ways
        failed = re.findall(r"Test +#\d+: (\S+) \.+ *(?:\*\*\*|Child aborted|Subprocess)", done.stdout)
        return failed[0] if failed else "?"

    def write(self, path, text):
        (self.src / path).write_text(text)


def judge(tree, mutant):
    """(outcome, what): seen by a test, survived, or an error."""
    text = (tree.src / mutant.path).read_text()
    try:
        broken = mutant.apply(text)
    except (ValueError, FileNotFoundError) as why:
        return "error", f"does not apply: {why}"
    tests = [test for test in mutant.by if test in tree.tests]
    if len(tests) < len(mutant.by):
        return "error", "no such test: " + " ".join(set(mutant.by) - set(tree.tests))
    pattern = TESTS.get(mutant.folder, rf"^{mutant.folder}_test_")
    rounds = [tests] if tests else []
    rounds.append([test for test in tree.tests if re.search(pattern, test) and test not in tests])
    tree.write(mutant.path, broken)
    try:
        for tests in filter(None, rounds):
            wrong = tree.make(tests)
            if wrong:
                return "error", "does not compile: " + wrong
            seen = tree.run(tests)
            if seen:
                return "seen", seen
        return "survived", ""
    finally:
        tree.write(mutant.path, text)


def touched():
    """The files of the last commits, of what is not committed, and how much each counts."""
    names = subprocess.run(["git", "log", "-30", "--name-only", "--format="], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    names += subprocess.run(["git", "diff", "--name-only", "HEAD"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    return set(names)


def source_of(test):
    layer, _, name = test.partition("_test_")
    return f"tests/unit/{layer}/test_{name}.c"


def in_turn(mutants):
    """What the last commits touch first, the rest in an order that each commit draws anew."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    files = touched()

    def key(mutant):
        near = mutant.path in files or any(source_of(test) in files for test in mutant.by)
        return not near, hashlib.sha256((head + mutant.name).encode()).digest()
    return sorted(mutants, key=key)


def main():
    ask = argparse.ArgumentParser(description="Puts mistakes into the code and asks whether a test sees them.")
    ask.add_argument("names", nargs="*", help="only these mutants")
    ask.add_argument("--folder", action="append", help="only FOLDER.mut")
    ask.add_argument("--file", action="append", help="only mutants of this source file")
    ask.add_argument("--seconds", type=int, help="begin no other after this")
    ask.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutants")
    ask.add_argument("--jobs", type=int, default=os.cpu_count())
    ask.add_argument("--record", action="store_true", help="write which test sees each into FOLDER.mut")
    ask.add_argument("--list", action="store_true")
    args = ask.parse_args()
    mutants = [mutant for path in sorted(HERE.glob("*.mut")) for mutant in read(path)]
    if len({mutant.name for mutant in mutants}) < len(mutants):
        sys.exit("two mutants have one name")
    picked = [mutant for mutant in mutants
              if (not args.names or mutant.name in args.names)
              and (not args.folder or mutant.folder in args.folder)
              and (not args.file or mutant.path in args.file)]
    if not picked:
        sys.exit("no such mutant")
    if args.list:
        for mutant in picked:
            print(f"{mutant.folder:14} {mutant.name:60} {' '.join(mutant.by) or mutant.same or '-'}")
        return 0
    started = time.monotonic()
    tree = Tree(args.build, args.jobs)
    if args.seconds:
        picked = in_turn(picked)
    counts, seen, bad = {}, {}, []
    begun = time.monotonic()
    for mutant in picked:
        row = counts.setdefault(mutant.folder, {"seen": 0, "survived": 0, "same": 0, "error": 0})
        if mutant.same:
            row["same"] += 1
            try:
                mutant.apply((tree.src / mutant.path).read_text())
            except (ValueError, FileNotFoundError) as why:
                row["error"] += 1
                bad.append(f"{mutant.name}: does not apply: {why}")
            continue
        if args.seconds and time.monotonic() - begun > args.seconds:
            break
        at = time.monotonic()
        outcome, what = judge(tree, mutant)
        row[outcome] += 1
        if outcome == "seen":
            seen.setdefault(mutant.folder, {})[mutant.name] = what
        else:
            bad.append(f"{mutant.name} ({mutant.path}): {outcome} {what}")
        print(f"{outcome:8} {time.monotonic() - at:5.1f} s  {mutant.folder}/{mutant.name}  {what.splitlines()[-1] if what else ''}",
              flush=True)
    if args.record:
        for folder, names in seen.items():
            record(HERE / f"{folder}.mut", {name: test for name, test in names.items() if test != "?"})
    print(f"\n{'folder':14} seen survived same error")
    for folder, row in sorted(counts.items()):
        print(f"{folder:14} {row['seen']:4} {row['survived']:8} {row['same']:4} {row['error']:5}")
    asked = sum(row["seen"] + row["survived"] for row in counts.values())
    print(f"{asked} of {len(mutants)} asked, {time.monotonic() - started:.0f} s")
    for line in bad:
        print("WRONG", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
