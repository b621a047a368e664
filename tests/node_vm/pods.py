# SPDX-License-Identifier: Apache-2.0
"""Pods whose containers take GPU memory of the mock driver, word by word: "charge 4" takes 4 GiB and
prints "given 4", or "refused 4" and the kernel's errno."""

from harness.containers import IMAGE
from harness.objects import pod

# One open file for all that a program takes; kubectl exec starts another program.
USER = ('GPU=${GPU:-${ALIYUN_COM_GPU_MEM_IDX:-0}}; exec 3<>/dev/fakegpu$GPU; '
        'charge() { if said=$(echo "charge $(($1 << 30))" 2>&1 >&3); then echo "given $1"; '
        'else echo "refused $1 ($said)"; fi; }')


def share_pod(name, sizes, *scripts, stays=True, privileged=(), requests=None, limits=None,
              **spec):
    """sizes: GiB of its one container, or of each; scripts: what each does. The containers in
    privileged ask for no gpu-mem and reach all of the host's devices."""
    sizes = sizes if isinstance(sizes, list) else [sizes]
    made = pod(name, containers=sizes, terminationGracePeriodSeconds=0, enableServiceLinks=False, **spec)
    for number, (container, script) in enumerate(zip(made["spec"]["containers"], scripts)):
        end = "; exec sleep 1000000" if stays else ""
        container.update(image=IMAGE, imagePullPolicy="Never",
                         command=["sh", "-c", f"{USER}; {script}{end}"])
        resources = container.setdefault("resources", {})
        if requests:
            resources["requests"] = dict(requests)
        if limits:
            resources.setdefault("limits", {}).update(limits)
        if number in privileged:
            container["securityContext"] = {"privileged": True}
    return made
