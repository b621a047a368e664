#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages of the programs, from their --help. Prints none:
writes DIR/PROGRAM.1.

    manual.py BUILD DIR
"""

import itertools
import os
import re
import subprocess
import sys

DATE = "November 22, 2026"

# program: (what it is, subcommands, where to read on)
PAGES = {
    "gpushare-extender": ("scheduler extender for shared GPUs", [],
                          "docs/install.md, docs/pods.md, docs/operate.md"),
    "gpushare-device-plugin": ("advertises and allocates GPU memory on a node", [],
                               "docs/install.md, docs/operate.md"),
    "gpushare-mps": ("runs an MPS control daemon for each GPU of its node", [], "docs/limits.md"),
    "gpushare-sim": ("simulated Kubernetes cluster to try gpushare with",
                     ["serve", "schedule", "demo"],
                     "docs/development.md"),
    "kubectl-inspect-gpushare": ("GPU memory of a Kubernetes cluster: how much of which GPU is allocated to which pod",
                                 ["show", "map", "pods", "why", "what-if", "snapshot", "defrag", "web", "doctor"],
                                 "docs/cli.md, docs/troubleshooting.md"),
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
        yield ".Pp\nOptions can also be set in a YAML file"
        yield ".Pq Fl -config ,\nby their long names.\nAn environment variable"
        yield ".Pq [$NAME]\noverrides the file, and the command line overrides both."
        yield ".Sh OPTIONS"
        yield from option_rows(options)
    else:
        for command in commands:
            yield f".Nm\n.Cm {command}\n.Op Ar options"
        yield f".Sh DESCRIPTION\n{escaped(' '.join(itertools.takewhile(str.strip, doc)))}"
        helps = [(command, *helped(build, program, command)) for command in commands]
        common = [option for option in helps[0][2] if all(option in options for _, _, options, _ in helps)]
        for command, doc, options, _ in helps:
            yield f".Ss {program} {command}\n{escaped(' '.join(doc).strip())}"
            yield from option_rows([option for option in options if option not in common])
        yield ".Ss Options of all commands"
        yield from option_rows(common)
    yield ".Sh EXIT STATUS\n0 on success, 1 on failure, 2 for bad usage."
    yield f".Sh SEE ALSO\n.Xr {'kubectl' if program.startswith('kubectl') else 'kubectl-inspect-gpushare'} 1\n.Pp\n{further} of the source."


def main():
    build, directory = sys.argv[1:]
    for program in PAGES:
        with open(os.path.join(directory, program + ".1"), "w", encoding="utf-8") as out:
            out.write("\n".join(page(build, program)) + "\n")


main()
