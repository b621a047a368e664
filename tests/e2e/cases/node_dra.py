#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs that a DRA driver's ResourceSlices name are not shared, and are again once they are not named:
with the rights of the shipped manifest."""

import json

from harness.case import check, run
from harness.node import NODE, NodeCluster
from harness.objects import INVENTORY, annotation
from harness.processes import wait_for

KUBE = ">=1.34"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def resource_slice(uuid):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": "dra-slice"}, "spec": {
                "driver": "gpu.nvidia.com", "nodeName": NODE,
                "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-1", "attributes": {"uuid": {"string": uuid}}}]}}


def shared(cluster):
    gpus = json.loads(annotation(cluster.node_object(), INVENTORY))["gpus"]
    return [gpu["uuid"] for gpu in gpus]


def body():
    with NodeCluster(gpus="2x16GiB") as cluster:
        both = wait_for("both GPUs are shared",
                        lambda: shared(cluster) if len(shared(cluster)) == 2 else None)
        cluster.api.create(SLICES, resource_slice(both[1]))
        wait_for("the one of the slice is not", lambda: shared(cluster) == both[:1])
        cluster.api.delete(f"{SLICES}/dra-slice")
        wait_for("it is again", lambda: shared(cluster) == both)
        log = cluster.plugin.process.log_text()
        check("cannot list ResourceSlices" not in log, "slices could not be read")


if __name__ == "__main__":
    run(body)
