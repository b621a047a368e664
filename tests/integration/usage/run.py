#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options that cannot be meant end a program with exit code 2 before it talks to anybody, and its
last words name the option; what is wrong with the machine is exit code 1.

    run.py BUILD_DIR
"""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time

ELECT = ["--leader-elect", "--pod-name", "x"]

# (name, arguments, environment, exit code, words on stderr)
ROWS = [
    ("an operand", ["x"], {}, 2, "x"),
    ("no such policy", ["--policy", "best"], {}, 2, "policy"),
    ("no such domain", ["--domain", "UPPER"], {}, 2, "domain"),
    ("no bind workers", ["--bind-workers", "0"], {}, 2, "--bind-workers"),
    ("no port", ["--listen", "127.0.0.1"], {}, 2, "--listen"),
    ("a word for a port", ["--listen", "127.0.0.1:http"], {}, 2, "--listen"),
    ("a port too high", ["--listen", "127.0.0.1:65536"], {}, 2, "--listen"),
    ("a name for an address", ["--listen", "127.example:80"], {}, 2, "--listen"),
    ("IPv6 without brackets", ["--health-listen", "::1:80"], {}, 2, "--health-listen"),
    ("a health port too high", ["--health-listen", ":65536"], {}, 2, "--health-listen"),
    ("a word in PORT", [], {"PORT": "http"}, 2, "PORT"),
    ("plain HTTP for everybody", ["--listen", ":29999"], {}, 2, "--insecure-plain-http"),
    ("TLS for everybody", ["--listen", ":29999", "--tls-cert", "c", "--tls-key", "k"], {}, 2,
     "--insecure-no-client-auth"),
    # the other yes is for the other risk
    ("TLS for everybody, yes to plain HTTP",
     ["--listen", ":29999", "--tls-cert", "c", "--tls-key", "k", "--insecure-plain-http"], {}, 2,
     "--insecure-no-client-auth"),
    ("TLS for everybody, said twice",
     ["--listen", ":29999", "--tls-cert", "c", "--tls-key", "k", "--insecure-no-client-auth",
      "--kubeconfig", "/does/not/exist"], {}, 1, "/does/not/exist"),
    ("names without a CA", ["--tls-cert", "c", "--tls-key", "k", "--tls-allowed-cn", "a"], {}, 2,
     "--tls-client-ca"),
    ("election without a name", ["--leader-elect"], {}, 2, "--pod-name"),
    # Everybody with the empty name would be the holder of a lease that nobody holds.
    ("election with the empty name", ["--leader-elect", "--pod-name="], {}, 2, "--pod-name"),
    ("election without a namespace", ELECT + ["--pod-namespace="], {}, 2, "--pod-namespace"),
    ("both layouts", ELECT + ["--scheduler-lease", "a/b"], {}, 2, "--scheduler-lease"),
    ("half a lease", ["--scheduler-lease", "a/"], {}, 2, "--scheduler-lease"),
    ("no such file", ["--kubeconfig", "/does/not/exist"], {}, 1, "/does/not/exist"),
]
PLUGIN_ROWS = [
    ("overhead for nobody", ["--overhead-mib=1"], {}, 2, "--overhead-slots"),
    ("a hook beside limits", ["--hook-library=/l", "--hook-sha256=" + 64 * "0", "--enforce=preferred"], {}, 2, "--enforce"),
    ("a label without MPS", ["--mps-by-label"], {}, 2, "--mps-root"),
    ("MPS beside limits", ["--mps-root", "/m", "--enforce", "preferred"], {}, 2, "mutually exclusive"),
    ("no such list", ["--device-list-strategy", "envvar,cdi"], {}, 2, "device-list-strategy"),
]
CLI_ROWS = [
    ("compute on two GPUs", ["what-if", "-m4", "--gpu-core=50", "--gpu-count=2"], {}, 2, "--gpu-core"),
    ("no replicas", ["what-if", "-m4", "--replicas=0"], {}, 2, "--replicas"),
    ("too many replicas", ["what-if", "-m4", "--replicas=100001"], {}, 2, "--replicas"),
    ("no pods of a size", ["what-if", "-m4x0"], {}, 2, "4x0"),
    ("too many of a size", ["what-if", "-m4x100001"], {}, 2, "4x100001"),
    ("a pod as CSV", ["why", "pod", "-ocsv"], {}, 2, "CSV"),
    ("more than there is", ["what-if", "-m3000000000"], {}, 2, "3000000000"),
    ("until what fits", ["what-if", "-m4", "--until-fit"], {}, 2, "--add-node"),
    ("three names", ["why", "a/b/c"], {}, 2, "a/b/c"),
    ("all of a pod", ["why", "pod", "--all"], {}, 2, "--all"),
    ("no moves", ["defrag", "--max-moves=0"], {}, 2, "--max-moves"),
]


def kubeconfig_of_the_simulator(build):
    """It holds a token, and is nobody's business but its user's, also where an old one lies."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kubeconfig")
        for left in (path, path + ".partial"):
            with open(left, "w", encoding="utf-8") as file:
                os.chmod(left, 0o644)
                file.write("old")
        with subprocess.Popen([os.path.join(build, "gpushare-sim"), "serve", "--listen",
                               "127.0.0.1:0", "--token", "secret", "--kubeconfig-out", path],
                              stderr=subprocess.DEVNULL) as sim:
            until = time.monotonic() + 60
            while b"secret" not in pathlib.Path(path).read_bytes() and time.monotonic() < until:
                time.sleep(0.05)
            mode = stat.S_IMODE(os.stat(path).st_mode)
            sim.terminate()
        return [] if mode == 0o600 else [f"--kubeconfig-out: the file's mode is {mode:o}"]


def read_only_cgroups(build):
    """A node's pods' cgroups, as the overlay without manifests/limits mounts them."""
    with tempfile.TemporaryDirectory() as folder:
        prepare = ('mount -t tmpfs none "$0" && mkdir "$0/kubepods.slice" && mount -o remount,ro "$0" || exit 77; '
                   'exec "$1" --print-inventory --fake-gpus=1GiB --cgroup-root="$0" --enforce=$2')
        failures = []
        for enforce, code in (("required", 2), ("preferred", 0)):
            run = subprocess.run(["unshare", "-r", "-m", "sh", "-c", prepare, folder,
                                  os.path.join(build, "gpushare-device-plugin"), enforce],
                                 capture_output=True, text=True, timeout=30, check=False)
            unprepared = run.returncode in (1, 77)  # no mount namespace can be made here
            said = "read-only: apply manifests/limits" in run.stderr
            if not unprepared and (run.returncode, said) != (code, code == 2):
                failures.append(f"{enforce} and read-only cgroups: {run.returncode}: {run.stderr}")
        return failures


def main():
    failures = read_only_cgroups(sys.argv[1])
    rows = [("gpushare-extender", *row) for row in ROWS]
    rows += [("gpushare-device-plugin", *row) for row in PLUGIN_ROWS]
    rows += [("kubectl-inspect-gpushare", *row) for row in CLI_ROWS]
    for program, name, arguments, environment, code, words in rows:
        run = subprocess.run([os.path.join(sys.argv[1], program)] + arguments, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30,
                             env={"PATH": os.environ["PATH"], **environment}, check=False)
        said = run.stderr.decode()
        if run.returncode != code or words not in said:
            failures.append(f"{name}: exit code {run.returncode}, wanted {code} and {words!r} in:\n"
                            f"    {said.strip()}")
    failures += kubeconfig_of_the_simulator(sys.argv[1])
    print("\n".join(failures) or f"{len(rows)} ways to misuse them")
    return 1 if failures else 0


sys.exit(main())
