# SPDX-License-Identifier: Apache-2.0
"""kube-scheduler with config/packing, the profile for GPU farms."""

import os

from harness import release
from harness.control_plane import HOST
from harness.processes import free_port
from harness.scheduler import SHIPPED_ADDRESS, SHIPPED_KUBECONFIG, shipped

FLAGS = ("--policy", "rollout")


def start_scheduler(cluster, fast_client=False, edit=None):
    """For Cluster(scheduler=None, extender_flags=FLAGS). edit: of the shipped text."""
    client = cluster.control_plane.kubeconfig("system:kube-scheduler")
    if fast_client:
        client += "\n  qps: 5000\n  burst: 5000"
    text = shipped(os.path.join("packing", release.SCHEDULER_CONFIG))
    text = edit(text) if edit else text
    text = text.replace(SHIPPED_KUBECONFIG, client).replace(SHIPPED_ADDRESS, cluster.extender.url)
    text += release.scheduler_addresses(f"{HOST}:{free_port()}")
    cluster.scheduler.start(None, edit=lambda _shipped: text)
