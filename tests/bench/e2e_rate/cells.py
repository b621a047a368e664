# SPDX-License-Identifier: Apache-2.0
"""What a kube-scheduler is asked to do in a round: with which extender, on how many of the nodes."""

import dataclasses

from harness import release, scheduler

SCORES = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality")


@dataclasses.dataclass(frozen=True)
class Cell:
    """names: how many the no-op answers at most, 0: all. sampled: kube-scheduler
    stops looking when it has found enough nodes, as it does unless told otherwise. told_twice: ours
    names a node that can never take the pod in both maps of its answer, as 1.20 needs it."""
    extender: str
    names: int = 0
    sampled: bool = False
    scored: bool = True
    prioritized: bool = True
    batched: bool = True
    told_twice: bool = False

    def __str__(self):
        words = [self.extender, *([f"{self.names} names"] if self.names else []),
                 *([] if self.scored else ["no scores"]),
                 *([] if self.prioritized else ["no prioritize"]),
                 *([] if self.batched else ["no batches"]),
                 *(["told twice"] if self.told_twice else []),
                 "sampled" if self.sampled else "all nodes"]
        return ", ".join(words)

    def edit(self, config):
        config = scheduler.sampled(config) if self.sampled else scheduler.all_nodes(config)
        if not self.scored:
            off = "".join(f"      - name: {name}\n" for name in SCORES)
            config += ("profiles:\n- schedulerName: default-scheduler\n  plugins:\n    score:\n"
                       f"      disabled:\n{off}")
        if not self.prioritized and self.extender != "none":
            config = scheduler.without_prioritize(config)
        return config

    @property
    def extender_flags(self):
        """Of ours."""
        return ("--nominate=false",) if self.told_twice else ()

    @property
    def flags(self):
        """Of kube-scheduler. 1.35 and newer take pods alike together, when no extender is asked."""
        return () if self.batched else ("--feature-gates=OpportunisticBatching=false",)


BOTH = (False, True)
UNBATCHED = (Cell("none", batched=False),) if release.MINOR >= 35 else ()
SHIPPED_SAMPLED = release.MINOR >= 25
SETS = {
    "shipped": [Cell(who, sampled=SHIPPED_SAMPLED) for who in ("none", "noop", "ours")],
    "sampling": [Cell(who, sampled=sampled) for sampled in BOTH for who in ("none", "noop", "ours")],
    "failed": [Cell("ours", told_twice=True), Cell("ours")],
    "all": [cell for sampled in BOTH for cell in (
        Cell("none", sampled=sampled),
        *(dataclasses.replace(cell, sampled=sampled) for cell in UNBATCHED),
        *(Cell("noop", names=names, sampled=sampled) for names in (0, 100, 1)),
        Cell("ours", sampled=sampled),
        Cell("ours", sampled=sampled, prioritized=False),
        Cell("ours", sampled=sampled, scored=False))],
}
