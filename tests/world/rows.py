# SPDX-License-Identifier: Apache-2.0
"""A document read strictly: no key stands twice, and no text has a character that could steer a terminal or a reader's eye."""

import json
import re

from attack import Wrong

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd\U000e0000-\U000e0fff]")


def strict(pairs):
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError(f"a key stands twice: {[key for key, _ in pairs]}")
    return dict(pairs)


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def parse(what, body):
    try:
        doc = json.loads(body.decode(), object_pairs_hook=strict)
    except ValueError as why:
        raise Wrong(f"{what[:120]}: {why}: {body[:200]!r}") from why
    for text in texts(doc):
        if found := ACTING.search(text):
            raise Wrong(f"{what[:120]}: {found[0]!r} in {text[:200]!r}")
    return doc
