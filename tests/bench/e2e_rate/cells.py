# SPDX-License-Identifier: Apache-2.0
"""What a kube-scheduler is asked to do in a round: with which extender, on how many of the nodes."""

import dataclasses

from harness import release
from harness.scheduler import replace_once

SHIPPED_PERCENTAGE = "percentageOfNodesToScore: 100"
SCORES = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality")


@dataclasses.dataclass(frozen=True)
class Cell:
    """names: how many the no-op answers at most, 0: all. sampled: kube-scheduler stops looking when it
    has found enough nodes, as it does unless told otherwise."""
    extender: str
    names: int = 0
    sampled: bool = False
    scored: bool = True
    prioritized: bool = True
    batched: bool = True

    def __str__(self):
        words = [self.extender, *([f"{self.names} names"] if self.names else []),
                 *([] if self.scored else ["no scores"]),
                 *([] if self.prioritized else ["no prioritize"]),
                 *([] if self.batched else ["no batches"]),
                 "sampled" if self.sampled else "all nodes"]
        return ", ".join(words)

    def edit(self, config):
        if self.sampled:
            config = replace_once(config, f"{SHIPPED_PERCENTAGE}\n", "")
        if not self.scored:
            off = "".join(f"      - name: {name}\n" for name in SCORES)
            config += ("profiles:\n- schedulerName: default-scheduler\n  plugins:\n    score:\n"
                       f"      disabled:\n{off}")
        if not self.prioritized and self.extender != "none":
            config = replace_once(config, "  prioritizeVerb: prioritize\n", "")
            config = replace_once(config, "  weight: 1\n", "")
        return config

    @property
    def flags(self):
        """1.35 and newer take pods alike together, when no extender is asked."""
        return () if self.batched else ("--feature-gates=OpportunisticBatching=false",)


BOTH = (False, True)
UNBATCHED = (Cell("none", batched=False),) if release.MINOR >= 35 else ()
SETS = {
    "shipped": [Cell("none"), Cell("noop"), Cell("ours")],
    "sampling": [Cell(who, sampled=sampled) for sampled in BOTH for who in ("none", "noop", "ours")],
    "all": [cell for sampled in BOTH for cell in (
        Cell("none", sampled=sampled),
        *(dataclasses.replace(cell, sampled=sampled) for cell in UNBATCHED),
        *(Cell("noop", names=names, sampled=sampled) for names in (0, 100, 1)),
        Cell("ours", sampled=sampled), Cell("ours", sampled=sampled, prioritized=False),
        Cell("ours", sampled=sampled, scored=False))],
}
