#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts one mistake at a time into the code and asks whether a test sees it.

    tests/mutants/run.py                          all of them, some 3 s each
    tests/mutants/run.py --folder limit --record  note in limit.mut which test sees each
    tests/mutants/run.py --apply                  whether all apply, a second
    tests/mutants/run.py --noted                  the table by folder of what is noted
    tests/mutants/run.py --seconds 150            what is seen still is: near the last changes first, then others in turn

A mistake stands in FOLDER.mut beside this file:

    == extender/service/bind.c

    [undo-frees-no-node]
    # The waiting pods of a node are not woken when a bind is undone.
    < gs_store_freed(store, slot);
    > (void)slot;
    by service_test_scenarios

All below a "==" are of that file. The text after "<" stands in the file once, white space apart, and that after ">" takes its place. A line "-" ends
a block, and another may follow. "by" names the test that sees it (--record writes it): that one is asked first,
then those named as the file, then those of the folder (TESTS). "equivalent: WHY" says that no test can see it. Who has no such line has survived
so far: all of these are asked by --unseen. What does not apply or compile is an error.

The tree is copied to BUILD (build-mutants/) and built there: the checkout is only read.
"""
import argparse
import hashlib
import json
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
# Which tests can see a folder's mistakes, its own first.
TESTS = {
    "allocate": ["allocate_", "device_plugin_"],
    "cli": ["inspect_test_", "page$|page_attack|bad_usage|one_answer|restarted_list|from_file$"],
    "cluster": ["service_test_|inspect_test_"],
    "core": ["core_test_", "ledger_property|service_test_"],
    "device_plugin": ["(device_plugin|common)_test_", "device_plugin_|bad_usage"],
    "grpc": ["grpc_test_", "device_plugin_test_driver"],
    "http": ["http_test_", "hostile_"],
    "kube": ["kube_test_|kube_api_test_"],
    "limit": ["limit_test_|device_plugin_test_node", "device_plugin_"],
    "model": ["model_test_", "core_test_|service_test_|allocate_"],
    "mps": ["mps_test_|device_plugin_test_mps", "mps$", "device_plugin_|bad_usage"],
    "packing": ["packing_"],
}
TEST_SECONDS = 120
OUTCOMES = ("seen", "survived", "equivalent", "error")


class Mutant:
    def __init__(self, name, path, folder):
        self.name, self.folder = name, folder
        self.path = path if path.startswith(("tools/", "tests/")) else "src/" + path
        self.blocks, self.by, self.equivalent = [], [], False

    def apply(self, text):
        for old, new in self.blocks:
            pattern = r"\s+".join(map(re.escape, " ".join(old).split()))
            text, times = re.subn(pattern, lambda _, new=new: "\n".join(new), text)
            if times != 1:
                raise ValueError(f"{times} places read {old[0]!r}, wanted one")
        return text


def read(path):
    mutants, block, file = [], None, ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            file = line[3:]
        elif line[0] == "[":
            mutants.append(Mutant(line[1:-1], file, path.stem))
            block = None
        elif line[:2] in ("< ", "> ") or line == ">":
            if block is None or (line[0] == "<" and block[1]):
                block = ([], [])
                mutants[-1].blocks.append(block)
            block[line[0] == ">"].append(line[2:])
        elif line == "-":
            block = None
        elif line.startswith("by "):
            mutants[-1].by = line[3:].split()
        elif line.startswith("equivalent: "):
            mutants[-1].equivalent = True
        else:
            sys.exit(f"{path}:{number}: what is {line!r}?")
    return mutants


def record(path, seen):
    """Writes the "by" lines of the mutants in SEEN anew."""
    parts = re.split(r"(?m)^(?=\[|== )", path.read_text())
    for i, part in enumerate(parts):
        test = part.startswith("[") and seen.get(part[1:part.index("]")])
        if test:
            parts[i] = re.sub(r"(?m)^by .*\n", "", part).rstrip() + f"\nby {test}\n\n"
    path.write_text("".join(parts).rstrip() + "\n")


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


class Tree:
    def __init__(self, build, jobs):
        self.src, self.build, self.jobs = build / "tree", build / "build", str(jobs)
        self.sound = {}  # by test: whether it passes without a mistake
        self.sync()
        run("cmake", "-S", self.src, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_C_FLAGS=-w -O1 -g0", "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold")
        listed = json.loads(run("ctest", "--test-dir", self.build, "--show-only=json-v1"))["tests"]
        self.tests = {test["name"]: " ".join(test.get("command", [])) for test in listed}
        targets = run("ninja", "-C", self.build, "-t", "targets", "all")
        self.targets = set(re.findall(r"^(\w[\w.-]*): phony", targets, re.M))

    def sync(self):
        names = run("git", "ls-files", "-z", "-co", "--exclude-standard", cwd=ROOT).split("\0")
        names = {name for name in names if name and (ROOT / name).is_file()}
        for name in names:
            here, there = ROOT / name, self.src / name
            if there.is_file() and there.read_bytes() == here.read_bytes():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)
        for there in sorted(self.src.rglob("*"), reverse=True):
            if there.is_file() and str(there.relative_to(self.src)) not in names:
                there.unlink()
            elif there.is_dir() and not any(there.iterdir()):
                there.rmdir()

    def make(self, tests):
        """What is wrong, or ''."""
        targets = {test for test in tests if test in self.targets}
        if len(targets) < len(tests):
            targets |= set(PROGRAMS) & self.targets
        done = subprocess.run(["ninja", "-C", self.build, "-j", self.jobs, *sorted(targets)],
                              capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stdout[-600:]

    def fails(self, tests):
        """The first of them that fails, or ''."""
        done = subprocess.run(["ctest", "--test-dir", self.build, "-j", self.jobs, "--stop-on-failure", "--timeout",
                               str(TEST_SECONDS), "-R", "^(" + "|".join(map(re.escape, tests)) + ")$"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "GPUSHARE_INVARIANTS": "fatal", "MUTANT": "1"})
        failed = re.findall(r"^\s*\d+ - (\S+) \(", done.stdout, re.M)
        return failed[0] if failed else "" if done.returncode == 0 else "?"

    def sees(self, tests, fresh):
        """Who sees what is broken. FRESH: one that failed for another reason passes the second time."""
        while tests:
            seen = self.fails(tests)
            if not seen or not fresh or self.fails([seen]):
                return seen
            tests = [test for test in tests if test != seen]
        return ""

    def is_sound(self, test):
        """Whether it passes without a mistake: asked once of each."""
        if test not in self.sound:
            self.sound[test] = not self.make([test]) and not self.fails([test])
        return self.sound[test]


def judge(tree, mutant, own):
    """Outcome and what is to be said."""
    path = tree.src / mutant.path
    if mutant.equivalent:
        return "equivalent", ""
    unknown = set(mutant.by) - set(tree.tests)
    if unknown:
        return "error", "no such test: " + " ".join(unknown)
    text = path.read_text()
    rounds = [(mutant.by, False)]
    patterns = TESTS.get(mutant.folder, [mutant.folder + "_test_"])
    for pattern in [rf".*_test_{path.stem}", *(patterns[:1] if own else patterns)]:
        asked = [test for tests, _ in rounds for test in tests]
        rounds.append(([test for test in tree.tests if re.match(pattern, test) and test not in asked], bool(asked)))
    try:
        path.write_text(mutant.apply(text))
        for tests, fresh in rounds:
            wrong = tests and tree.make(tests)
            if wrong:
                return "error", "does not compile: " + wrong
            seen = tests and tree.sees(tests, fresh)
            if seen:
                return "seen", seen
        return "survived", ""
    finally:
        path.write_text(text)


def changed():
    """Files that differ from main; on main itself those of the last commits."""
    def git(*command):
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.split()
    head, base = git("rev-parse", "HEAD"), []
    for main in ("main", "origin/main"):
        base = base or git("merge-base", "HEAD", main)
    since = base[0] if base and base != head else (git("rev-list", "-n", "21", "HEAD") or ["HEAD"])[-1]
    return set(git("diff", "--name-only", since)) | set(git("ls-files", "-o", "--exclude-standard"))


def sources_of(tree):
    """The tests' own files by test."""
    units = json.loads((tree.build / "compile_commands.json").read_text())
    found = {test: set(re.findall(r"tests/[\w./-]+", command)) for test, command in tree.tests.items()}
    for unit in units:
        target = re.search(r"/(\w+)\.dir/", unit.get("output", unit["command"]))
        if target and target.group(1) in found:
            found[target.group(1)].add(os.path.relpath(unit["file"], tree.src))
    return found


def in_turn(tree, mutants):
    """Those of changed files and of what changed tests saw first, the rest in an order that each commit draws anew."""
    files, sources, head = changed(), sources_of(tree), run("git", "rev-parse", "HEAD", cwd=ROOT)

    def key(mutant):
        far = mutant.path not in files and not any(sources[test] & files for test in mutant.by if test in sources)
        return far, hashlib.sha256((head + (mutant.path if far else mutant.name)).encode()).digest()
    return sorted(mutants, key=key)


def options():
    ask = argparse.ArgumentParser(description="Puts mistakes into the code and asks whether a test sees them.")
    ask.add_argument("names", nargs="*", metavar="NAME", help="only these")
    ask.add_argument("--folder", action="append", help="only those of FOLDER.mut")
    ask.add_argument("--file", action="append", help="only those in this source file")
    ask.add_argument("--prepare", action="store_true", help="only build what it needs")
    ask.add_argument("--apply", action="store_true", help="only whether all apply: a second")
    ask.add_argument("--noted", action="store_true", help="only the table of what the files note: a second")
    ask.add_argument("--unseen", action="store_true", help='only those without a line "by"')
    ask.add_argument("--seconds", type=int, help="begin none after that; near the last changes first")
    ask.add_argument("--own", action="store_true", help="only by the folder's own tests, the quick ones")
    ask.add_argument("--record", action="store_true", help="write which test sees each into FOLDER.mut")
    ask.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutants")
    ask.add_argument("--jobs", type=int, default=os.cpu_count())
    return ask.parse_args()


def read_all():
    """Those that apply, and what is wrong with the others."""
    mutants = [mutant for path in sorted(HERE.glob("*.mut")) for mutant in read(path)]
    wrong = []
    if len({mutant.name for mutant in mutants}) < len(mutants):
        wrong.append("error: two mistakes have one name")
    for mutant in list(mutants):
        try:
            mutant.apply((ROOT / mutant.path).read_text())
        except (ValueError, FileNotFoundError) as why:
            wrong.append(f"error: {mutant.folder} {mutant.name} ({mutant.path}) does not apply: {why}")
            mutants.remove(mutant)
    return mutants, wrong


def show(table):
    whole = {outcome: sum(row[outcome] for row in table.values()) for outcome in OUTCOMES}
    print(f"\n{'folder':14}{'patches':>11}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES))
    for folder, row in [*sorted(table.items()), ("all", whole)]:
        print(f"{folder:14}{sum(row.values()):11}" + "".join(f"{row[outcome]:11}" for outcome in OUTCOMES))


def main():
    args = options()
    if args.prepare:
        tree = Tree(args.build.resolve(), args.jobs)
        return 1 if tree.make(tree.tests) else 0
    mutants, wrong = read_all()
    if args.apply:
        print(*wrong, f"{len(mutants)} apply", sep="\n")
        return 1 if wrong else 0
    table = {}
    if args.noted:
        for mutant in mutants:
            row = table.setdefault(mutant.folder, dict.fromkeys(OUTCOMES, 0))
            row["equivalent" if mutant.equivalent else "seen" if mutant.by else "survived"] += 1
        show(table)
        return 0
    picked = [mutant for mutant in mutants
              if (not args.names or mutant.name in args.names)
              and (not args.folder or mutant.folder in args.folder)
              and (not args.file or mutant.path in args.file)
              and (not args.unseen or not mutant.by)
              and (not args.seconds or mutant.by)]
    if not picked:
        sys.exit("no such mistake")
    started = time.monotonic()
    tree = Tree(args.build.resolve(), args.jobs)
    picked = in_turn(tree, picked) if args.seconds else sorted(picked, key=lambda m: (m.folder, m.path))
    for mutant in picked:
        at = time.monotonic()
        if args.seconds and at - started > args.seconds:
            break
        outcome, what = judge(tree, mutant, args.own)
        row = table.setdefault(mutant.folder, dict.fromkeys(OUTCOMES, 0))
        row[outcome] += 1
        if outcome in ("survived", "error"):
            wrong.append(f"{outcome}: {mutant.folder} {mutant.name} ({mutant.path}) {what}")
        print(f"{outcome:10} {time.monotonic() - at:5.1f} s  {mutant.folder}/{mutant.name} {what[-300:]}", flush=True)
        if args.record and outcome == "seen" and what != "?":
            if not tree.is_sound(what):
                sys.exit(f"error: {what} fails without any mistake")
            record(HERE / f"{mutant.folder}.mut", {mutant.name: what})
    show(table)
    asked = sum(sum(row.values()) for row in table.values())
    print(f"{asked} of {len(mutants)}, {time.monotonic() - started:.0f} s")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
