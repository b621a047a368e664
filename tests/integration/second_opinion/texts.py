# SPDX-License-Identifier: Apache-2.0
"""What tenants write: amounts in every form that the API takes, and junk. None of it names a GPU that exists."""


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
