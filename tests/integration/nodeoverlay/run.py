#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kubectl inspect gpushare nodeoverlay` prints what Karpenter's API takes.

    run.py BUILD [--seed N]

The rules are those of the CRD nodeoverlays.karpenter.sh (kubernetes-sigs/karpenter v1.14.0,
pkg/apis/crds), and of names of objects (apimachinery, pkg/util/validation). Asked for are 300 random
instance types with every byte that a label's value may have; the golden files are held to the rules,
too, since those come from nodes.
"""

import glob
import os
import random
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

# metadata.name; requirements[].key (maxLength 316); values[] (63); capacity{}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
KEY = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?"
                 r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
QUANTITY = re.compile(r"(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
                      r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?")
OVERLAY = re.compile(r'apiVersion: "karpenter\.sh/v1alpha1"\nkind: "NodeOverlay"\nmetadata:\n'
                     r'  name: "([^"\n]*)"\nspec:\n  requirements:\n    - key: "([^"\n]*)"\n'
                     r'      operator: "In"\n      values:\n        - "([^"\n]*)"\n  capacity:\n'
                     r"((?:    [^ \n]+: [^ \n]+\n)+)")


def check(text, where):
    """The overlays of a text: {instance type: {resource: quantity}}."""
    found, names = {}, set()
    head, *documents = text.split("---\n")
    assert all(line.startswith("# ") for line in head.splitlines()), (where, head)
    for document in documents:
        bare = "".join(line + "\n" for line in document.splitlines() if not line.startswith("# "))
        match = OVERLAY.fullmatch(bare)
        assert match, (where, bare)
        name, key, value, capacity = match.groups()
        assert NAME.fullmatch(name) and len(name) <= 253, (where, name)
        assert name not in names, (where, "two are called", name)
        names.add(name)
        assert key == "node.kubernetes.io/instance-type" and KEY.fullmatch(key), (where, key)
        assert value and VALUE.fullmatch(value) and len(value) <= 63, (where, value)
        assert value not in found, (where, "told twice", value)
        found[value] = dict(line.strip().split(": ") for line in capacity.splitlines())
        for resource, quantity in found[value].items():
            assert KEY.fullmatch(resource) and QUANTITY.fullmatch(quantity), (where, resource)
            assert resource not in ("cpu", "memory", "ephemeral-storage", "pods"), (where, resource)
            assert 0 < int(quantity), (where, resource, quantity)
    return found


def random_types(chance, count):
    types = {}
    while len(types) < count:
        middle = "".join(chance.choice(LETTERS + "-_." * 8) for _ in range(chance.randrange(62)))
        value = chance.choice(LETTERS) + middle + chance.choice(["", chance.choice(LETTERS)])
        if value[-1] in "-_." or any(alike(value) == alike(other) for other in types):
            continue
        types[value] = (chance.randint(1, 64), chance.choice([1, 39, 81920, 2147483647]))
    return types


def alike(value):
    return re.sub(r"[-_.]", "-", value.lower())


def main():
    build = sys.argv[1]
    seed = int(sys.argv[3]) if sys.argv[2:3] == ["--seed"] else 41
    program = os.path.join(build, "kubectl-inspect-gpushare")
    types = random_types(random.Random(seed), 300)
    text = ",".join(f"{name}={gpus}x{units}" for name, (gpus, units) in types.items())
    out = subprocess.run([program, "nodeoverlay", "--type", text], capture_output=True, text=True,
                         check=True).stdout
    found = check(out, f"seed {seed}")
    wanted = {name: {"aliyun.com/gpu-mem": str(gpus * units), "aliyun.com/gpu-count": str(gpus),
                     "aliyun.com/gpu-core.percentage": str(gpus * 100)}
              for name, (gpus, units) in types.items()}
    assert found == wanted, f"seed {seed}"
    golden = glob.glob(os.path.join(ROOT, "tests/apps/inspect/cases/nodeoverlay*/stdout"))
    assert len(golden) >= 5, golden
    for path in golden:
        with open(path, encoding="utf-8") as file:
            assert check(file.read(), path), path
    print(f"{len(found)} random types and {len(golden)} golden files are as the CRD wants")


if __name__ == "__main__":
    main()
