# SPDX-License-Identifier: Apache-2.0
"""Certificates of the cases' own, made by openssl."""

import os
import subprocess

from harness.control_plane import HOST


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


class Authority:
    """A CA in a folder, the one that is there or a new one. issue() returns (certificate file, key file)."""

    def __init__(self, folder, name):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.name = folder, name
        self.cert, self.key = self.path(f"{name}.crt"), self.path(f"{name}.key")
        if not os.path.exists(self.cert):
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90", "-subj",
                    f"/CN={name}", "-keyout", self.key, "-out", self.cert)

    def path(self, name):
        return os.path.join(self.folder, name)

    def issue(self, name, usage="clientAuth", days=90, groups=(), address=HOST):
        """days below 0: it has expired. groups: what Kubernetes reads as the user's groups."""
        cert, key, request = (self.path(f"{name}.{end}") for end in ("crt", "key", "csr"))
        extensions = self.path(f"{name}.ext")
        with open(extensions, "w", encoding="ascii") as out:
            out.write(f"extendedKeyUsage={usage}\nsubjectAltName=IP:{address}\n")
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
        openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", subject,
                "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key,
                "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", cert)
        return cert, key
