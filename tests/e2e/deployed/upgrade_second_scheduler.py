#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same upgrade and rollback where kube-scheduler and the extender are one pod and are replaced
together."""

from deployed.upgrade import upgrade
from harness.case import run
from harness.install import SecondScheduler

run(lambda: upgrade(SecondScheduler, schedulerName="gpushare-scheduler"))
