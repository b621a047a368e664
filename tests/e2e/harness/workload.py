# SPDX-License-Identifier: Apache-2.0
"""Random nodes and pods, the same for the same seed: more demand than room, of every shape."""

import random

from harness.objects import node, pod

NODE_SHAPES = ([16, 16], [8, 8, 8], [24, 8], [16], [32], [80], [12] * 4)


def random_nodes(count, seed):
    """Of mixed shapes; every fifth without inventory, as the original's device plugin leaves it."""
    rng = random.Random(seed)
    made = []
    for i in range(count):
        plain = i % 5 == 4
        made.append(node(f"node-{i:03}", [16, 16] if plain else rng.choice(NODE_SHAPES),
                         with_inventory=not plain))
    return made


def random_pod(name, rng):
    kind = rng.random()
    if kind < 0.70:
        return pod(name, rng.choice((1, 2, 4, 6, 8, 10, 12, 14, 16)))
    if kind < 0.78:
        return pod(name, containers=[rng.randint(1, 6), 0, rng.randint(1, 6)])
    if kind < 0.86:
        return pod(name, rng.randint(1, 6), init=[rng.randint(1, 12)])
    if kind < 0.94:
        return pod(name, 2 * rng.randint(4, 16), gpu_count=2)
    if kind < 0.97:
        return pod(name, rng.choice((40, 80)))
    return pod(name)


def random_pods(count, seed, name="pod"):
    rng = random.Random(seed)
    return [random_pod(f"{name}-{i:03}", rng) for i in range(count)]
