# SPDX-License-Identifier: Apache-2.0
"""The frame of every case: one line that says why it failed, and no program left behind."""

import os
import shutil
import signal
import sys
import tempfile
import traceback

from harness.processes import Failure


def check(condition, message):
    """An expectation of the case."""
    if not condition:
        raise Failure(message)


def give_up(number, _frame):
    raise Failure(f"stopped by signal {number}")


def run(body):
    """Call body() and exit 0, or print what went wrong and exit 1."""
    # A timeout's SIGTERM has to unwind the stack, since that is what stops the programs.
    signal.signal(signal.SIGTERM, give_up)
    own_dir = None
    if "GPUSHARE_RUN_DIR" not in os.environ:
        own_dir = os.environ["GPUSHARE_RUN_DIR"] = tempfile.mkdtemp(prefix="gpushare-e2e.")
    try:
        body()
    except Failure as failure:
        print(f"failed: {failure}", file=sys.stderr)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
    else:
        if own_dir:
            shutil.rmtree(own_dir)
        sys.exit(0)
    if own_dir:
        print(f"logs: {own_dir}", file=sys.stderr)
    sys.exit(1)
