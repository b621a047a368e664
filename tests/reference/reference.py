#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reference.md, from the programs and from the tables of the source.

    reference.py BUILD DIR      BUILD has the programs, DIR their metrics pages

What cannot be read anywhere (what an Event means) is a table here, and missing or surplus rows are
an error. Prints the document.
"""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The programs' subcommands are in their own usage texts, which is checked.
COMMANDS = [
    ("gpushare-extender", []),
    ("gpushare-device-plugin", []),
    ("gpushare-mps", []),
    ("kubectl-inspect-gpushare", ["why", "what-if", "usage", "defrag", "nodeoverlay",
                                  "doctor"]),
    ("gpushare-sim", ["serve", "schedule", "demo", "replay", "generate"]),
]

# reason: (of, type, meaning). The kubelet's and kube-scheduler's own Events are not ours.
EVENTS = {
    "GpuIndexNotBelieved": ("pod, by the extender", "Warning",
                            "it is bound without a GPU index that can be true, and charged to "
                            "every GPU of its node that could hold it"),
    "GpuOversubscribed": ("node, by the extender", "Warning",
                          "a GPU is charged with more than it has"),
    "GpuEnvironmentOverridden": ("pod, by the device plugin", "Warning",
                                 "a container sets NVIDIA_VISIBLE_DEVICES itself and may use other "
                                 "GPUs"),
    "GpuRecordChanged": ("pod, by the device plugin", "Normal",
                         "two equal pods got each other's GPU; their records were exchanged"),
    "GpuStartHeld": ("pod, by the device plugin", "Warning",
                     "a container's start is held back: its GPU's memory belongs to others by "
                     "now"),
    "GpuMemoryAboveShare": ("pod and its controller, by the device plugin", "Warning",
                            "with --pod-usage=on and --pod-usage-from=auto or nvml: the driver counts 1 GiB more of a GPU for it "
                            "than its share; again each hour"),
    "GpuMemoryWouldBeRefused": ("pod and its controller, by the device plugin", "Warning",
                                "it uses more than its share, and nothing keeps it to that; where "
                                "limits are switched on it would be refused more"),
    "GpuMemoryLimitNotSet": ("pod, by the device plugin", "Warning",
                             "the kernel should keep it to its share and does not, for the reason "
                             "in the Event"),
    "GpuUnhealthy": ("node, by the device plugin", "Warning",
                     "a GPU takes no new pods; those that run are left alone"),
    "GpuHealthy": ("node, by the device plugin", "Normal", "it takes new pods again"),
    "GpuDriverReleased": ("node, by the device plugin", "Normal",
                          "the driver may be replaced; GPUs take no pods meanwhile"),
    "GpuOwnedByOthers": ("node, by the device plugin", "Warning",
                         "another device plugin or DRA driver gives out the same GPUs"),
    "GpuGone": ("node, by the device plugin", "Warning", "a GPU is not there any more"),
    "GpuMemoryUnitHeld": ("node, by the device plugin", "Warning",
                          "--memory-unit waits until the pods that hold units of the old one are "
                          "gone"),
    "GpuMemoryOverPromised": ("node, by the device plugin", "Warning",
                              "pods hold more than their GPU offers now: they keep it, and it gets no "
                              "other pod"),
}

INTRO = """# Reference

Written by `scripts/reference.sh` from the programs and their source; `scripts/check.sh reference` fails
when it is out of date.

Options may also stand in a YAML file (`--config FILE`), by their long names; the environment, where
`[$NAME]` names a variable, wins over the file, and the command line over both. A flag takes no argument, or
`=true`, `=false`. Times are `300ms`, `10s`, `5m`. **Exit codes**: 0 fine, 1 failed, 2 bad usage.
"""


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as text:
        return text.read()


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def usage(build, program, *command):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    text = subprocess.run([os.path.join(build, program), *command, "--help"], check=True, env=env,
                          capture_output=True, text=True).stdout
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def said_once(text, said):
    """A usage text without the options that an earlier one (said: their texts, to which these are added) has
    word for word; their names stand in one line."""
    kept, again, option = [], [], []

    def end_of_option():
        if option and "\n".join(option) in said:
            again.append(re.search(r"--[\w-]+", option[0]).group())
        else:
            kept.extend(option)
        said.update(["\n".join(option)] if option else [])
        option.clear()

    for line in text.splitlines():
        if re.match(r"  (-\w, |    )--", line):
            end_of_option()
            option.append(line)
        elif option and line.startswith(" " * 20):
            option.append(line)
        else:
            end_of_option()
            kept.append(line)
    end_of_option()
    return "\n".join(kept).rstrip(), again


def options(build):
    for program, commands in COMMANDS:
        yield f"\n## {program}\n"
        general = usage(build, program)
        missing = [command for command in commands if not re.search(rf"\b{command}\b", general)]
        if missing:
            raise SystemExit(f"{program} --help does not name {missing}")
        said = set()
        for command in [[]] + [[command] for command in commands]:
            text, again = said_once(usage(build, program, *command), said)
            yield f"\n```\n{text}\n```" if command else f"```\n{text}\n```"
            if again:
                yield f"\nand, as above, `{'` `'.join(again)}`."


def metrics(pages):
    found = {}
    for program in ("extender", "device-plugin"):
        with open(os.path.join(pages, f"{program}.prom"), encoding="utf-8") as text:
            page = text.read()
        for name, help_text in re.findall(r"^# HELP (\S+) (.*)$", page, re.M):
            kind = re.search(rf"^# TYPE {name} (\S+)$", page, re.M)[1]
            samples = re.findall(rf"^{name}(?:_bucket|_sum|_count)?{{(.*)}} ", page, re.M)
            labels = sorted({label for sample in samples
                             for label in re.findall(r'(\w+)="', sample)} - {"le"})
            row = found.setdefault(name, (kind, labels, help_text, []))
            row[3].append(program)
    yield "\n## Metrics\n"
    yield from table(("name", "type", "labels", "of", "meaning"), (
        (f"`{name}`", kind, ", ".join(labels), " and ".join(programs), help_text)
        for name, (kind, labels, help_text, programs) in sorted(found.items())))


def words(comment):
    """(where, meaning) of a comment of names.h."""
    text = " ".join(line.strip(" *") for line in comment.splitlines())
    where, _, meaning = text.partition(": ")
    return where, meaning


def names():
    header, source = read("include/gpushare/model/names.h"), read("src/model/names.c")
    parts = re.findall(r'\{out\.(\w+), (\w+), "(.)?", "([^"]*)"\}', source)
    built = {field: ("aliyun.com" if how == "domain" else "ALIYUN_COM") + joint + rest
             for field, how, joint, rest in parts}
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
    yield "With `--domain D`, `aliyun.com` and `ALIYUN_COM` become D, and D in capitals.\n"
    yield from table(("name", "where", "meaning"), ((f"`{name}`", *rest) for name, *rest in rows))


def reasons():
    source, header = read("src/model/reason.c"), read("include/gpushare/model/reason.h")
    rows = re.findall(r'\[(GS_\w+)\] =\s*\{"([^"]*)",\s*"(\w+)",\s*(true|false)\}', source)
    known = re.findall(r"^    (GS_(?:FITS|REASON_\w+)),", header, re.M)
    if [row[0] for row in rows] != known:
        raise SystemExit("the table of reason.c is not understood")
    yield "\n## Reasons\n"
    yield ("Why a node was refused, as `kubectl describe pod` shows it and as metrics label it. With \"never\", "
           "evicting other pods cannot help.\n")
    yield from table(("reason", "label", ""), (
        (text, f"`{label}`", "never" if never == "true" else "")
        for _, text, label, never in rows if text))


def events():
    found = set()
    for path in glob.glob(os.path.join(ROOT, "src/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as text:
            found |= set(re.findall(r'"(Gpu[A-Z][A-Za-z]+)"', text.read()))
    if found != EVENTS.keys():
        raise SystemExit(f"Events that the source and the table do not share: {found ^ EVENTS.keys()}")
    yield "\n## Events\n"
    yield from table(("reason", "of", "type", "meaning"),
                     ((f"`{reason}`", *row) for reason, row in EVENTS.items()))
    yield ("\nA pod that the device plugin refuses gets the kubelet's own Event, `UnexpectedAdmissionError`, with "
           "the plugin's words; one that fits nowhere gets kube-scheduler's `FailedScheduling`, with the reasons above.")


def main():
    build, pages = sys.argv[1:]
    print(INTRO.rstrip())
    for part in (options(build), metrics(pages), names(), reasons(), events()):
        print("\n".join(part))


main()
