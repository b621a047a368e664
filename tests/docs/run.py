#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents say exists: every line of the doctor has its row in docs/troubleshooting.md and
every row is a line of the doctor; words that are quoted as ours are in the source; links lead
somewhere; commands name files that are there, and images of this version.

    tests/docs/run.py
"""

import glob
import os
import re
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
GAP = "…"

# Quoted in the table of symptoms, and not ours: Kubernetes says them, or the user's programs.
OTHERS = ("schedulerName", "Insufficient aliyun.com/gpu-mem", "UnexpectedAdmissionError",
          "CreateContainerConfigError", "nvidia-smi", "CUDA out of memory", "CrashLoopBackOff",
          "ContainerCreating", "Permission denied", "insufficient quota to match these scopes",
          'Post "http://127.0.0.1:29999/…": connection refused')


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as text:
        return text.read()


def sources(pattern):
    return "".join(read(name) for name in sorted(
        glob.glob(os.path.join(ROOT, pattern), recursive=True)))


# --- C ---

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def joined(text):
    """The string literals of some C, one after the other; inttypes.h's are conversions."""
    return "".join(LITERAL.findall(re.sub(r"\bPRI[a-z]\w+", '"u"', text)))


def arguments(text, start):
    """The arguments of the call whose parenthesis opens at start."""
    found, depth, quoted, at = [""], 0, False, start
    while True:
        char = text[at]
        if quoted and char == "\\":
            found[-1] += text[at:at + 2]
            at += 2
            continue
        quoted ^= char == '"'
        if not quoted and char in "()[]{}":
            depth += 1 if char in "([{" else -1
            if depth == 0:
                return [one.strip() for one in found]
        if not quoted and char == "," and depth == 1:
            found.append("")
        elif at > start:
            found[-1] += char
        at += 1


def doctor_lines(text):
    """(findings, topic, format) of each line that is a warning or a failure."""
    for call in re.finditer(r"\b(?:doctor_say|doctor_say_of|say_config)(\()", text):
        args = arguments(text, call.start(1))
        if call.group().startswith("say_config"):
            args.insert(2, '"scheduler config"')
        if len(args) < 4 or not LITERAL.fullmatch(args[2]):
            continue  # the definition, or one that passes on what it was given
        findings = {word for word in ("FAIL", "WARN") if f"FINDING_{word}" in args[1]}
        if args[1].endswith(".level"):
            findings = {"FAIL", "WARN"}
        if findings:
            yield findings, joined(args[2]), " ".join(joined(arg) for arg in args[3:])


def constant(form):
    """What of a format does not change."""
    return re.sub(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z]?", "\0", form)


# --- Markdown ---

def rows(text, heading):
    """First cells of the tables below a heading, up to the next heading of its level."""
    level = heading.split()[0]
    part = text.partition(f"\n{heading}\n")[2]
    part = re.split(rf"\n{level} ", part)[0]
    cells = re.findall(r"^\| (.*?) \|", part, re.M)
    return [cell for cell in cells if cell not in ("line", "symptom")]


def matches(quote, form):
    at = 0
    for fragment in quote.split(GAP):
        at = form.find(fragment.strip(), at)
        if at < 0:
            return False
        at += len(fragment.strip())
    return True


def doctor(_):
    page = read("docs/troubleshooting.md")
    lines = list(doctor_lines(sources("src/inspect/doctor*.c")))
    if len(lines) < 20:
        yield f"only {len(lines)} lines of the doctor were found in the source"
    covered = set()
    for topic in {topic for _, topic, _ in lines}:
        for cell in rows(page, f"### {topic}"):
            word, _, quote = cell.partition("`")
            if not quote:
                continue
            said = [number for number, (findings, its, form) in enumerate(lines)
                    if its == topic and any(one.lower() in word.lower() for one in findings)
                    and matches(quote.rstrip("`"), constant(form))]
            covered.update(said)
            if not said:
                yield f"docs/troubleshooting.md: the doctor never says: {cell}"
    for number, (findings, topic, form) in enumerate(lines):
        # what only passes on another's words has no row
        if number not in covered and len(re.findall(r"[a-z]{2,}", constant(form))) > 1:
            yield f"docs/troubleshooting.md has no row for {'/'.join(findings)} {topic}: {form}"


def symptoms(_):
    code = joined(sources("src/**/*.c")) + sources("src/**/*.h") + sources("include/**/*.h")
    for cell in rows(read("docs/troubleshooting.md"), "## From the symptom"):
        for quote in re.findall(r"`([^`]+)`", cell):
            if quote not in OTHERS and not matches(quote, code) and \
                    not os.path.exists(os.path.join(ROOT, quote)):
                yield f"docs/troubleshooting.md: nothing says '{quote}'"


def slug(heading):
    """A heading's anchor, as GitHub makes it."""
    plain = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def links(pages):
    for page in pages:
        text = re.sub(r"```.*?```", "", read(page), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
            if not os.path.exists(os.path.join(ROOT, path)):
                yield f"{page}: there is no {target}"
            elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", read(path), re.M)):
                yield f"{page}: {path} has no heading for #{anchor}"


def commands(pages):
    """Files of ours, in blocks of commands and in the text."""
    for page in pages:
        for path in re.findall(r"`((?:scripts|manifests|config|docs|share)/[\w./+-]+)", read(page)):
            if not os.path.exists(os.path.join(ROOT, path)):
                yield f"{page} names {path}, which is not there"
        for path in re.findall(r"`([a-z]+/[\w/]+\.[ch])`", read(page)):
            folder = path.partition("/")[0]
            if os.path.isdir(os.path.join(ROOT, "src", folder)) and \
                    not any(os.path.exists(os.path.join(ROOT, top, path))
                            for top in ("src", "include/gpushare")):
                yield f"{page} names {path}, which is in neither src nor include"
        for block in re.findall(r"```sh\n(.*?)```", read(page), re.S):
            for path in re.findall(r"(?<![\w/.-])((?:scripts|manifests|config|tests|docs)/[\w./+-]+)", block):
                if not os.path.exists(os.path.join(ROOT, path)):
                    yield f"{page}: a command names {path}, which is not there"


def security(_):
    """Whoever is said to be unable to do something is shown to be, by a case."""
    page = read("docs/security.md")
    table = page.partition("| who | cannot | because of | `scripts/e2e.sh --only` |\n")[2].split("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[1:]]
    if len(lines) < 10:
        yield "docs/security.md has no table of what nobody can do"
    for cells in lines:
        case, policy = cells[-1].strip("`"), cells[-2].strip("`")
        if not any(os.path.exists(os.path.join(ROOT, "tests/e2e", folder, f"{case}.py"))
                   for folder in ("cases", "deployed")):
            yield f"docs/security.md: there is no case {case}"
        elif policy.endswith(".yaml") and policy not in read("tests/e2e/cases", f"{case}.py"):
            yield f"docs/security.md: {case} does not apply {policy}"


def versions(pages):
    """An image or archive of ours is of this version, wherever it is named."""
    version = re.search(r"project\(gpushare VERSION ([0-9.]+)", read("CMakeLists.txt")).group(1)
    named = pages + [os.path.relpath(name, ROOT) for pattern in
                     ("images/Dockerfile.*", "manifests/**/*.yaml", "config/**/*.yaml")
                     for name in glob.glob(os.path.join(ROOT, pattern), recursive=True)]
    for name in sorted(named):
        for found in re.findall(r"gpushare-(?:extender|device-plugin)[:-]([0-9][0-9.]*[0-9])|"
                                r"image\.version=\"([0-9.]+)\"", read(name)):
            if "".join(found) != version:
                yield f"{name} names version {''.join(found)}, the project's is {version}"


def main():
    pages = ["README.md"] + sorted(os.path.relpath(page, ROOT) for page in
                                   glob.glob(os.path.join(ROOT, "docs/*.md")))
    checks = (doctor, symptoms, links, commands, versions, security)
    failures = [wrong for check in checks for wrong in check(pages)]
    for wrong in failures:
        print(f"FAIL {wrong}")
    print(f"{len(pages)} pages")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
