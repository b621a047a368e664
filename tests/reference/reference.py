#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reference.md, from the programs and from the tables of the source.

    reference.py BUILD DIR      BUILD has the programs, DIR their metrics pages

What cannot be read anywhere (what an Event or a label means) is a table here, and missing or surplus rows
are an error. Prints the document.
"""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PROGRAMS = ("gpushare-extender", "gpushare-device-plugin", "gpushare-mps", "kubectl-inspect-gpushare", "gpushare-sim")

# What no program prints. The kubelet's and kube-scheduler's own Events are not ours.
EVENTS = """
| reason | object, reported by | type | meaning |
|---|---|---|---|
| `GpuIndexInvalid` | pod, by the extender | Warning | the pod is bound without a valid GPU index; its memory is allocated on every GPU of its node that could hold it |
| `GpuOvercommitted` | node, by the extender | Warning | pods are allocated more memory of a GPU than it has |
| `GpuEnvironmentOverridden` | pod, by the device plugin | Warning | a container sets NVIDIA_VISIBLE_DEVICES itself and may use other GPUs |
| `GpuAllocationSwapped` | pod, by the device plugin | Normal | two pods with equal requests received each other's GPU; their annotations are corrected, nothing is to be done |
| `GpuStartBlocked` | pod, by the device plugin | Warning | a container's start is blocked: the memory of its GPU has since been allocated to other pods. It starts when that memory is free; delete the pod to reschedule it |
| `GpuMemoryOverRequest` | pod and its controller, by the device plugin | Warning | the driver (NVML) reports that the pod uses 1 GiB more of a GPU than it requested; repeated hourly. Needs --pod-usage=on and --pod-usage-from=auto or nvml |
| `GpuMemoryWouldBeBlocked` | pod and its controller, by the device plugin | Warning | the kernel (dmem) reports that the pod uses more GPU memory than it requested, and no limit is enforced; with a limit, further allocations would fail |
| `GpuMemoryLimitNotSet` | pod, by the device plugin | Warning | the kernel's limit of the pod could not be set; the Event says why |
| `GpuUnhealthy` | node, by the device plugin | Warning | a GPU is unhealthy and accepts no new pods; running pods are not touched |
| `GpuHealthy` | node, by the device plugin | Normal | the GPU accepts new pods again |
| `GpuDriverReleased` | node, by the device plugin | Normal | the device plugin has closed the driver's library (label gpu-driver-upgrade), so the driver can be replaced; the node's GPUs accept no new pods meanwhile |
| `GpuManagedByOtherDriver` | node, by the device plugin | Warning | another device plugin or a DRA driver allocates the same GPUs |
| `GpuRemoved` | node, by the device plugin | Warning | a GPU is no longer there |
| `GpuMemoryUnitChangePending` | node, by the device plugin | Warning | a new --memory-unit takes effect once no pod holds units of the old one |
| `GpuCapacityReduced` | node, by the device plugin | Warning | less memory of a GPU is advertised than its pods are allocated; they continue, and the GPU accepts no new pods |

A pod that the device plugin rejects gets the kubelet's Event `UnexpectedAdmissionError`, with the plugin's message. An unschedulable pod gets kube-scheduler's `FailedScheduling`, with the reasons above."""

LABELS = """
### Labels of metrics

| label | values |
|---|---|
| `UUID` | UUID of the GPU or MIG instance: `GPU-8a5e6b0c-…`. DCGM exporter has the same label |
| `code` | `2xx` and so on: class of the HTTP status code; `none`: no response |
| `gpu` | index of the GPU on its node, as `kubectl inspect gpushare` prints it: `0`. Not always `nvidia-smi`'s |
| `kind` | `nodes`, `pods` |
| `mode` | `off`, `observe`, `preferred`, `required` |
| `namespace` | of the pods; `_other`: all namespaces beyond 1000 |
| `node` | name of the Node |
| `outcome` | of requests: `success`, `error`; of binds: `bound`, `rejected`, `conflict`, `failed`, `unknown`; of allocations: `matched`, `unmatched`, `insufficient_memory`, `failed` |
| `owner` | kind and name of the pod's controller, of a ReplicaSet its Deployment: `Deployment/web`; empty: the pod has none |
| `pod` | name of the pod |
| `reason` | why a node was rejected: the labels of [Reasons](#reasons); of HTTP requests: `too_large`, `memory_full`, `queue_full`; of timeouts: `request`, `response` |
| `state` | `limited`, `not_limited`, `over_request`; a pod can be in several |
| `type` | `added`, `modified`, `deleted`, `bookmark` |
| `verb` | `filter`, `prioritize`, `preempt`, `bind` |
| `version` | `0.1.0` |"""

INTRO = """# Reference

Options can also be set in a YAML file (`--config FILE`), by their long names. An environment variable
(`[$NAME]`) overrides the file, and the command line overrides both. `--name` or `--name=true` enables a Boolean
option (`[=BOOL]`), `--name=false` disables it; without a stated default it is disabled. Times are `300ms`,
`10s`, `5m`. **Exit codes**: 0 success, 1 failure, 2 bad usage.

Some words are this project's ([all](architecture.md#terms)). A *unit* is the memory that `aliyun.com/gpu-mem: 1`
means. The *ledger* is the extender's record of the memory of each GPU that is allocated to each pod. Free memory is
*stranded* if more pods of the usual sizes cannot use it; the policy *rollout* ([packing.md](packing.md)) keeps it
small. A *hook* is a library that is preloaded into containers and intercepts CUDA calls.
"""

OUTRO = """
`scripts/reference.sh` writes this page from the programs and their source; `scripts/check.sh reference` fails when it
is out of date."""

OPTION = re.compile(r"^  (?:-\w, |    )--.*\n(?: {20,}.*\n)*", re.M)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as text:
        return text.read()


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def rows_of(text):
    return set(re.findall(r"^\| `(\w+)`", text, re.M))


def usage(build, program, *command):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    text = subprocess.run([os.path.join(build, program), *command, "--help"], check=True, env=env,
                          capture_output=True, text=True).stdout
    return re.sub(r" +$", "", text.strip(), flags=re.M) + "\n"


def block(text, without):
    for one in without:
        text = text.replace(one, "")
    return f"```\n{text.rstrip()}\n```"


def options(build):
    for program in PROGRAMS:
        general = usage(build, program)
        texts = {name: usage(build, program, name)
                 for name in re.findall(r"^  ([a-z][\w-]*)(?: \S+)? {2,}\S", general, re.M)}
        first = next(iter(texts.values()), "")
        common = [one for one in OPTION.findall(first) if all(one in text for text in texts.values())]
        yield f"\n## {program}\n"
        yield block(general, common)
        if common:
            yield f"\n### Options of all commands of {program}\n"
            yield block("".join(common), [])
        for name, text in texts.items():
            yield f"\n### {program} {name}\n"
            yield block(text, common)


def metrics(pages):
    """What only a driver or a kernel that counts leads to is on no page here: a test has its samples."""
    found, tested = {}, re.sub(r'"\n +"|\\(?=")', "", read("tests/unit/device_plugin/test_pages.c"))
    for program in ("extender", "device-plugin"):
        with open(os.path.join(pages, f"{program}.prom"), encoding="utf-8") as text:
            page = text.read()
        for name, help_text, kind in re.findall(r"^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$", page, re.M):
            samples = re.findall(rf"\b{name}(?:_bucket|_sum|_count)?({{.*?}})? \d", page + tested)
            if not samples:
                raise SystemExit(f"{name}: no sample says which labels it has")
            labels = sorted(set(re.findall(r'(\w+)="', "".join(samples))) - {"le"})
            row = found.setdefault(name, (kind, labels, help_text, []))
            row[3].append(program)
    yield "\n## Metrics\n"
    yield from table(("name", "type", "labels", "exported by", "meaning"), (
        (f"`{name}`", kind, ", ".join(labels), " and ".join(programs), help_text)
        for name, (kind, labels, help_text, programs) in sorted(found.items())))
    listed = rows_of(LABELS)
    if listed != {label for row in found.values() for label in row[1]}:
        raise SystemExit(f"the table of labels has other ones than the metrics: {listed}")
    yield LABELS


def words(comment):
    """(where, meaning) of a comment of names.h."""
    text = " ".join(line.strip(" *") for line in comment.splitlines())
    where, _, meaning = text.partition(": ")
    return where, meaning


def names():
    header, source = read("include/gpushare/model/names.h"), read("src/lib/model/names.c")
    parts = re.findall(r'\{out\.(\w+), "([^"]*)"\}', source)
    built = {field: ("ALIYUN_COM" if rest[:1] == "_" else "aliyun.com") + rest for field, rest in parts}
    comment = r"/\* ((?:(?!\*/).)*?) \*/\n\s*"
    fields = dict((field, text) for text, field in re.findall(
        comment + r"char (\w+)\[GS_NAME_BYTES\];", header, re.S))
    fields["domain"] = "the domain: what --domain says"
    if fields.keys() != built.keys():
        raise SystemExit(f"names.h does not say what these are: {built.keys() ^ fields.keys()}")
    rows = [(built[field], *words(fields[field])) for field in built if field != "domain"]
    rows += [(value, *words(text)) for text, value in re.findall(
        comment + r'#define GS_\w+ "([^"]+)"', header, re.S)]
    yield "\n## Resources, labels, annotations\n"
    yield "With `--domain example.org`, `aliyun.com/` becomes `example.org/`, and `ALIYUN_COM_` becomes `EXAMPLE_ORG_`.\n"
    yield from table(("name", "where", "meaning"), ((f"`{name}`", *rest) for name, *rest in rows))


def reasons():
    source, header = read("src/lib/model/reason.c"), read("include/gpushare/model/reason.h")
    rows = re.findall(r'\[(GS_\w+)\] =\s*\{"([^"]*)",\s*"(\w+)"\}', source)
    known = re.findall(r"^    (GS_(?:FITS|REASON_\w+)),", header, re.M)
    if [row[0] for row in rows] != known:
        raise SystemExit("the table of reason.c is not understood")
    never = known[known.index("GS_REASON_BAD_COUNT"):known.index("GS_REASON_UNKNOWN_NODE")]
    yield "\n## Reasons\n"
    yield ("Why filter rejected a node, as kube-scheduler's Event `FailedScheduling` (`kubectl describe pod`) and the label "
           "`reason` of metrics have it. \"no\": evicting pods there cannot help.\n")
    yield from table(("reason", "label", "preemption can help"), (
        (text, f"`{label}`", "no" if name in never else "may") for name, text, label in rows if text))


def events():
    found = set()
    for path in glob.glob(os.path.join(ROOT, "src/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as text:
            found |= set(re.findall(r'"(Gpu[A-Z][A-Za-z]+)"', text.read()))
    if found != rows_of(EVENTS):
        raise SystemExit(f"Events that the source and the table do not share: {found ^ rows_of(EVENTS)}")
    yield "\n## Events"
    yield EVENTS


def main():
    build, pages = sys.argv[1:]
    print(INTRO.rstrip())
    for part in (options(build), metrics(pages), names(), reasons(), events()):
        print("\n".join(part))
    print(OUTRO)


main()
