# SPDX-License-Identifier: Apache-2.0
"""Attacks accounts and files: random kubeconfigs, kubectls, API servers and signals, each run compared with what kubectl does.

A world is one drawn situation on loopback, with API servers that write down who asks (certificate, token, impersonation, path). The same seed
draws the same worlds. $KUBECTL names the kubectl to compare with. One line per finding, one line of counts, exit 1 if anything was wrong.
"""
import argparse, base64, contextlib, http.server, json, os, random, re, shutil, signal, socketserver, ssl, subprocess, sys, tempfile, threading, time
from pathlib import Path

RUNS, WRONG, KUBECTL = [0], [0], os.environ.get("KUBECTL", "")
TMP = Path(tempfile.mkdtemp(prefix="account-attack."))
def wrong(bad, world, what, **more):
    if bad:
        WRONG[0] += 1
        print((f"WRONG {world}: {what} " + " ".join(f"{k}={v!r}" for k, v in more.items()))[:1500], flush=True)
def certificates():
    """Two authorities, a server, two people, and alice's key in every dress that openssl knows."""
    openssl = lambda words: subprocess.run(["openssl", *words.split()], check=True, capture_output=True, cwd=TMP)
    for ca in ("ca", "ca2"):
        openssl(f"req -x509 -newkey rsa:2048 -nodes -keyout {ca}.key -out {ca}.crt -subj /CN={ca} -days 9")
    for name, san in (("server", "DNS:localhost,DNS:api.example,IP:127.0.0.1"), ("alice", "DNS:alice"), ("bob", "DNS:bob")):
        openssl(f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}")
        (TMP / "ext").write_text(f"subjectAltName={san}\n")
        openssl(f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -out {name}.crt -days 9 -extfile ext")
    for out, words in (("pkcs1", "-traditional"), ("old", "-traditional -aes128 -passout pass:secret")):
        openssl(f"rsa -in alice.key -out alice-{out}.key {words}")
    for out, words in (("aes", "-v2 aes-256-cbc -passout pass:secret"), ("des3", "-v2 des3 -passout pass:secret"), ("empty", "-v2 aes128 -passout pass:")):
        openssl(f"pkcs8 -topk8 -in alice.key -out alice-{out}.key {words}")
def objects(kind):
    gpus = {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2", "cpu": "64", "memory": "99Gi", "pods": "110"}
    nodes = [{"metadata": {"name": f"n{i}", "uid": f"u{i}", "labels": {"gpushare": "true"}, "resourceVersion": "5"}, "spec": {}, "status": {"capacity": gpus, "allocatable": gpus,
              "conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": f"10.0.0.{i}"}]}} for i in range(2)]
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": nodes if kind == "NodeList" else []}
class Api(http.server.BaseHTTPRequestHandler):
    """An API server with two nodes that writes down who asks; the server's `plan` makes it misbehave."""
    protocol_version, log_message = "HTTP/1.1", lambda *_: None
    def do_GET(self):
        with contextlib.suppress(OSError, ValueError):
            cert = isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert() or None
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            m = re.match(r"(.*?)((?:/version|/api|/apis)(?:/.*)?)$", path)
            self.server.seen.append((tuple(sorted((k.lower(), v) for k, v in self.headers.items() if re.match("authorization|impersonate", k, re.I))),
                                     cert and dict(x[0] for x in cert["subject"])["commonName"], getattr(self.connection, "seen_name", None), m.group(1) if m else path))
            what = {"/version": {"major": "1", "minor": "30", "gitVersion": "v1.30.0"}, "/api/v1/nodes": objects("NodeList"), "/api/v1/pods": objects("PodList")}
            if self.server.plan:
                self.server.plan(self, path)
            elif "watch=" in self.path:
                time.sleep(1)
                self.close_connection = True
            else:
                tail = m.group(2) if m else path
                self.answer(200 if tail in what else 404, what.get(tail, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "path not found", "code": 404}))
    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET
    def answer(self, code, body, kind="application/json", **head):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for k, v in {"Content-Type": kind, "Content-Length": len(body), **head}.items():
            self.send_header(k, str(v))
        self.end_headers()
        self.wfile.write(body)
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, request_queue_size = True, 64
    def __init__(self, tls=True):
        super().__init__(("127.0.0.1", 0), Api)
        self.seen, self.plan, self.ctx = [], None, tls and ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if tls:
            self.ctx.load_cert_chain(TMP / "server.crt", TMP / "server.key")
            self.ctx.load_verify_locations(TMP / "ca.crt")
            self.ctx.verify_mode, self.ctx.sni_callback = ssl.CERT_OPTIONAL, lambda sock, name, _: setattr(sock, "seen_name", name)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()
    def finish_request(self, request, address):
        with contextlib.suppress(OSError):
            request.settimeout(30)
            Api(self.ctx.wrap_socket(request, server_side=True) if self.ctx else request, address, self)
def start(words, env):
    RUNS[0] += 1
    return subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=TMP, start_new_session=True)
def run(words, env, limit=20):
    """Runs to the end: exit code (None: had to be killed) and both streams."""
    p, code = start(words, env), 0
    try:
        out, err = p.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        (out, err), code = p.communicate(), None
    return code if code is None else p.returncode, out.decode(errors="replace"), err.decode(errors="replace")
def left(o):
    """What a run left behind: folders for sockets, and processes that have our mark in their environment."""
    found = [f.name for f in o.tmp.iterdir() if f.name.startswith("kubectl-inspect-gpushare")]
    for p in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if p.isdigit() and int(p) != os.getpid() and not Path(f"/proc/{p}/cmdline").read_bytes().startswith(b"sleep\x001\0") and o.mark.encode() in Path(f"/proc/{p}/environ").read_bytes():
                found.append((int(p), Path(f"/proc/{p}/cmdline").read_bytes().replace(b"\0", b" ")[:60].decode(errors="replace")))
    return found
def kill(pids, sig=signal.SIGKILL):
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, sig)
def sweep(o):
    kill(f[0] for f in left(o) if isinstance(f, tuple))
    [shutil.rmtree(o.tmp / f, ignore_errors=True) for f in left(o) if isinstance(f, str)]
def seen(*servers):
    out = {(i, *x) for i, s in enumerate(servers) for x in s.seen}
    [s.seen.clear() for s in servers]
    return out
raw = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b]").search
one_line = lambda err: err.count("\n") == 1 and err.endswith("\n") and not raw(err)
def config(url):
    """Alice's."""
    alice = {f"client-{what}": str(TMP / f"alice.{end}") for what, end in (("certificate", "crt"), ("key", "key"))}
    (TMP / "kc").write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "u", "user": alice}],
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": str(TMP / "ca.crt")}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}))
    return TMP / "kc"
REFUSED = ("exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra", "username", "password", "proxy-url", "impersonate-user", "<<")
def scalar(rng, v):
    """One YAML spelling of a string, of those that mean the same to kubectl."""
    plain = re.fullmatch(r"[a-z/][a-z0-9./:_-]*", v) and v not in ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
    return rng.choice([json.dumps(v), "'" + v.replace("'", "''") + "'", f"!!str {json.dumps(v)}", f"&a{rng.randrange(10**6)} {json.dumps(v)}"]
                      + [v] * (3 * (v == "nULL") or bool(plain)) + [f"!!str {v}"] * 3 * (v in ("~", "null", "nULL"))
                      + ["!!binary " + base64.b64encode(v.encode()).decode()] * (rng.random() < .4 and v.isascii()))
def block(rng, pairs):
    out = []
    for k, v in pairs:
        key = rng.choice([k, json.dumps(k), json.dumps(k).replace(k[0], "\\u%04x" % ord(k[0]), 1), f"!!str {k}", f"? {k}\n      "])
        out.append(rng.choice(["<<: {as: evil}", "<<: *base", "<<: [*base]", "!!merge <<: *base"]) if k == "<<" else
                   f"{key}: " + (scalar(rng, v) if isinstance(v, str) else json.dumps(v)))
    rng.shuffle(out)
    return "".join(f"\n      {x}" for x in out) or " {}"
def kubeconfig(rng, a):
    """A kubeconfig as text, the words in it that must be refused, and the trick that was played with its text."""
    b64 = lambda name: base64.b64encode((TMP / name).read_bytes()).decode()
    where = {"cluster": [("server", rng.choice([a.url, a.url, a.url + "/p/q", a.url + "/", f"https://localhost:{a.server_port}"])), rng.choice(
        [("certificate-authority", rng.choice([str(TMP / "ca.crt"), "ca.crt", "./ca.crt"])), ("certificate-authority-data", b64(rng.choice(["ca.crt", "ca.crt", "ca2.crt"]))),
         ("insecure-skip-tls-verify", rng.random() < .8)])], "user": []}
    if rng.random() < .2:
        where["cluster"].append(("tls-server-name", rng.choice(["api.example", "localhost", "wrong.example", ""])))
    user, words = {}, []
    for _ in range(rng.choice([1, 1, 1, 2])):
        user.update(rng.choice([{"token": "tok1"}, {"token": rng.choice(["yes", "0x10", "null", "nULL", "~", "a b", "", "é"])}, {"tokenFile": "tokenfile"},
            {"tokenFile": str(TMP / rng.choice(["tokenfile", "empty", "spaces", "missing", "big", "link"]))}, {"client-certificate-data": b64("bob.crt"), "client-key-data": b64("bob.key")},
            {"client-certificate": "alice.crt", "client-key": rng.choice(["alice", "alice", "alice-pkcs1", "alice-old", "alice-des3", "bob", "alice-aes", "alice-empty"]) + ".key"}]))
    where["user"] = list(user.items())
    if rng.random() < .5:
        words.append(rng.choice(REFUSED))
        where["cluster" if words == ["proxy-url"] else "user"].append((words[0], {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "true", "interactiveMode": "Never"},
            "auth-provider": {"name": "x"}, "as-groups": ["g"], "as-user-extra": {"k": ["v"]}, "proxy-url": "http://127.0.0.1:9"}.get(words[0], rng.choice(["v", "null", "nULL", "", "~"]))))
    parts = ["apiVersion: v1\n", "kind: Config\n", "current-context: x\n", f"clusters:\n  - name: c\n    cluster:{block(rng, where['cluster'])}\n",
             f"users:\n  - name: u\n    user:{block(rng, where['user'])}\n", "contexts:\n  - {name: x, context: {cluster: c, user: u}}\n"]
    trick = rng.choice(["none"] * 6 + ["twice", "user2", "docs", "tab", "nul", "bom", "crlf", "utf16", "dupkey", "cut", "comment", "deep"])
    parts[4] += {"user2": "  - name: u\n    user: {token: second}\n", "dupkey": "      token: second\n"}.get(trick, "")
    parts += ["users:\n  - name: u\n    user: {token: second}\n"] * (trick == "twice")
    rng.shuffle(parts)
    text = "base: &base {as: evil}\n" * ("*base" in "".join(parts)) + "".join(parts)
    text = {"docs": text + "---\nusers: [{name: u, user: {token: second}}]\n", "tab": text.replace("\n      ", "\n\t", 1), "nul": text[:99] + "\0" + text[99:], "crlf": text.replace("\n", "\r\n"),
            "cut": text[:rng.randrange(len(text))], "comment": "# \x1b[31m\n" + text, "deep": text + "x: " + "[" * 5000 + "]" * 5000 + "\n"}.get(trick, text)
    return {"bom": b"\xef\xbb\xbf" + text.encode(), "utf16": text.encode("utf-16")}.get(trick, text.encode()), words, trick
def world_kubeconfig(rng, o, n):
    """Extender and device plugin read one kubeconfig: the same account as kubectl, or exit 1 with one sentence that names the word."""
    a, f = o.server, TMP / "kc.yaml"
    text, words, trick = kubeconfig(rng, a)
    f.write_bytes(text)
    want = run([KUBECTL, "--kubeconfig", f, "get", "--raw", "/version", "--request-timeout=9s"], o.env)
    ids, end = {x[:4] + (x[4] if not o.old else "",) for x in seen(a) if not want[0]}, time.time() + (2 if want[0] else 8)
    prog = rng.choice([["gpushare-extender", "--listen=127.0.0.1:0"], ["gpushare-device-plugin", "--fake-gpus=1x1GiB", "--node-name=n0", f"--device-plugin-dir={o.tmp}"]])
    p = start([o.build / prog[0], *prog[1:], "--kubeconfig", f], o.env)
    while p.poll() is None and not a.seen and time.time() < end:
        time.sleep(.02)
    code, _ = p.poll(), p.kill()
    err = p.communicate()[1].decode(errors="replace")
    ours, errors = {x[:4] + (x[4] if not o.old else "",) for x in seen(a)}, [x for x in err.splitlines() if "level=error" in x]
    facts = dict(program=prog[0], trick=trick, words=words, code=code, err=err[-300:], ours=ours, kubectl=ids, kubectl_err=want[2][:100], text=text[:900])
    plain = words and trick == "none"
    wrong(code is not None and (code != 1 or len(errors) != 1 or raw(err)), n, "neither runs nor ends with 1 and one sentence", **facts)
    wrong(plain and ours and ids != ours, n, "passes over a word", **facts)
    wrong(plain and errors and not want[0] and not re.search("encrypt|token|merge|YAML tags|" + words[0], errors[0]), n, "does not name the word", **facts)
    wrong(ids and ours and ids != ours or ours and not ids and "second" in str(ours), n, "another account than kubectl's", **facts)
    wrong(ids and code is None and not ours, n, "neither asks nor ends", **facts)
FAKES = {"real": 'exec "$K" "$@"', "late": 'sleep 1; exec "$K" "$@"', "forks": '"$K" "$@"', "mute": "exec sleep 99", "stubborn": "trap '' TERM INT HUP; while :; do sleep 1; done",
    "ignores": "trap '' TERM; \"$K\" \"$@\"", "yes": "exec yes", "no": "exit 0", "fails": "printf 'error: \\033[31mred\\033]0;t\\007 \\n two\\n' >&2; exit 3",
    "loud": 'head -c 300000 /dev/zero | tr "\\0" x >&2; exec "$K" "$@"', "chatty": 'head -c 300000 /dev/zero | tr "\\0" x; exec "$K" "$@"',
    "lies": 'case $1 in proxy) echo "Starting to serve on /x/api"; exec sleep 99;; *) exec "$K" "$@";; esac',
    "blind": 'case $1 in config) exit 1;; *) exec "$K" "$@";; esac', "stuck": 'case $1 in config) exec sleep 99;; *) exec "$K" "$@";; esac'}
def world_kubectl(rng, o, n):
    """A kubectl and an API server that misbehave, and signals at any moment: an end in time, one sentence, nothing left behind."""
    a, name, prefix, fake = o.server, rng.choice(list(FAKES)), rng.choice(["", "/k8s/clusters/7"]), TMP / "fake-kubectl"
    cfg = config(a.url + prefix)
    fake.write_text("#!/bin/sh\n" + FAKES[name] + "\n")
    fake.chmod(0o755)
    sig, whom = rng.choice([None] * 3 + [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]), rng.choice(["cli", "kubectl", "both"])
    status = lambda code, words: lambda r, _: r.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": words, "code": code})
    how, a.plan = rng.choice([("well", None)] * 5 + [("401", status(401, "Unauthorized")), ("403", status(403, "no \x1b[31m\n")), ("500", status(500, "down\n\x1b]0;t\x07")),
        ("plain", lambda r, _: r.answer(500, b"\x1b[31mplain\nx", "text/plain")), ("late", lambda r, _: time.sleep(7)), ("garbage", lambda r, _: r.answer(200, b"\xff\0" * 99)),
        ("cut", lambda r, _: r.answer(200, b'{"kind":')), ("deep", lambda r, _: r.answer(200, b"[" * 99999)), ("away", lambda r, _: r.answer(302, b"", Location=o.plain.url))])
    words = rng.choice([[], ["map"], ["why"], ["-o", "json"], ["snapshot", TMP / "snap.out"]])
    facts = dict(kubectl=name, api=how, words=words, signal=sig and sig.name, whom=sig and whom)
    p = start([o.cli, "--kubeconfig", cfg, "--request-timeout=2s", *words], dict(o.env, KUBECTL=str(fake), K=KUBECTL))
    if sig:
        time.sleep(rng.choice([.02, .3, 1.5]) * rng.random())
        kill([x[0] for x in left(o) if isinstance(x, tuple) and (whom == "both" or (x[0] == p.pid) == (whom == "cli"))], sig)
    try:
        err = p.communicate(timeout=12)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        a.plan = (wrong(True, n, "hangs", **facts), sweep(o))[1]
        return p.communicate()
    code, asked, a.plan = p.returncode, seen(a), None
    wrong(code not in ((0, 1) if not sig or whom == "kubectl" else (0, 1, -sig)) or code == 1 and not one_line(err) or raw(err), n, "wrong end", code=code, err=err[:300], **facts)
    wrong(any(x[4] != prefix for x in asked) or seen(o.plain), n, "asks at another address than the kubeconfig's", asked=asked, prefix=prefix, **facts)
    time.sleep(.3)
    bad = [x for x in left(o) if isinstance(x, tuple)]
    run([o.cli, "--kubeconfig", cfg], o.env)  # the next start clears folders away
    wrong(bad or left(o), n, "left behind", left=bad + left(o), **facts)
    sweep(o)
def main():
    ap = argparse.ArgumentParser()
    [ap.add_argument(f"--{n}", type=kind, default=value, required=n == "build") for n, kind, value in (("build", Path, None), ("seed", int, 1), ("worlds", int, 60), ("only", str, ""))]
    o = ap.parse_args()
    os.access(KUBECTL, os.X_OK) or sys.exit("KUBECTL must name a kubectl")
    certificates()
    o.mark, o.tmp, o.build = f"ACCOUNT_ATTACK_{os.getpid()}", TMP / "run", o.build.resolve()
    o.cli, o.server, o.plain = o.build / "kubectl-inspect-gpushare", Server(), Server(tls=False)
    o.env, _ = {**{k: v for k, v in os.environ.items() if not re.match("KUBE|XDG|.*_(proxy|PROXY)|NO_COLOR|PORT$|LOG_LEVEL", k)}, "KUBECTL": KUBECTL, "HOME": str(o.tmp), "TMPDIR": str(o.tmp), o.mark: "1"}, o.tmp.mkdir()
    o.old = "as-uid" not in run([KUBECTL, "options"], o.env)[1]
    [(TMP / name).write_text(text) for name, text in (("empty", ""), ("spaces", " \n"), ("big", "x" * 3000000), ("tokenfile", "filed\n"))]
    (TMP / "link").symlink_to("tokenfile")
    kinds = [k for k in (world_kubeconfig, world_kubectl) if o.only in k.__name__]
    try:
        for w in range(o.worlds):
            time.sleep(.1) or seen(o.server, o.plain)  # what comes late belongs to the world before
            kinds[w % len(kinds)](random.Random(f"{o.seed}/{w}"), o, f"{kinds[w % len(kinds)].__name__[6:]}/{o.seed}/{w}")
    finally:
        sweep(o)
        shutil.rmtree(TMP, ignore_errors=True)
    print(f"{o.worlds} worlds, {RUNS[0]} runs, {WRONG[0]} wrong")
    sys.exit(1 if WRONG[0] else 0)
if __name__ == "__main__":
    main()
