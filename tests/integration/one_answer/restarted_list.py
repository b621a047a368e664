# SPDX-License-Identifier: Apache-2.0
"""What the API server lists anew, because it forgot a list's continue token (410), counts once.

  restarted_list.py --build DIR

20 pods run on a node; `what-if --without-node` says that 20 have to move, whatever the server forgets.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from programs import Serving, request  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    with tempfile.TemporaryDirectory() as folder, Serving(
            build, folder, "tests/faulty-api", "--synthetic", "nodes=200,gpus=8,mem=80,pods=4000,pod_mem=8", "--faults", "gone=150",
            "--fault-seed", "3") as server:
        return judge(build, server.url)


def judge(build, address):
    answers = []
    for _ in range(12):
        run = subprocess.run([os.path.join(build, "kubectl-inspect-gpushare"), "what-if", "--without-node", "node-00000",
                              "--server", address], capture_output=True, text=True, timeout=60, check=False)
        if run.returncode == 0:
            answers.append(run.stdout.splitlines()[0])
    forgotten = json.loads(request(int(address.rpartition(":")[2]), "GET", "/faults")[1])["gone"]
    print(f"note: {len(answers)} answers, {forgotten} lists forgotten: {sorted(set(answers))}")
    return 0 if set(answers) == {"node-00000 can be drained: 20 of 20 pods with GPU memory fit on other nodes"} and len(answers) > 3 and forgotten > 3 else 1


if __name__ == "__main__":
    sys.exit(main())
