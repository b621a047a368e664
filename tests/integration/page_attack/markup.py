# SPDX-License-Identifier: Apache-2.0
"""A page read strictly: what no writer of HTML would pass is an error, not something to make the best of. Every `<` begins an
element that the page has, every `&` an entity, quotes are closed, nothing is nested wrongly, no id stands twice."""

import html
import re

TOKEN = re.compile(r"<!doctype html>|</([a-z][a-z0-9]*)>|<([a-z][a-z0-9]*)((?: [a-z-]+(?:=(?:\"[^\"<>]*\"|[^\s\"'<>=`&]+))?)*)>|([^<>]+)")
ATTR = re.compile(r" ([a-z-]+)(?:=(?:\"([^\"]*)\"|([^\s\"]+)))?")
BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|#39);)")
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd\U000e0000-\U000e0fff]")
VOID = {"meta", "link", "input", "br"}
OPEN = {"li", "p", "td", "th", "tr", "thead", "tbody", "option"}      # may end by what follows
CLOSES = {"td": ("td", "th"), "th": ("td", "th"), "tr": ("td", "th", "tr"), "tbody": ("td", "th", "tr", "thead"), "li": ("p", "li"),
          "option": ("option",)}
BLOCKS = {"p", "section", "div", "h1", "h2", "h3", "table", "pre", "ol", "nav", "form", "details", "article", "header", "main"}
KNOWN = VOID | OPEN | BLOCKS | {"html", "head", "body", "title", "script", "noscript", "label", "select", "button", "a", "b", "i", "s", "em",
                                "small", "span", "summary", "code"}
ATTRS = {"lang", "charset", "name", "content", "rel", "href", "src", "defer", "class", "id", "method", "action", "role", "type", "maxlength",
         "placeholder", "value", "selected", "data-sum", "aria-label", "title"}


class Wrong(Exception):
    """Of a page."""


class Node:
    def __init__(self, tag, attrs, at):
        self.tag, self.attrs, self.parts, self.at, self.end = tag, attrs, [], at, at

    def all(self, tag=None, **attrs):
        for part in self.parts:
            if isinstance(part, Node):
                if (not tag or part.tag == tag) and all(want in (part.attrs.get(key.strip("_")) or "").split() for key, want in attrs.items()):
                    yield part
                yield from part.all(tag, **attrs)

    def one(self, tag=None, **attrs):
        return next(self.all(tag, **attrs), None)

    def text(self):
        return "".join(part if isinstance(part, str) else part.text() for part in self.parts)

    def own(self):
        return "".join(part for part in self.parts if isinstance(part, str))

    def hrefs(self):
        return [node.attrs["href"] for node in self.all("a")]

    def by_id(self, name):
        return next((node for node in self.all() if node.attrs.get("id") == name), None)


def attributes(text, tag):
    found = {}
    for name, quoted, plain in ATTR.findall(text):
        value = quoted or plain
        if name in found or name not in ATTRS or BARE.search(value):
            raise Wrong(f"<{tag}> has {name}={value!r}")
        found[name] = html.unescape(value)
    return found


def open_element(stack, tag):
    while stack[-1].tag in CLOSES.get(tag, ()) or (stack[-1].tag == "p" and tag in BLOCKS):
        stack.pop()


def parse(text, part=False):
    """The tree of a document, or of a part of one."""
    root = Node("", {}, 0)
    stack, at = [root], 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if not token:
            raise Wrong(f"no HTML at {text[max(0, at - 60):at + 80]!r}")
        begun, at = at, token.end()
        end, tag, attrs, words = token.groups()
        if end:
            while stack[-1].tag != end and stack[-1].tag in OPEN:
                stack.pop()
            if stack[-1].tag != end:
                raise Wrong(f"</{end}> ends <{stack[-1].tag}> at {text[max(0, begun - 80):at]!r}")
            stack.pop().end = at
        elif tag:
            if tag not in KNOWN:
                raise Wrong(f"<{tag}{attrs}>")
            open_element(stack, tag)
            node = Node(tag, attributes(attrs, tag), begun)
            stack[-1].parts.append(node)
            if tag not in VOID:
                stack.append(node)
        elif words:
            if BARE.search(words):
                raise Wrong(f"an & that is no entity in {words!r}")
            stack[-1].parts.append(html.unescape(words))
    while len(stack) > 1 and stack[-1].tag in OPEN:
        stack.pop()
    if len(stack) > 1:
        raise Wrong(f"<{stack[-1].tag}> has no end")
    check(root, part)
    return root


def check(root, part):
    ids = set()
    for node in root.all():
        name = node.attrs.get("id")
        if name in ids and name is not None:
            raise Wrong(f"id {name!r} stands twice")
        ids.add(name)
        for value in [*node.attrs.values(), node.own()]:
            if ACTING.search(value.replace("\n", "")):
                raise Wrong(f"<{node.tag}> has {ACTING.search(value)[0]!r} in {value[:200]!r}")
        if node.tag == "a" and not node.attrs.get("href", "").startswith("?"):
            raise Wrong(f"a link to {node.attrs.get('href')!r}")
    scripts = [(node.attrs, node.text()) for node in root.all("script")]
    if not part and scripts != [({"src": "app.js", "defer": ""}, "")]:
        raise Wrong(f"scripts {scripts}")
