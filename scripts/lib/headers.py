#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/ holds the headers that cross folders. Names each that only files of its own folder of src/, and
headers that are no better, include: its place is beside its code.

    headers.py ROOT
"""

import glob
import os
import re
import sys


def main():
    root = sys.argv[1]
    users = {}
    for path in glob.glob(os.path.join(root, "src/**/*.[ch]"), recursive=True) + \
            glob.glob(os.path.join(root, "include/**/*.h"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for name in re.findall(r'^#include "(gpushare/[^"]+)"', file.read(), re.M):
                users.setdefault("include/" + name, set()).add(os.path.relpath(path, root))
    headers = {os.path.relpath(path, root)
               for path in glob.glob(os.path.join(root, "include/**/*.h"), recursive=True)}

    def crosses(header):
        folder = os.path.dirname(header)
        own = "src/lib/" + folder.partition("gpushare/")[2]
        return any(user not in lonely or os.path.dirname(user) != folder
                   for user in users.get(header, ()) if os.path.dirname(user) != own)

    lonely = set(headers)
    while crossing := set(filter(crosses, lonely)):
        lonely -= crossing
    for header in sorted(lonely):
        print(f"{header}   (no second folder uses it)")
    return 1 if lonely else 0


sys.exit(main())
