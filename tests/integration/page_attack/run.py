#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `kubectl inspect gpushare web` against an oracle of its own.

  run.py --build DIR [--seed N] [--seconds S | --worlds N]

Clusters are random (world.py), the API server is a script (tests/world), documents are read strictly, and every figure, row,
group and cell is one that the documents promise of that cluster (judge.py); what the command says with -o json and
`why` is the same.

Whatever is wrong is printed with the seed of its world, and the exit status is 1."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
import judge  # noqa: E402

sys.exit(attack.main(__doc__, {"figures": judge}))
