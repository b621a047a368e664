#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random attempts on what filter keeps for groups of pods and on what preempt counts of PodDisruptionBudgets, judged by
models of their own, which share no code with the product and read docs/contract.md and docs/pods.md once more.

  run.py --build DIR [--seed N] [--seconds 20] [--only PART] [--sabotage all]

| part | what happens | what is judged |
|---|---|---|
| gangs | pods of groups, of all three kinds, are asked about, bound, deleted and made anew in every wrong order, beside others, nominations, nodes that change, restarts | no GPU is over-booked or promised twice; who has a place gets it; nobody is refused for a place that is over; inspect, metric and answers say the same; whoever is in no group hears what another extender says that was asked about none |
| budgets | full nodes, PodDisruptionBudgets of all kinds, lost rights and watches | victims are needed, of lower priority, and of those the fewest violate; their number is told |
| freed | what others ask of preempt, full tables, watches that list anew, between an answer and its victim's end | who evicts is named the node and nobody of the same or lower priority; what it gives up is free |
| tenant | one namespace's rules, budgets, texts, groups, pods by hand and webhooks that hang, several at a time | filter, prioritize and bind of another namespace take 2 s at most, requeueing 3 s; places end in time |

Whatever is wrong is printed with the seed and the last events, and the exit status is 1. --sabotage all alters what the
product said, or does: each has to be found."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
import budgets  # noqa: E402
import freed  # noqa: E402
import gangs  # noqa: E402
import tenant  # noqa: E402

sys.exit(attack.main(__doc__, {"gangs": gangs, "budgets": budgets, "freed": freed, "tenant": tenant}))
