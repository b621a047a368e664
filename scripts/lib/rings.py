#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rings of files: files of src/ that call each other in a circle, found in the object files' symbols.
Each must be in the table below "## Rings of files" of docs/architecture.md, with its reason, and each
row there must still be a ring.

    rings.py BUILD PAGE
"""

import os
import re
import subprocess
import sys

HEADING = "## Rings of files"


def objects(build):
    """(target, source, path) of each object file below build/src; those of deleted sources stay behind
    there and do not count."""
    for root, _, names in os.walk(os.path.join(build, "src", "CMakeFiles")):
        for name in names:
            path = os.path.join(root, name)
            match = re.search(r"/([^/]+)\.dir/(.*\.c)\.o$", path)
            if match and any(os.path.exists(os.path.join(top, match.group(2)))
                             for top in ("src", os.path.join(build, "src"))):
                yield match.group(1), match.group(2), path


def symbols(paths):
    """{object file: names that it defines for others, and those that it wants}"""
    text = subprocess.run(["nm", "-gA", *paths], check=True, capture_output=True, text=True).stdout
    found = {path: (set(), set()) for path in paths}
    for line in text.splitlines():
        path, rest = line.split(":", 1)
        *_, kind, name = rest.split()
        found[path][kind in "Uwv"].add(name)
    return found


def calls(build):
    """{file: files that it calls}. Programs may use one name for different things: a program's own
    files come first, then the layers."""
    owner, wants = {}, []
    files = list(objects(build))
    found = symbols([path for _, _, path in files])
    for target, source, path in files:
        defined, wanted = found[path]
        wants.append((target, source, wanted))
        for name in defined:
            owner[target if not target.startswith("gs_") else "", name] = source
    graph = {}
    for target, source, wanted in wants:
        out = graph.setdefault(source, set())
        for name in wanted:
            out.add(owner.get((target, name), owner.get(("", name))))
        out -= {None, source}
    return graph


def rings(graph):
    """Strongly connected parts of more than one file (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for callee in sorted(graph.get(file, ())):
            if callee not in number:
                visit(callee)
                low[file] = min(low[file], low[callee])
            elif callee in stack:
                low[file] = min(low[file], number[callee])
        if low[file] == number[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for file in sorted(graph):
        if file not in number:
            visit(file)
    return sorted(found)


def explained(page):
    """Sets of files, one per row of the table. `core/a.c`, `b.c`: the folder stays until another."""
    with open(page, encoding="utf-8") as text:
        part = text.read().partition(f"\n{HEADING}\n")[2].split("\n## ")[0]
    for row in re.findall(r"^\| (`.*?) \|", part, re.M):
        folder, files = "", set()
        for name in re.findall(r"`([^`]+\.c)`", row):
            folder = os.path.dirname(name) or folder
            files.add(os.path.join(folder, os.path.basename(name)))
        yield files


def main():
    build, page = sys.argv[1:]
    graph = calls(build)
    if len(graph) < 100:
        sys.exit(f"only {len(graph)} object files below {build}")
    found, rows, bad = rings(graph), list(explained(page)), False
    for ring in found:
        if not any(set(ring) <= row for row in rows):
            print(f"{page}: names no ring of {' '.join(ring)}")
            bad = True
    for row in rows:
        if not any(set(ring) <= row for ring in found):
            print(f"{page}: is no ring any more: {' '.join(sorted(row))}")
            bad = True
    print(f"note: {len(graph)} files, {len(found)} rings")
    sys.exit(bad)


main()
