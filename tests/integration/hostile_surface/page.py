# SPDX-License-Identifier: Apache-2.0
"""The page of `kubectl inspect gpushare web`: names of others in every field, whoever is on this machine asking
for it in other ways than a browser that was given its address does, and device plugins that lie. Read from
docs/cli.md ("The page"): it answers to loopback's names and to its token, to no page of others; its
rows are JSON in UTF-8 in which no word steers a reader's screen, whatever a cluster calls itself."""

import http.client
import urllib.parse

import answers
import fake
import rows
from fake import HOST, Api, wait_for

HOSTS = ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.0.0.1:1", "evil.example", "127.0.0.1.evil.example",
         "localhost.evil.example", "", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]", "evil.example:8080", "localhostx"]
ORIGINS = [None, None, None, "http://{host}", "null", "http://evil.example", "https://{host}", "http://{host}/", "{host}"]
SITES = [None, None, None, "same-origin", "none", "cross-site", "same-site", "Same-Origin", ""]
PATHS = ["", "rows", "rows", "rows", "style.css", "app.js", "icon.svg", "../", "..%2f", "style.css/", "rows/x", "%00", "nothing"]
OWN = ["", "rows", "style.css", "app.js"]
VIEWS = ["node", "namespace", "owner", "pod"]
REQUESTS = 60
SABOTAGE = ["a word that steers", "no JSON", "no UTF-8", "everybody may look", "nobody may look"]

class Web(fake.Web):
    def get(self, path, headers, method="GET"):
        """(status, headers, bytes)"""
        conn = http.client.HTTPConnection(HOST, self.port, timeout=30)
        try:
            conn.putrequest(method, path, skip_host=True)
            for name, value in headers.items():
                conn.putheader(name, value)
            conn.endheaders()
            answer = conn.getresponse()
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
    return at + what + "?" + urllib.parse.urlencode(query, errors="surrogatepass"), (at, what), headers


def judge_text(what, status, answer, text):
    if status in (400, 414):        # no HTTP, or too long to be read
        return ""
    if "default-src 'none'" not in (answer.getheader("Content-Security-Policy") or "") or \
            answer.getheader("X-Content-Type-Options") != "nosniff" or answer.getheader("Access-Control-Allow-Origin"):
        return f"{what}: headers {answer.getheaders()}"
    if status != 200:
        return f"{what}: answered {status} {text[:200]!r}" if status not in (403, 404, 503) else ""
    if what == "rows":
        try:
            rows.parse(what, text.replace("\ufffd".encode(), b""))
        except rows.Wrong as why:
            return str(why)
    return ""


def sabotaged(status, text, deed):
    if deed == "a word that steers":
        text = text.replace(b'"version"', '"\u202eversion"'.encode())
    elif deed == "no JSON":
        text = text.replace(b'"version"', b'"version')
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
            wait_for("the cluster is read", lambda: web.get(web.root + "rows", {"Host": "localhost"})[0] == 200)
            for _ in range(REQUESTS):
                path, (at, what), headers = request(cluster, rng, web.root)
                status, answer, text = web.get(path, headers)
                if deed:
                    status, text = sabotaged(status, text, deed)
                may = may_look(path, web.root, headers)
                seen += status == 200
                fault = judge_text(what, status, answer, text)
                if status == 200 and not may:
                    fault = f"{path} with {headers} may not look, and does"
                elif status not in (200, 414) and may and at == web.root and what in OWN:
                    fault = f"{path} with {headers} is answered {status}: {text[:200]}"
                if fault:
                    wrong(fault)
            status, _, _ = web.get(web.root, {"Host": "localhost"}, rng.choice(["POST", "PUT", "DELETE", "OPTIONS"]))
            if status < 400:
                wrong(f"a method that changes something is answered {status}")
    if web.status != 0:
        wrong(f"it ended with {web.status}")
    return REQUESTS, seen
