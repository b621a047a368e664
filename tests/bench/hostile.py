# SPDX-License-Identifier: Apache-2.0
"""The part `hostile` of bench.py: how much longer a good client waits while others mean harm. The
attackers are those of tests/integration/hostile. In a cluster they would have processors of their
own: so here they have the lowest priority, and everybody else, where that is allowed (root), one
that they cannot interrupt."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

RUN = pathlib.Path(__file__).resolve().parents[1] / "integration" / "hostile" / "run.py"
CONNECTIONS = 10000
SETTLE_S = 3
REALTIME = ("chrt", "--rr", "1")  # what other programs cannot interrupt


@contextlib.contextmanager
def attack(port, kinds):
    """Thousands of idle connections and the attackers of these kinds."""
    process = subprocess.Popen([sys.executable, str(RUN), "--attack", str(port), "--connections",
                                str(CONNECTIONS), "--kinds", kinds, "-"],
                               stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 19))
    try:
        held = int(process.stdout.readline().split()[0])
        time.sleep(SETTLE_S)
        yield held
    finally:
        process.kill()
        process.wait()


def rows(bench):
    """Adds the rows: one for each sort of attack, one for all of them."""
    before = bench.prefix
    if subprocess.run([*REALTIME, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        bench.prefix = REALTIME
    _, config = bench.serve("nodes=1000,gpus=8,mem=80,pods=4000")
    process, port, _ = bench.extend(config)

    def p99():
        return bench.load(port, "--verb", "filter", "--names", 1000, "--duration",
                          bench.args.duration)["verbs"]["filter"]["p99_ms"]

    def under(kinds):
        with attack(port, kinds) as held:
            bench.held = held
            return p99()
    for kinds in ("idle", "all"):
        quiet, loud = bench.alternate(p99, lambda kinds=kinds: under(kinds))
        bench.row(f"filter(1000) p99 ({quiet:.2f} ms), {bench.held} connections, {kinds}: ratio",
                  loud / quiet, 3)
    bench.stop(process)
    bench.prefix = before
