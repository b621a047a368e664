#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""initramfs.py OUT FILE:NAME...   a gzipped newc archive for the kernel; needs no cpio and no root."""
import gzip
import os
import stat
import sys


class Archive:
    def __init__(self):
        self.parts = []

    def add(self, name, mode, data=b"", device=(0, 0)):
        path = name.encode() + b"\0"
        fields = (len(self.parts) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self.parts.append(header + b"\0" * (-len(header) % 4) + data + b"\0" * (-len(data) % 4))

    def write(self, out):
        self.add("TRAILER!!!", 0)
        with gzip.open(out, "wb", compresslevel=1) as stream:
            stream.write(b"".join(self.parts))


def main(out, *files):
    archive = Archive()
    archive.add("dev", stat.S_IFDIR | 0o755)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    for file in files:
        source, name = file.split(":")
        with open(source, "rb") as stream:
            archive.add(name, stat.S_IFREG | (os.stat(source).st_mode & 0o777), stream.read())
    archive.write(out)


main(*sys.argv[1:])
