#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases and the Kubernetes releases they are for.

    select_cases.py --list             a line for people on every case
    select_cases.py                    "run NAME" or "other NAME RANGE" for every case
    select_cases.py --release-dependent   the same, but only of cases whose outcome depends on it
    select_cases.py --as-deployed      with any of these: the cases of the folder deployed/

A case says its releases at its top, KUBE = ">=1.30" or "<1.23"; one that runs on all of them, but
whose outcome the release decides, says ">=1.20". Without that line it runs everywhere, and once is
enough. One that needs a program which takes minutes to build says NEEDS = "kueue_build.sh": "needs NAME
SCRIPT". What takes longest says LONG = True, and is named first.
"""

import ast
import glob
import operator
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
COMPARISONS = {">=": operator.ge, "<": operator.lt}


def parts(version):
    return tuple(int(part) for part in version.split(".")[:2])


def holds(releases, version):
    """Whether ">=1.30" or "<1.23" is true of a version; anything else in the case is an error."""
    found = re.fullmatch(r"(>=|<)(1\.\d+)", releases)
    if not found:
        raise SystemExit(f"KUBE = {releases!r} is neither like '>=1.30' nor like '<1.23'")
    return COMPARISONS[found[1]](parts(version), parts(found[2]))


def read_case(path):
    """(releases or None, script or None, whether it is long, first paragraph of the description). It is not run."""
    with open(path, encoding="utf-8") as source:
        tree = ast.parse(source.read(), path)
    said = {ast.unparse(statement.targets[0]): statement.value for statement in tree.body
            if isinstance(statement, ast.Assign)}
    releases, needs, long = (ast.literal_eval(said[word]) if word in said else None for word in ("KUBE", "NEEDS", "LONG"))
    return releases, needs, long, " ".join(ast.get_docstring(tree).split("\n\n")[0].split())


def main(arguments):
    folder = "deployed" if "--as-deployed" in arguments else "cases"
    found = {path: read_case(path) for path in sorted(glob.glob(f"{HERE}/{folder}/*.py"))}
    for path, (releases, needs, _, about) in sorted(found.items(), key=lambda one: not one[1][2]):
        name = os.path.basename(path).removesuffix(".py")
        if "--list" in arguments:
            print(f"{name:28} {releases or '':7} {about}")
        elif releases or "--release-dependent" not in arguments:
            fits = releases is None or holds(releases, os.environ["KUBE_VERSION"])
            print("other" if not fits else "needs" if needs else "run", name, needs if fits and needs else releases or "")


main(sys.argv[1:])
