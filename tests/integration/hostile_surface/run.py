#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random attempts on what whoever runs a device plugin or may name things makes the CLI ask and print (answers.py), with
a model of its own, which shares no code with the product and reads docs/cli.md and docs/security.md once more.

  run.py --build DIR [--seed N] [--seconds 20] [--sabotage all]

Judged: who is asked for a node's use is the plugin's own pod there, once; its word counts for its node; the CLI ends well
within 1 GiB, prints nothing that steers a terminal, and JSON that is JSON.

Whatever is wrong is printed with the seed, and the exit status is 1. A seed gives the same worlds again.
--sabotage all alters what the programs asked and printed: each has to be found."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import answers  # noqa: E402
import attack  # noqa: E402

sys.exit(attack.main(__doc__, {"answers": answers}))
