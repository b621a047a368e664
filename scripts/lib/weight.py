#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the checkout weighs: tokens of code by folder (comments and blanks weigh nothing), lines beside them.

  weight.py              a table, and the sums
  weight.py --check FILE fails where a folder or a sum is above FILE's ceiling
  weight.py --write FILE today's weight, rounded up to 500, as the ceilings: no sum may rise

Product is what is compiled into the programs, and the page's script; words are those of *.md and of manual pages
that no program writes."""
import collections
import os
import re
import subprocess
import sys

C_COMMENTS = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.S)
HASH_COMMENTS = re.compile(r'("""|\'\'\')(?:.|\n)*?\1|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|#[^\n]*')
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\d[\w.]*|->|\+\+|--|<<=|>>=|<<|>>|[-+*/%&|^=!<>]=|&&'
                   r'|\|\||\.\.\.|\S')
C_LIKE, HASHED = (".c", ".h", ".inc", ".js"), (".py", ".sh", ".cmake", ".scenarios", ".mut")
STEP = 500


def tokens(path, text):
    if path.endswith(C_LIKE):
        text = C_COMMENTS.sub(lambda found: found.group(1) or " ", text)
    else:
        text = HASH_COMMENTS.sub(lambda found: found.group(2) or " ", text)
    return len(TOKEN.findall(text))


def folder(path):
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return "/".join(parts[:3] if len(parts) > 3 else parts[:2])
    return "/".join(parts[:2]) if parts[0] in ("tests", "tools") and len(parts) > 2 else parts[0]


def is_prose(path):
    return bool(path.endswith(".md") or re.search(r"\.[1-9](\.in)?$", path)) \
        and path != "docs/reference.md" and not path.startswith(("tests/", "docs/man/"))


def weigh():
    """{folder: [tokens, lines]} and the sums."""
    rows, sums = collections.defaultdict(lambda: [0, 0]), {"product": 0, "tests": 0, "words": 0}
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True).stdout.decode()
    for path in filter(os.path.isfile, listed.split("\0")):
        code = path.endswith(C_LIKE + HASHED)
        if not code and not is_prose(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as source:
            text = source.read()
        if not code:
            sums["words"] += len(text.split())
            continue
        count = tokens(path, text)
        rows[folder(path)][0] += count
        rows[folder(path)][1] += text.count("\n")
        if path.startswith(("src/", "include/")) and path.endswith(C_LIKE):
            sums["product"] += count
        if path.startswith("tests/"):
            sums["tests"] += count
    return rows, sums


def ceilings(path):
    with open(path, encoding="ascii") as table:
        return {name: int(most) for name, most in (line.split() for line in table if not line.startswith("#"))}


def main(arguments):
    rows, sums = weigh()
    weight = {name: row[0] for name, row in rows.items()} | sums
    for name in sorted(rows):
        print("%-28s %8d tokens %7d lines" % (name, *rows[name]))
    print("product %(product)d tokens, tests %(tests)d tokens, words %(words)d" % sums)
    if not arguments:
        return 0
    above = [f"{name}: {weight[name]} is above {most}" for name, most in ceilings(arguments[1]).items()
             if weight.get(name, 0) > most and (arguments[0] == "--check" or name in sums)]
    above += [f"{name} has no ceiling" for name in weight
              if arguments[0] == "--check" and name not in ceilings(arguments[1])]
    if arguments[0] == "--write" and not above:
        with open(arguments[1], "w", encoding="ascii") as table:
            table.write("# Ceilings of scripts/check.sh weight, in tokens (words: words). The sums never rise.\n")
            for name in sorted(weight):
                table.write(f"{name} {-(-weight[name] // STEP) * STEP}\n")
    print("\n".join(above))
    return 1 if above else 0


sys.exit(main(sys.argv[1:]))
