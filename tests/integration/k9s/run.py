#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the keys of share/k9s/plugins.yaml run, on a small cluster.

    run.py BUILD

The file is read, its words are put in and its commands are run as k9s does (derailed/k9s v0.50.16,
internal/config/plugin.go, internal/view/env.go and exec.go). In k9s itself: tests/e2e/cases/k9s.py.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from api import Served  # noqa: E402
from objects import Pod, new_node  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
WORD = re.compile(r"(\$(!?)([\w\-]+))|(\$\{(!?)([\w\-%/: ]+)\})")
NEEDED = {"shortCut", "description", "scopes", "command", "background", "args"}
TAKEN = set("ABCDFGIJKLMNOPRSTUVXZ")  # with Shift, keys of a view of k9s itself


def plugins():
    """{name: {member: value}} of a file in the few forms that ours has."""
    found, name = {}, None
    with open(os.path.join(ROOT, "share/k9s/plugins.yaml"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    assert lines[0] == "plugins:", lines[0]
    for line in lines[1:]:
        entry = re.fullmatch(r"  ([a-z-]+):", line)
        member = re.fullmatch(r"    (\w+): (.+)", line)
        assert entry or member, line
        if entry:
            name = entry.group(1)
            found[name] = {}
        elif member.group(1) == "args":
            found[name]["args"] = json.loads(member.group(2))
        else:
            found[name][member.group(1)] = member.group(2)
    return found


def put_in(arg, words):
    for match in sorted(WORD.finditer(arg), key=lambda one: -len(one.group())):
        key = (match.group(3) or match.group(6)).upper()
        assert key in words, f"k9s has no {match.group()} for {arg}"  # it would stay, or be refused
        arg = arg.replace(match.group(), words[key])
    return arg


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)


def run(plugin, words, folder):
    args = [put_in(arg, words) for arg in plugin["args"]]
    environment = {"PATH": folder + ":" + os.environ["PATH"], "HOME": folder}
    return subprocess.run([plugin["command"], *args], env=environment, capture_output=True,
                          text=True, timeout=30, check=False).stdout


def judge(build, folder, kubeconfig):
    ours = os.path.join(build, "kubectl-inspect-gpushare")
    script(folder, "kubectl", f'[ "$1 $2" = "inspect gpushare" ] || exec {os.environ["KUBECTL"]} "$@"\nshift 2\nexec {ours} "$@"')
    script(folder, "less", '[ "$1" = -R ] || exit 9\nexec cat')
    shown = json.loads(subprocess.run([ours, "--kubeconfig", kubeconfig, "-o", "json"], check=True,
                                      capture_output=True, text=True).stdout)
    node = shown["nodes"][0]["name"]
    pod, namespace = "p0", "team"
    words = {"KUBECONFIG": kubeconfig, "CONTEXT": "c", "CLUSTER": "c", "USER": "u", "GROUPS": ""}
    all_of_them, keys = plugins(), set()
    for name, plugin in all_of_them.items():
        assert set(plugin) == NEEDED, (name, plugin)
        scope = plugin["scopes"].strip("[]")
        assert plugin["shortCut"].startswith("Shift-"), name
        assert plugin["shortCut"][-1] not in TAKEN, (name, "is a key of k9s")
        assert (scope, plugin["shortCut"]) not in keys, (name, "two have one key")
        keys.add((scope, plugin["shortCut"]))
        words["NAMESPACE"], words["NAME"] = (namespace, pod) if scope == "pods" else ("-", node)
        out = run(plugin, words, folder)
        # the cluster has no device plugins to ask: that is to be seen, too
        wanted = {"why": f"{namespace}/{pod} is on node {node}", "map": f"{node}: ", "pods": "no pod of the DaemonSet"}[name.split("-")[1]]
        assert wanted in out, (name, wanted, out)
        print(f"{name}: {out.splitlines()[0]}")
        nobody = run(plugin, dict(words, NAME="$(touch here); ` of nobody"), folder)
        assert nobody and not os.path.exists("here"), (name, nobody)
    assert len(all_of_them) == 3


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, Served([new_node("n0", [16, 16]), Pod("p0", 4, "team").bind("n0", 0).obj]) as api:
        judge(build, folder, api.kubeconfig)


if __name__ == "__main__":
    main()
