#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file of `kubectl inspect gpushare snapshot` or of kubectl reads as the cluster that it is of.

    run.py BUILD

Each cluster of tests/unit/inspect/clusters is a v1.List. Served by an API server, read by --from-file, and
read from a snapshot of it, the commands print the same. Broken files are an error that names the file.
"""

import contextlib
import glob
import json
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from api import Served  # noqa: E402
from objects import Pod, new_node  # noqa: E402
from programs import HOST  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
CLUSTERS = [path for path in sorted(glob.glob(os.path.join(ROOT, "tests/unit/inspect/clusters/*.json")))
            if not path.endswith("/nothing.json")]  # without a node or a pod, which is an error
COMMANDS = [["-o", "json"], ["-d"], ["map"], ["-o", "wide"], ["pods"], ["why", "-o", "json"],
            ["what-if", "--gpu-mem", "3x4,6"], ["defrag"]]
SEED = 20261128


def cli(build, *words):
    done = subprocess.run([os.path.join(build, "kubectl-inspect-gpushare"), *words], capture_output=True, timeout=60,
                          env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]}, check=False)
    # a snapshot has no messages of containers, which may quote arguments, and no environment
    out = re.sub(r"(container \S+ is waiting: \w+): .*|its containers set CUDA_MPS_ .*\n", r"\1", done.stdout.decode())
    return done.returncode, out, done.stderr.decode()


@contextlib.contextmanager
def served(path):
    """The words that make the CLI ask an API server with that file's objects."""
    with open(path, encoding="utf-8") as file, Served(json.load(file)["items"]) as api:
        yield [f"--server=http://{HOST}:{api.port}"]


def as_kubectl(cluster, path):
    """The cluster's file in the order of kubectl, indented as it does; names of two pods."""
    def place(one):
        return one["kind"], one["metadata"].setdefault("namespace", "default"), one["metadata"]["name"]

    with open(cluster, encoding="utf-8") as file:
        items = sorted(json.load(file)["items"], key=place)
    for one in items:
        one["metadata"].setdefault("creationTimestamp", "2026-01-02T00:00:00Z")
        one["metadata"].setdefault("uid", f"uid-{one['metadata']['name']}")
        if one["kind"] == "Node":
            del one["metadata"]["namespace"]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}, file, indent=4)
    return ["/".join(place(one)[1:]) for one in items if one["kind"] == "Pod"][:2]


def write_list(folder, name, items):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"kind": "List", "items": items}, file)
    return path


def what_is_no_file_stays(build, folder):
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    code, _, err = cli(build, "snapshot", pipe, "--server=http://127.0.0.1:9")
    assert code == 1 and "is not a regular file" in err and stat.S_ISFIFO(os.stat(pipe).st_mode), err


def same_tables(build, folder, every):
    path, taken = os.path.join(folder, "kubectl.json"), os.path.join(folder, "taken.json")
    compared = 0
    for cluster in CLUSTERS[::every]:
        commands = COMMANDS + [["why", pod] for pod in as_kubectl(cluster, path)]
        with served(path) as words:
            wanted = [cli(build, *command, *words) for command in commands]
            assert cli(build, "snapshot", taken, *words)[0] == 0, cluster
        assert os.stat(taken).st_mode & 0o777 == 0o600
        for file in (path, taken):
            for command, (code, out, _) in zip(commands, wanted):
                found = cli(build, *command, f"--from-file={file}")
                assert found[:2] == (code, out), (cluster, file, command, out, found)
                compared += 1
    return compared


def a_snapshot_holds_no_secrets(build, folder):
    """And who is killed while it writes one leaves the file before it."""
    words, taken = "SEKRET", os.path.join(folder, "told.out")
    box = {"name": "c", "image": words, "command": [words], "args": [words], "env": [{"name": "A", "value": words}],
           "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}
    node, pods = new_node("n0", [16, 16]), [Pod(f"p{i}", 1, containers=[box], initContainers=[box], volumes=[{"name": words}]).bind("n0").obj for i in range(20)]
    for one in (node, *pods):
        one["metadata"] |= {"annotations": {"other.io/x": words}, "managedFields": [{"manager": words}]}
        one["status"] |= {"images": [{"names": [words]}], "containerStatuses": [{"name": "c", "image": words, "state": {"waiting": {"message": words}}}]}
    path = write_list(folder, "told.json", [node, *pods])
    with served(path) as server:
        for turn in range(40):
            with open(taken, "w", encoding="utf-8") as file:
                file.write("old")
            process = subprocess.Popen([os.path.join(build, "kubectl-inspect-gpushare"), "snapshot", taken, *server])
            time.sleep(turn / 2000)
            process.kill()
            process.wait()
            with open(taken, encoding="utf-8") as file:
                text = file.read()
            assert text == "old" or text.endswith("]}\n"), (turn, text[-100:])
        assert cli(build, "snapshot", taken, *server)[0] == 0
    with open(taken, encoding="utf-8") as file:
        assert words not in (text := file.read()) and "p19" in text, text[:2000]
    left = [name for name in os.listdir(folder) if name.startswith("told.") and not re.fullmatch(r"told\.(json|out)|told\.out\.\w{6}", name)]
    assert not left, left


def pages(build, folder):
    """More pods than one page of a list has."""
    path = write_list(folder, "many.json", [Pod(f"p{i}", 1).obj for i in range(12345)])
    assert "12345 pending pods" in cli(build, "why", f"--from-file={path}")[1]


def plans_are_limited(build, folder):
    """Of 22 pods that fit after a move 20 have a plan; those that fit as it is are no plans."""
    held = [Pod(f"held{i}", 4).bind(f"n{i // 2}", i % 2).obj for i in range(44)]
    for pod in held:
        pod["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "j", "controller": True}]
    path = write_list(folder, "plans.json", [*(new_node(f"n{i}", [10, 10]) for i in range(22)), *held,
                                             *(Pod(f"small{i}", 1, priority=9).obj for i in "abc"), *(Pod(f"w{i}", 8).obj for i in range(22))])
    told = cli(build, "defrag", f"--from-file={path}")[1]
    assert (told.count("fits now"), told.count("fits after"), "\n2 more pending" in told) == (3, 20, True), told
    assert '"skippedPodCount": 2' in cli(build, "defrag", "-o", "json", f"--from-file={path}")[1]


def broken_files(build, folder):
    """Cut, or with bytes changed: a table, or one error that names the file."""
    rng = random.Random(SEED)
    path = os.path.join(folder, "broken.json")
    errors = 0
    with open(CLUSTERS[0], "rb") as file:
        whole = file.read()
    for turn in range(200):
        text = bytearray(whole[:rng.randrange(len(whole))] if turn % 2 else whole)
        for _ in range(0 if turn % 2 else rng.randrange(1, 20)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        with open(path, "wb") as file:
            file.write(text)
        code, out, said = cli(build, *rng.choice(COMMANDS), f"--from-file={path}")
        assert code == 0 or (code == 1 and len(said.splitlines()) == 1), (SEED, turn, code, said)
        assert code == 0 or path in said or "not found" in said, (SEED, turn, said)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", said + out), (SEED, turn, said, out)
        errors += code
    return errors


def main():
    build, every = sys.argv[1], int(sys.argv[2]) # of so many clusters one
    with tempfile.TemporaryDirectory() as folder:
        print(f"{same_tables(build, folder, every)} outputs of {len(CLUSTERS[::every])} clusters are the same")
        for check in (what_is_no_file_stays, a_snapshot_holds_no_secrets, pages, plans_are_limited):
            check(build, folder)
        print(f"200 broken files: {broken_files(build, folder)} errors, no crash")
        big = os.path.join(folder, "big.json")
        with open(big, "wb") as file:
            file.truncate((256 << 20) + 1)
        code, _, said = cli(build, f"--from-file={big}")
        assert code == 1 and big in said and "268435456" in said, said


if __name__ == "__main__":
    main()
