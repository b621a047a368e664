# SPDX-License-Identifier: Apache-2.0
"""Replays Alibaba's openb trace through gpushare-packing, prints tables, and checks what the project claims."""

import argparse
import filecmp
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Mean b130 of rollout when the pods are known, over seeds of the paper: not to be undercut.
ROLLOUT_B130 = {
    "default": 96.25, "cpu200": 96.22, "gpushare40": 94.87, "gpuspec10": 96.29,
    "gpuspec20": 96.12, "multigpu20": 96.66, "multigpu30": 96.89,
}
ROLLOUT_TOLERANCE = 0.05
LEARNING_COSTS_AT_MOST = 0.2
MEAN_US = {"rollout": 150}
P99_US = 3000
FIRST_SIGHT_US = 10000
POLICIES = ["spread", "orig", "binpack", "rollout"]


class Bench:
    def __init__(self, lab, trace, seeds):
        self.lab = lab
        self.trace = trace
        self.seeds = seeds
        self.broken = []

    def check(self, holds, words):
        if not holds:
            self.broken.append(words)
            print(f"NOT MET: {words}")

    def replay(self, name, seed, policies, *options):
        """{policy: row} of one run; a row is {column: number}."""
        sequence = self.trace / "seq" / f"{name}_{seed}.txt"
        command = [self.lab, "--nodes", self.trace / "openb_node_list_gpu_node.csv", "--pods",
                   self.trace / f"openb_pod_list_{name}.csv", "--seed", seed, "--policy",
                   ",".join(policies), *(["--seq", sequence] if sequence.exists() else []), *options]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
        lines = [line.split() for line in done.stdout.splitlines()[1:]]
        return {line[0]: dict(zip(lines[0][1:], map(float, line[1:]))) for line in lines[1:]}

    def means(self, name):
        """{policy: row} of means over the seeds, and of rollout that learns."""
        found = {}
        for policies, options in ((POLICIES, []), (["rollout"], ["--learn"])):
            runs = [self.replay(name, seed, policies, *options) for seed in self.seeds]
            for policy in policies:
                found[policy + (", learning" if options else "")] = {
                    column: statistics.mean(run[policy][column] for run in runs) for column in runs[0][policy]}
        return found

    def golden(self):
        """Arrival by arrival, as another program placed them (default, seed 42)."""
        recorded = self.trace / "golden" / "roll_default_42.txt"
        if not recorded.exists():
            print(f"no record in {recorded}")
            return
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "arrivals.txt"
            self.replay("default", 42, ["rollout"], "--arrivals", out)
            self.check(filecmp.cmp(out, recorded, shallow=False), "rollout places every arrival as recorded")

    def workload(self, name):
        """Its table, and the time of a decision over all nodes."""
        print(f"\n## {name}\n\n| policy | b100 | b130 | failed pods | GPUs left at the end | mean us | p99 us "
              "| largest us |\n|---|---|---|---|---|---|---|---|")
        rows = self.means(name)
        for policy, row in rows.items():
            print(f"| {policy} | {row['b100']:.2f} | {row['b130']:.2f} | {row['failed']:.0f} | {row['stranded']:.1f} "
                  f"| {row['mean-us']:.1f} | {row['p99-us']:.0f} | {row['max-us']:.0f} |", flush=True)
            self.check(row["mean-us"] <= MEAN_US.get(policy.split(",")[0], 60), f"{name}, {policy}: mean")
            self.check(row["p99-us"] <= P99_US, f"{name}, {policy}: p99")
            self.check(row["max-us"] <= FIRST_SIGHT_US, f"{name}, {policy}: first sight")
        known, learnt = rows["rollout"]["b130"], rows["rollout, learning"]["b130"]
        self.check(known >= ROLLOUT_B130.get(name, 0) - ROLLOUT_TOLERANCE, f"rollout on {name}: {known:.2f}")
        self.check(learnt >= known - LEARNING_COSTS_AT_MOST, f"learning on {name}: {learnt:.2f}, known {known:.2f}")
        self.check(known > max(rows["orig"]["b130"], rows["binpack"]["b130"]), f"rollout above the others on {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=pathlib.Path, metavar="DIR", required=True,
                        help="openb_node_list_gpu_node.csv and openb_pod_list_*.csv of Alibaba's "
                             "cluster-trace-gpu-v2023; optionally seq/ and golden/")
    parser.add_argument("--lab", type=pathlib.Path, default=ROOT / "build" / "gpushare-packing")
    parser.add_argument("--seeds", default="42,43,44,45,46")
    parser.add_argument("--quick", action="store_true", help="only what is compared with records")
    args = parser.parse_args()
    bench = Bench(args.lab, args.trace, [int(seed) for seed in args.seeds.split(",")])
    bench.golden()
    prefix = "openb_pod_list_"
    names = [path.stem.removeprefix(prefix) for path in args.trace.glob(f"{prefix}*.csv")]
    for name in sorted(names, key=lambda name: (name != "default", name)) if not args.quick else ():
        bench.workload(name)
    print(f"\n{len(bench.broken)} figures not met")
    return 1 if bench.broken else 0


if __name__ == "__main__":
    sys.exit(main())
