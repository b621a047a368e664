#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages of the programs whose options are all there is to say, from their --help. Prints none:
writes DIR/PROGRAM.1.

    manual.py BUILD DIR
"""

import os
import re
import subprocess
import sys

DATE = "November 22, 2026"

# program: (what it is, subcommands, where to read on)
PAGES = {
    "gpushare-extender": ("scheduler extender that shares the memory of GPUs", [],
                          "docs/install.md, docs/pods.md, docs/operate.md"),
    "gpushare-device-plugin": ("tells the kubelet how much GPU memory there is", [],
                               "docs/install.md, docs/operate.md"),
    "gpushare-mps": ("runs an MPS control daemon for each GPU of its node", [], "docs/limits.md"),
    "gpushare-sim": ("embedded Kubernetes cluster to try gpushare with",
                     ["serve", "schedule", "demo", "replay", "generate"],
                     "docs/development.md, docs/packing.md"),
}


def escaped(text):
    text = re.sub(r"\. (?=[A-Z])", ".\n", text.replace("\\", "\\e"))
    return "\\&" + text if text[:1] in (".", "'") else text


def helped(build, program, *command):
    """(what it does, [(letter, name, argument, text)], what follows) of one --help."""
    lines = subprocess.run([os.path.join(build, program), *command, "--help"], check=True,
                           env={"LC_ALL": "C"}, capture_output=True, text=True).stdout.splitlines()
    doc, options, more = [], [], []
    for line in lines[1:]:
        option = re.match(r"  (?:-(.), |    )--([a-z-]+)(\[?=\S+)?(?:\s+(.*))?$", line)
        if option:
            letter, name, argument, text = option.groups(default="")
            options.append([letter, name, argument, text])
        elif options and line.startswith(" " * 29):
            options[-1][3] = f"{options[-1][3]} {line.strip()}".strip()
        else:
            (more if options else doc).append(line)
    return doc, options, more


def option_rows(options):
    yield ".Bl -tag -width Ds"
    for letter, name, argument, text in options:
        head = f".It Fl {escaped(letter)} , Fl -{name}" if letter else f".It Fl -{name}"
        if argument.startswith("["):
            head += f" Ns Oo = Ns Ar {argument[2:-1]} Oc"
        elif argument:
            head += f" Ns = Ns Ar {argument[1:]}"
        yield head
        yield escaped(text)
    yield ".El"


def page(build, program):
    what, commands, further = PAGES[program]
    doc, options, more = helped(build, program)
    yield '.\\" SPDX-License-Identifier: Apache-2.0'
    yield '.\\" Written by scripts/reference.sh from --help.'
    yield f".Dd {DATE}\n.Dt {program.upper()} 1\n.Os gpushare"
    yield f".Sh NAME\n.Nm {program}\n.Nd {what}\n.Sh SYNOPSIS"
    if not commands:
        yield f".Nm\n.Op Ar options\n.Sh DESCRIPTION\n{escaped(' '.join(doc).strip())}"
        yield ".Pp\nOptions may also stand in a YAML file"
        yield ".Pq Fl -config ,\nby their long names.\nThe environment, where"
        yield "[$NAME] names a variable, wins over the file, and the command line over both."
        yield ".Sh OPTIONS"
        yield from option_rows(options)
    else:
        for command in commands:
            yield f".Nm\n.Cm {command}\n.Op Ar options"
        yield f".Sh DESCRIPTION\n{escaped(doc[0])}"
        for command in commands:
            doc, options, _ = helped(build, program, command)
            yield f".Ss {program} {command}\n{escaped(' '.join(doc).strip())}"
            yield from option_rows(options)
    yield ".Sh EXIT STATUS\n0 when all went well, 1 when something failed, 2 for bad usage."
    yield f".Sh SEE ALSO\n.Xr kubectl-inspect-gpushare 1\n.Pp\n{further} of the source."


def main():
    build, directory = sys.argv[1:]
    for program in PAGES:
        with open(os.path.join(directory, program + ".1"), "w", encoding="utf-8") as out:
            out.write("\n".join(page(build, program)) + "\n")


main()
