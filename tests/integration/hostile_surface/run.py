#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random attempts on what whoever is let in a little may reach. An API server that believes everything
(tests/world) and models of their own, which share no code with the product and read the documents once more.

  run.py --build DIR [--seed N] [--seconds 20] [--only PART] [--sabotage all]

| part | who tries | what is judged |
|---|---|---|
| door | who reaches the extender's loopback port (docs/security.md) | a Binding is sent for a pod and a node as asked for, of a pod that is ours and waits, to a node that it may use; it is sent when all that is so; never two; no `%` in an answer; nothing in metrics, log and inspect steers a terminal |
| answers | who runs a device plugin or may name things (docs/cli.md) | who is asked for a node's use is the plugin's own pod there, once; its word counts for its node; the CLI ends well within 1 GiB, prints nothing that steers a terminal, and JSON that is JSON |
| verbs | who tells filter, prioritize and preempt of any pod what he likes | answers are of what was asked about; the API server is sent wakes and nominations of pods of ours that wait, and nothing else |

Whatever is wrong is printed with the seed, and the exit status is 1. A seed gives the same worlds again.
--sabotage all has the API server note what a faulty product would have sent: each has to be found."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import answers  # noqa: E402
import attack  # noqa: E402
import door  # noqa: E402
import verbs  # noqa: E402

sys.exit(attack.main(__doc__, {"door": door, "answers": answers, "verbs": verbs}))
