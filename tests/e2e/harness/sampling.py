# SPDX-License-Identifier: Apache-2.0
"""A kube-scheduler that looks at a sample of the nodes, and nodes whose sums do where no GPU does."""

import os
import time

from harness.case import check
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod
from harness.scheduler import sampled


class Sampling(Cluster):
    """share: percentageOfNodesToScore; None: kube-scheduler's own."""

    def __init__(self, name, nodes, nominates=True, share=5):
        run_dir = os.path.join(os.environ["GPUSHARE_RUN_DIR"], name)
        os.makedirs(run_dir)
        super().__init__(nodes=nodes, scheduler=None, run_dir=run_dir,
                         extender_flags=[] if nominates else ["--nominate=false"])
        self.share = share

    def start(self):
        super().start()
        self.scheduler.start(self.extender.url, edit=lambda config: sampled(config, self.share))

    def nominations(self):
        return self.extender.metrics()["gpushare_nominations_total"]

    def bind_together(self, watch, names, timeout_s=60):
        """Pods that fit on nodes called whole-… only: (seconds until all are bound, how often they
        were refused before)."""
        started = time.monotonic()
        self.create_pods([pod(name, 12) for name in names])
        for name in names:
            where = bound_node(self.wait_bound(name, timeout_s))
            check(where.startswith("whole"), f"{name} is on {where}")
        watch.wait(lambda w: all(f"default/{name}" in w.bound_at for name in names), 10)
        took = max(watch.bound_at[f"default/{name}"] for name in names) - started
        return took, sum(self.events(name).get("FailedScheduling", 0) for name in names)


def fragmented(count):
    """Room for 16 units in all, for 8 on a GPU."""
    return [node(f"halves-{i:04}", [8, 8]) for i in range(count)]


def whole(count):
    """What kube-scheduler comes to last, when they are created last."""
    return [node(f"whole-{i}", [16]) for i in range(count)]
