# SPDX-License-Identifier: Apache-2.0
"""The page of `kubectl inspect gpushare web`: names of others in every field, whoever is on this machine asking
for it in other ways than a browser that was given its address does, and device plugins that lie. Read from
docs/cli.md ("The page"): it answers to loopback's names and to its token, to no page of others; it is UTF-8,
of the elements and attributes below and no others, whatever a cluster calls itself, and loads nothing but its own."""

import html.parser
import http.client
import json
import os
import re
import resource
import subprocess
import urllib.parse

import answers
from fake import HOST, MEMORY_MAX, Api, wait_for

PLAIN = {"html": "lang", "head": "", "meta": "charset name content http-equiv", "title": "", "link": "rel href",
         "script": "src defer", "body": "", "header": "", "h1": "", "h2": "", "h3": "", "p": "id class role", "pre": "", "code": "", "details": "", "summary": "", "ol": "", "li": "", "br": "",
         "noscript": "", "form": "method action role", "label": "class", "button": "type class",
         "input": "type name maxlength placeholder value", "select": "name", "option": "value selected",
         "main": "id data-sum", "section": "id class aria-label role", "div": "class title", "b": "", "span": "class", "small": "",
         "i": "class", "s": "class", "em": "class title", "table": "class", "thead": "",
         "tbody": "", "tr": "class", "th": "class", "td": "class", "article": "id", "nav": "id aria-label",
         "a": "href class aria-label"}
LOADED = {("link", "href"): {"icon.svg", "style.css"}, ("script", "src"): {"app.js"},
          ("form", "action"): {"./"}, ("meta", "http-equiv"): {"refresh"}, ("form", "method"): {"get"}}
HOSTS = ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.0.0.1:1", "evil.example", "127.0.0.1.evil.example",
         "localhost.evil.example", "", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]", "evil.example:8080", "localhostx"]
ORIGINS = [None, None, None, "http://{host}", "null", "http://evil.example", "https://{host}", "http://{host}/", "{host}"]
SITES = [None, None, None, "same-origin", "none", "cross-site", "same-site", "Same-Origin", ""]
PATHS = ["", "", "", "events", "style.css", "app.js", "icon.svg", "../", "..%2f", "style.css/", "events/x", "%00", "nothing"]
VIEWS = ["node", "namespace", "owner", "pod"]
REQUESTS = 60
SABOTAGE = ["an element of theirs", "an attribute of theirs", "no UTF-8", "everybody may look", "nobody may look",
            "a script of theirs"]


class Page(html.parser.HTMLParser):
    """What is there that must not be."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.fault = ""
        self.feed(text)
        self.close()

    def note(self, words):
        self.fault = self.fault or words

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name not in PLAIN.get(tag, "").split():
                self.note(f"<{tag} {name}={value!r}>")
            if (tag, name) in LOADED and value not in LOADED[tag, name] or \
                    tag == "a" and name == "href" and not (value or "").startswith("?"):
                self.note(f"<{tag}> has {name} {value!r}")
        if tag not in PLAIN:
            self.note(f"<{tag}>")

    def handle_comment(self, data):
        self.note(f"a comment {data!r}")

    def handle_pi(self, data):
        self.note(f"<?{data!r}")

    def unknown_decl(self, data):
        self.note(f"<![{data!r}")


class Web:
    """The built program beside an Api."""

    def __init__(self, build, api, *flags):
        self.log = open(os.path.join(api.folder, "web.log"), "wb")     # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [os.path.join(build, "kubectl-inspect-gpushare"), "web", "--kubeconfig", api.kubeconfig, *flags],
            stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX)),
            env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})
        said = self.process.stdout.readline().decode()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(.*)\n", said)
        if not found:
            self.process.wait(30)
            raise RuntimeError(f"said {said!r}")
        self.port, self.root = int(found[1]), "/" + found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.status = self.process.wait(60)
        self.process.stdout.close()
        self.log.close()

    def get(self, path, headers, method="GET"):
        """(status, headers, bytes); of a stream its beginning."""
        conn = http.client.HTTPConnection(HOST, self.port, timeout=30)
        try:
            conn.putrequest(method, path, skip_host=True)
            for name, value in headers.items():
                conn.putheader(name, value)
            conn.endheaders()
            answer = conn.getresponse()
            if (answer.getheader("Content-Type") or "").startswith("text/event-stream"):
                return answer.status, answer, b"".join(answer.readline() for _ in range(3))
            return answer.status, answer, answer.read()
        finally:
            conn.close()


def may_look(path, root, headers):
    """By the documents: loopback's own names, and no page of others."""
    name = headers["Host"].rsplit(":", 1)[0] if not headers["Host"].endswith("]") else headers["Host"]
    if name.lower() not in ("127.0.0.1", "localhost", "[::1]"):
        return False
    if headers.get("Origin") not in (None, f"http://{headers['Host']}"):
        return False
    return headers.get("Sec-Fetch-Site") in (None, "same-origin", "none") and path.startswith(root)


def named(objects, view):
    """What the cluster calls its own, as an address has it."""
    for item in objects:
        meta = item["metadata"]
        if (item["kind"] == "Node") == (view == "node") and isinstance(meta.get("name"), str):
            ns, owners = str(meta.get("namespace", "")), meta.get("ownerReferences") or [{}]
            yield {"node": meta["name"], "namespace": ns, "pod": f"{ns}/{meta['name']}",
                   "owner": f"{ns}/{owners[0].get('kind')}/{owners[0].get('name')}"}[view]


def request(cluster, rng, root):
    """(path, what it is of, headers)"""
    host = rng.choice(HOSTS[:4]) if rng.random() < 0.6 else rng.choice(HOSTS)
    headers = {"Host": host}
    for key, values in (("Origin", ORIGINS), ("Sec-Fetch-Site", SITES)):
        value = rng.choice(values) if rng.random() < 0.5 else None
        if value is not None:
            headers[key] = value.format(host=host)
    what, at = rng.choice(PATHS), root
    if rng.random() < 0.2 and len(root) > 1:
        at = rng.choice([root[:-2] + "/", "/", "/" + "0" * 32 + "/", root.upper(), "/" + root, root[:-1], root[1:].join("//")])
    query = {key: (cluster.word() * rng.choice([1, 1, 30]))[:300] for key in rng.sample(["q", "ns", "model", "sort", "page", "seen"], 2)}
    if rng.random() < 0.5:      # of one thing, that is there or not
        view = rng.choice(VIEWS)
        query |= {view: rng.choice([cluster.word(), *named(cluster.objects, view)]), **({"gpu": rng.choice(["0", "1", "x"])} if view == "node" else {})}
    if rng.random() < 0.2:
        query["page"] = rng.choice(["0", "1", "99999999999999999999", "-1", "4294967295", "100001", "1e3"])
    viewed = any(view in query for view in VIEWS)
    return at + what + "?" + urllib.parse.urlencode(query, errors="surrogatepass"), (at, what, viewed), headers


def judge_text(what, status, answer, text, named):
    if status in (400, 414):        # no HTTP, or too long to be read
        return ""
    if "default-src 'none'" not in (answer.getheader("Content-Security-Policy") or "") or \
            answer.getheader("X-Content-Type-Options") != "nosniff" or answer.getheader("Access-Control-Allow-Origin"):
        return f"{what}: headers {answer.getheaders()}"
    try:
        text = text.decode()
    except UnicodeDecodeError as why:
        return f"{what}: no UTF-8: {why}"
    if status != 200 and not (status == 404 and text.startswith("<!doctype")):
        return f"{what}: answered {status} {text[:200]!r}" if status not in (403, 404, 503) else ""
    if what == "events":
        for line in text.splitlines():
            if line.startswith("data: ") and line[6:] not in ("true", "false"):
                named = True
                text = json.loads(line[6:])
    if what in ("", "events") and named and (fault := Page(text).fault):
        return f"page: {fault}"
    return ""


def sabotaged(status, text, deed):
    if deed == "an element of theirs":
        text += b"<img alt=x>"
    elif deed == "an attribute of theirs":
        text += b"<i onclick=alert(1)>"
    elif deed == "a script of theirs":
        text += b"<script src=//evil.example></script>"
    elif deed == "no UTF-8":
        text += b"\xff"
    elif deed == "everybody may look":
        status = 200
    elif deed == "nobody may look":
        status = 403
    return status, text


def one_world(build, rng, wrong, deed):
    """(requests, pages)"""
    cluster, seen = answers.Cluster(rng), 0
    with Api(cluster.objects) as api:
        api.proxy = cluster.answer
        api.hidden = {"nodes"} if rng.random() < 0.3 else set()
        with Web(build, api, *(["--no-token"] if rng.random() < 0.3 else [])) as web:
            wait_for("the cluster is read", lambda: web.get(web.root, {"Host": "localhost"})[0] == 200)
            for _ in range(REQUESTS):
                path, (at, what, viewed), headers = request(cluster, rng, web.root)
                if api.hidden and what == "events":
                    continue
                status, answer, text = web.get(path, headers)
                if deed:
                    status, text = sabotaged(status, text, deed)
                may = may_look(path, web.root, headers)
                seen += status == 200
                fault = judge_text(what, status, answer, text, what == "")
                if status == 200 and not may:
                    fault = f"{path} with {headers} may not look, and does"
                elif status not in (200, 414, *((404,) if viewed else ())) and may and at == web.root and what in ("", "style.css", "app.js"):
                    fault = f"{path} with {headers} is answered {status}: {text[:200]}"
                if fault:
                    wrong(fault)
            status, _, _ = web.get(web.root, {"Host": "localhost"}, rng.choice(["POST", "PUT", "DELETE", "OPTIONS"]))
            if status < 400:
                wrong(f"a method that changes something is answered {status}")
    if web.status != 0:
        wrong(f"it ended with {web.status}")
    return REQUESTS, seen
