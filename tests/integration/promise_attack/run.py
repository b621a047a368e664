#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one namespace does to another's pods, and what others do to the memory that preempt freed for an urgent pod.

  run.py --build DIR [--seed N] [--seconds 20] [--only PART]

| part | what happens | what is judged |
|---|---|---|
| freed | what others ask of preempt, full tables, watches that list again, between an answer and its victim's end | the pod that evicts is named the node and no pod of the same or lower priority; what it gives up is free |
| tenant | one namespace's rules, budgets, texts, groups, pods by hand and webhooks that hang, several at a time | filter, prioritize and bind of another namespace take 2 s at most, requeueing 3 s; places end in time |

Whatever is wrong is printed with the seed, and the exit status is 1."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
import freed  # noqa: E402
import tenant  # noqa: E402

sys.exit(attack.main(__doc__, {"freed": freed, "tenant": tenant}))
