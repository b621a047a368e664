# SPDX-License-Identifier: Apache-2.0
"""What tenants write: amounts in every form that the API takes, junk, and pairs of lists that a
cache with an unkeyed hash takes for one another. None of it names a GPU that exists."""

import itertools

WORD = (1 << 64) - 1
# A hash that multiplies, folds the upper half down and has no secret can be run backwards: whoever
# knows its constants chooses the text. These are of a release that could be poisoned so.
SEED, FACTOR = 0x2545F4914F6CDD1D, 0xD6E8FEB86659FD93
BACK = pow(FACTOR, -1, 1 << 64)
PLAIN = frozenset(range(0x23, 0x7F)) - frozenset(b",\"\\%")


def forth(state, word):
    state = (state ^ word) * FACTOR & WORD
    return state ^ state >> 32


def needed(state, target):
    """The word that leads from a state to another."""
    product = target ^ target >> 32
    return product * BACK & WORD ^ state


def run(words):
    state = SEED
    for word in words:
        state = forth(state, word)
    return state


def number(text):
    return int.from_bytes(text, "little")


def colliding(placement, leaving, small, large):
    """Two gpu-model-deny lists, equal to such a cache: one for a pod of `small` units, one for a
    pod of `large`."""
    first, last = b"nothing1nothing2", b"nothing3"

    def head(units):
        return [placement << 1 | leaving, units << 32 | 1, 0, 0, 0, 24]
    target = run(head(small) + [number(first[:8]), number(first[8:])])
    begun = run(head(large))
    for letters in itertools.product("abcdefghijklmnopqrstuvwxyz0123456789", repeat=4):
        word = "".join(letters).encode() + b"none"
        middle = needed(forth(begun, number(word)), target).to_bytes(8, "little")
        if PLAIN.issuperset(middle):
            return (first + last).decode(), (word + middle + last).decode()
    raise ValueError("no such text")


def alike(rng):
    """Two lists that a careless comparison takes for one: the same letters in another order, one
    the beginning of the other, another case."""
    a, b = (f"none-{rng.randrange(1000)}" for _ in range(2))
    return rng.choice([(f"{a},{b}", f"{b},{a}"), (a, a + ","), (a + b, f"{a},{b}"), (a, a + " "),
                       (a, a.upper()), ("x" * 31, "x" * 32), (a + "\u00e9", a + "e")])


def amount(rng, units):
    """A whole number as a Quantity may be written."""
    return rng.choice([str(units)] * 12 + [units, f"{units}000m", f"{units}e0", f"{units}.0",
                                           f"{units}000000u", f"+{units}"])


COUNTS = ["1", "2", "2", "3", "4", "8", "64", "65", "0", "-1", "x", "", " 2", "2 ", "02", "1e0"]
RECORDS = ["0", "1", "0,1", "1,0", "9", "", "-1", "0,0", "x", "00", "0,", "4294967296", " 1", "63"]
SPLITS = ['{"0":{"1":4}}', '{"0":{"0":1000000}}', "{", "[]", '{"0":{"9":1}}', '{"7":{"0":1}}', "",
          '{"0":{"0":-4}}', '{"0":{"0":1,"0":2}}', '{"0":' * 70 + "1" + "}" * 70]
LISTS = ["T4", "a100", "A100,T4", "none-such", "", ",", ",,,", " T4 ", "x" * 1025,
         ",".join("abcdefghijklmnopqrstuvwxyz0123456789"), "\u2028", "GPU-n0-0", "%s%n"]
PLACEMENTS = ["binpack", "spread", "fgd", "rollout", "Rollout", "best", ""]
WAKES = ["0", "x", "99999999999999999999", "", "-1"]
