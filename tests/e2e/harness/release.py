# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes release under test, and all that the harness does differently from one to another.

A case that holds for some releases only, or whose outcome depends on the release, says which at its
top: KUBE = "<1.23". cases.py reads that line.
"""

import os

VERSION = tuple(int(part) for part in os.environ["KUBE_VERSION"].split("-")[0].split("."))
MINOR = VERSION[1]

# API servers ignore the UID that a Binding names before 1.23 (kubernetes/kubernetes#105913), and once
# more from 1.25 until 1.25.9 and 1.26.4 (#116550).
BINDING_CHECKS_UID = (VERSION >= (1, 23) and not (1, 25) <= VERSION < (1, 25, 9)
                      and not (1, 26) <= VERSION < (1, 26, 4))
# From 1.21 to 1.37 preemption is not tried on nodes whose sums would do without it (kubernetes/kubernetes#135486).
PREEMPTS_WHEN_THE_SUM_FITS = MINOR <= 20 or MINOR >= 38
# 1.20 up to 1.20.9 forgets its extenders when it preempts: kube_build.sh makes a corrected one.
PREEMPTING_SCHEDULER = ("kube-scheduler-preempt" if os.environ["KUBE_VERSION"] == "1.20.2" else
                        "kube-scheduler")

# kubectl 1.20 has a kustomize that takes folders as "bases" alone, a word that is on its way out.
KUBECTL_NEEDS_KUSTOMIZE = MINOR <= 20

SCHEDULER_CONFIG = ("kube-scheduler-config-v1.yaml" if MINOR >= 25 else
                    "kube-scheduler-config-v1beta1.yaml")


def scheduler_words(config):
    """As docs/install.md asks of users of 1.23 and 1.24, which know v1beta1's words as v1beta3."""
    return config.replace("/v1beta1\n", "/v1beta3\n") if MINOR in (23, 24) else config


def scheduler_addresses(address):
    """Lines of the scheduler's configuration. Up to 1.22 it has an insecure port on every address,
    which can be moved to loopback but not switched off."""
    if MINOR >= 23:
        return ""
    return f"healthzBindAddress: {address}\nmetricsBindAddress: {address}\n"


def apiserver_flags(address):
    """From 1.37 on no API server writes a loopback address of its own to its Service's endpoints."""
    loopback = address.startswith("127.")
    return ["--endpoint-reconciler-type=none"] if MINOR >= 37 and loopback else []


# kube-scheduler schedules groups of pods as a whole (PodGroup, spec.schedulingGroup); off by default.
GANG_API = "v1beta1" if MINOR >= 37 else "v1alpha2"
GANG_GATES = ["GenericWorkload"] if MINOR >= 37 else ["GenericWorkload", "GangScheduling"]


def gang_flags():
    """Of the API server, and of kube-scheduler."""
    gates = "--feature-gates=" + ",".join(f"{gate}=true" for gate in GANG_GATES)
    return [gates, f"--runtime-config=scheduling.k8s.io/{GANG_API}=true"], [gates]


def controller_manager_flags():
    return ["--port=0"] if MINOR < 24 else []  # the insecure port


# Up to 1.23 kubelets know Docker.
KUBELET_ASKS_DOCKER = MINOR < 24


def kubelet_flags(sandbox_image, docker_socket):
    """dockershim was the default, and the sandbox image the kubelet's choice."""
    if not KUBELET_ASKS_DOCKER:
        return []
    return ["--container-runtime=remote", f"--pod-infra-container-image={sandbox_image}",
            f"--docker=unix://{docker_socket}"]


def kubelet_config():
    """From 1.35 on a kubelet does not start on cgroup v1 unless told to."""
    return {"failCgroupV1": False} if MINOR >= 31 else {}
