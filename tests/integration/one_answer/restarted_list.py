# SPDX-License-Identifier: Apache-2.0
"""What the API server lists anew, because it forgot a list's continue token (410), counts once.

  restarted_list.py --build DIR

20 pods run on a node; `what-if --without-node` says that 20 have to move, whatever the server forgets.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = os.path.join(folder, "kubeconfig")
        server = subprocess.Popen([os.path.join(build, "tests/faulty-api"), "--listen", "127.0.0.1:0", "--synthetic",
                                   "nodes=200,gpus=8,mem=80,pods=4000,pod_mem=8", "--kubeconfig-out", kubeconfig,
                                   "--faults", "gone=150", "--fault-seed", "3"])
        try:
            return judge(build, kubeconfig, server)
        finally:
            server.terminate()
            server.wait()


def judge(build, kubeconfig, server):
    while not (os.path.exists(kubeconfig) and os.path.getsize(kubeconfig)) and server.poll() is None:
        time.sleep(0.05)
    with open(kubeconfig, encoding="utf-8") as text:
        address = re.search(r"http://[0-9.:]+", text.read()).group()
    answers = []
    for _ in range(12):
        run = subprocess.run([os.path.join(build, "kubectl-inspect-gpushare"), "what-if", "--without-node", "node-00000",
                              "--server", address], capture_output=True, text=True, timeout=60, check=False)
        if run.returncode == 0:
            answers.append(run.stdout.splitlines()[0])
    with urllib.request.urlopen(address + "/faults", timeout=10) as answer:
        forgotten = json.load(answer)["gone"]
    print(f"note: {len(answers)} answers, {forgotten} lists forgotten: {sorted(set(answers))}")
    return 0 if set(answers) == {"node-00000 can be drained: 20 of 20 pods with GPU memory fit on other nodes"} and len(answers) > 3 and forgotten > 3 else 1


if __name__ == "__main__":
    sys.exit(main())
