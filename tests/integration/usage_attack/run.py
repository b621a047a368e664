#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the device plugin says that pods use, by the driver's list, against an oracle of its own.

  run.py --build DIR [--seed N] [--worlds N]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
import worlds  # noqa: E402

sys.exit(attack.main(__doc__, {"usage": worlds}))
