# SPDX-License-Identifier: Apache-2.0
"""What a kube-scheduler is asked to do in a round: with which extender ("one" is ours with --filter-names=one), on how
many of the nodes."""

import dataclasses

from harness import release, scheduler


@dataclasses.dataclass(frozen=True)
class Cell:
    """sampled: kube-scheduler stops looking when it has found enough nodes, as it does unless told otherwise."""
    extender: str
    sampled: bool

    def __str__(self):
        return f"{self.extender}, {'sampled' if self.sampled else 'all nodes'}"

    def edit(self, config):
        return scheduler.sampled(config) if self.sampled else scheduler.all_nodes(config)


EXTENDERS = ("none", "noop", "ours", "one")
SETS = {
    "shipped": [Cell(extender, release.MINOR >= 25) for extender in EXTENDERS],
    "sampling": [Cell(extender, sampled) for sampled in (False, True) for extender in EXTENDERS],
}
