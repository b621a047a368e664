# SPDX-License-Identifier: Apache-2.0
"""What the cases check: a line PASS or FAIL for each promise, with what the kernel, the kubelet or the
container said."""

from cluster import GIB, REGIONS

FAILED = []


def check(true, words, evidence=""):
    print(f"{'PASS' if true else 'FAIL'}  {words}" + (f": {evidence}" if evidence else ""), flush=True)
    if not true:
        FAILED.append(words)


def limit_of(cluster, name, gib, gpu=0):
    """The kernel's own word, in the systemd slice of the pod."""
    line = f"{REGIONS[gpu]} {gib * GIB}"
    text = cluster.cgroup(name, "dmem.max")
    check(line in text.splitlines(), f"{name}: {gib} GiB in dmem.max of its slice",
          f"{cluster.slice_of(name)}/dmem.max: {line_of(text, gpu)}")


def line_of(text, gpu=0):
    return next((line for line in text.splitlines() if line.startswith(REGIONS[gpu])), "no line")


def uses(cluster, name, gib, gpu=0):
    text = cluster.cgroup(name, "dmem.current")
    check(line_of(text, gpu) == f"{REGIONS[gpu]} {gib * GIB}", f"{name}: it uses {gib} GiB",
          f"dmem.current: {line_of(text, gpu)}")


def plain(line):
    """Without the errno."""
    return line.split(" (")[0]


def says(cluster, name, container, *words):
    """What the container's program wrote, by kubectl logs."""
    log = cluster.logs(name, container, len(words))
    check([plain(line) for line in log] == list(words), f"{name}/{container}: {', '.join(words)}", "; ".join(log))


def told(cluster, name, container, command, word):
    """What a program says that kubectl exec starts there."""
    said = cluster.exec(name, container, command)
    check(plain(said) == word, f"kubectl exec {name} -c {container}: {word}", said)


# What, how, and whether the plugin registers anew.
RESTARTS = (("sigkill", "kill -KILL $(pidof gpushare-device-plugin)", True),
            ("kubelet", "systemctl restart kubelet", True),
            ("containerd", "systemctl restart containerd", False),
            ("daemon-reload", "systemctl daemon-reload", False),
            ("daemon-reexec", "systemctl daemon-reexec", False))


def restart(cluster, command, again):
    if not again:
        cluster.machine.do(command)
        return
    with cluster.registers_again():
        cluster.machine.do(command)
