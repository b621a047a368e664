# SPDX-License-Identifier: Apache-2.0
"""The CLI reaches its API server through `kubectl proxy`: accounts, sign-ins, failures, and how both end.

  run.py --build DIR      kubectl of $KUBECTL. A vendor's wrapper that asks the server for its release first runs a credential plugin
                          once more, and fails here

The API server is gpushare-sim behind a front that keeps the headers of each request and may want a token.
"""
import argparse
import fcntl
import glob
import http.server
import json
import os
import pty
import signal
import ssl
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.error
import urllib.request

KUBECTL = os.environ["KUBECTL"]


class Front(http.server.BaseHTTPRequestHandler):
    """The API server below /prefix."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        front = self.server
        front.seen.append((self.path, self.headers))
        if not self.path.startswith(front.prefix) or front.answer:
            return self.reply(*(front.answer or (404, b"not below the prefix")))
        if front.token and self.headers.get("Authorization") != f"Bearer {front.token}":
            return self.reply(401, json.dumps({"kind": "Status", "status": "Failure", "code": 401, "reason": "Unauthorized",
                                               "message": "who are you"}).encode())
        try:
            with urllib.request.urlopen(front.api + self.path[len(front.prefix):], timeout=60) as answer:
                if "watch=" not in self.path:
                    return self.reply(200, answer.read())
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in answer:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                return self.wfile.write(b"0\r\n\r\n")
        except urllib.error.HTTPError as error:
            return self.reply(error.code, error.read())
        except OSError:
            return None

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body[:1] == b"{" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return self.wfile.write(body)

    def log_message(self, *words):
        pass


class World:
    def __init__(self, build, folder):
        self.program, self.folder = os.path.join(build, "kubectl-inspect-gpushare"), folder
        plain = os.path.join(folder, "plain")
        self.sim = subprocess.Popen([os.path.join(build, "tests", "synthetic-api"), "nodes=20,gpus=8,mem=16,pods=1200,pod_mem=2",
                                     "--listen", "127.0.0.1:0", "--kubeconfig-out", plain],
                                    stderr=subprocess.DEVNULL)
        until(lambda: os.path.exists(plain) and os.path.getsize(plain))
        with open(plain, encoding="utf-8") as file:
            self.api = [line.split()[1] for line in file if "server:" in line][0]
        self.front = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
        self.front.daemon_threads, self.front.api = True, self.api
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3",
                        "-subj", "/CN=front", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key", "-out",
                        f"{folder}/crt"], check=True, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) # kubectl asks a plugin for no other server
        context.load_cert_chain(f"{folder}/crt", f"{folder}/key")
        self.front.socket = context.wrap_socket(self.front.socket, server_side=True, do_handshake_on_connect=False)
        self.reset()
        threading.Thread(target=self.front.serve_forever, daemon=True).start()
        os.mkdir(os.path.join(folder, "run"))
        self.env = {"HOME": folder, "PATH": os.environ["PATH"], "KUBECTL": KUBECTL, "XDG_RUNTIME_DIR": os.path.join(folder, "run")}

    def reset(self):
        self.front.seen, self.front.token, self.front.prefix, self.front.answer = [], None, "", None

    def kubeconfig(self, user, prefix="", server=None):
        path = os.path.join(self.folder, "kubeconfig")
        server = server or f"https://127.0.0.1:{self.front.server_port}{prefix}"
        context = {"cluster": "c", "user": "u", "namespace": "team-00"}
        other = {**context, "namespace": "team-01"}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "u", "user": user}],
                       "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": f"{self.folder}/crt"}}],
                       "contexts": [{"name": "x", "context": context}, {"name": "y", "context": other}]}, file)
        return path

    def run(self, *words, env=None):
        done = subprocess.run([self.program, *words], env={**self.env, **(env or {})}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def left(self):
        """Folders of sockets, and proxies that serve one of them."""
        folders = glob.glob(os.path.join(self.folder, "run", "kubectl-inspect-gpushare.*"))
        proxies = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    if f"--unix-socket={self.folder}/run/".encode() in file.read():
                        proxies.append(int(path.split("/")[2]))
            except OSError:
                pass
        return folders, proxies

    def plugin(self, body):
        """A credential plugin that counts its runs."""
        path = os.path.join(self.folder, "plugin")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho run >> {self.folder}/runs\n{body}\ncat <<END\n" + json.dumps({
                "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "secret"}}) + "\nEND\n")
        os.chmod(path, 0o700)
        if os.path.exists(f"{self.folder}/runs"):
            os.unlink(f"{self.folder}/runs")
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": path, "interactiveMode": "IfAvailable"}}

    def runs(self):
        with open(f"{self.folder}/runs", encoding="utf-8") as file:
            return len(file.readlines())


def until(what, seconds=30):
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)


def equal(seen, wanted, what=""):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r}, not {wanted!r}")


def holds(text, part):
    if part not in text:
        raise AssertionError(f"{part!r} is not in {text!r}")


def the_same_table_as_without_kubectl(world):
    direct = world.run("--server", world.api)
    equal(direct[0], 0, direct[2])
    equal(world.run("--kubeconfig", world.kubeconfig({"token": "t"})), direct, "the table")
    equal(world.run(env={"KUBECONFIG": "/nowhere:" + world.kubeconfig({"token": "t"})}), direct, "the table, by $KUBECONFIG")
    equal(world.left(), ([], []), "what is left")


def clusters_and_users_of_flags_count(world):
    """The path, the account and the sign-in are of what the flags name, whatever the context says, and without one."""
    world.front.prefix, world.front.token = "/k8s/b", "secret"
    path = world.kubeconfig({"token": "wrong"}, "/k8s/a")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    other = json.loads(json.dumps(config["clusters"][0]).replace("/k8s/a", "/k8s/b"))
    config["clusters"].append({**other, "name": "b"})
    config["users"].append({"name": "v", "user": {"token": "secret"}})
    for current in ("x", ""):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**config, "current-context": current}, file)
        world.front.seen.clear()
        code, _, err = world.run("--kubeconfig", path, "--cluster", "b", "--user", "v")
        equal((code, err), (0, ""), current)
        equal({seen.startswith("/k8s/b/") for seen, _ in world.front.seen}, {True}, "paths")


def kubectls_that_are_none(world):
    """Each: a sentence, in time, and nothing is left."""
    for body, words in {"sleep 60": "timed out while starting", "yes": "too much output", "echo hello": "", "exit 3": "without a message",
                        "head -c 70000 /dev/zero >&2; exit 1": "", "trap '' TERM; sleep 60": "timed out while starting",
                        f'trap "" TERM; {KUBECTL} "$@"': None, f'{KUBECTL} "$@"': None}.items():
        path = os.path.join(world.folder, "kubectl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{body}\n")
        os.chmod(path, 0o700)
        begun = time.monotonic()
        code, _, err = world.run("--kubeconfig", world.kubeconfig({"token": "t"}), "--request-timeout=3s", env={"KUBECTL": path})
        equal(code, 0 if words is None else 1, body)
        holds(err, words or "")
        if time.monotonic() - begun > 15:
            raise AssertionError(f"{body}: {time.monotonic() - begun:.0f} s")
        until(lambda: world.left() == ([], []), 5)


def kubectl_may_die_under_the_page(world):
    with subprocess.Popen([world.program, "web", "--kubeconfig", world.kubeconfig({"token": "t"})], env=world.env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        holds(process.stdout.readline(), b"http://")
        os.kill(world.left()[1][0], signal.SIGKILL)
        holds(process.communicate(timeout=20)[1], b"kubectl: it has exited")
        equal(process.returncode, 1)


def the_namespace_is_the_contexts(world):
    code, out, err = world.run("why", "gpu-000000", "--kubeconfig", world.kubeconfig({"token": "t"}))
    equal((code, err), (0, ""))
    holds(out, "team-00/gpu-000000")
    holds(world.run("why", "gpu-000000", "--kubeconfig", world.kubeconfig({"token": "t"}), "--context", "y")[2], "namespace team-01")


def a_pods_account_counts_without_a_kubeconfig(world):
    pod, path = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}, world.kubeconfig({"token": "t"})
    holds(world.run(env=pod)[2], "serviceaccount")
    equal(world.run("--kubeconfig", path, env=pod)[0], 0, "an option")
    equal(world.run(env={**pod, "KUBECONFIG": path})[0], 0, "$KUBECONFIG")
    os.renames(path, world.folder + "/.kube/config")
    equal(world.run(env=pod)[0], 0, "the usual file")


def kubectls_flags_count(world):
    path = world.kubeconfig({"token": "t"})
    code, _, err = world.run("--kubeconfig", path, "--as", "anna", "--as-group", "a", "--as-group=b", "--user", "u",
                             "--cluster", "c", "--context", "x")
    equal((code, err), (0, ""))
    for _, heads in world.front.seen:
        equal([heads.get_all("Impersonate-" + what) for what in ("User", "Group")], [["anna"], ["a", "b"]], "who asks")
    code, _, err = world.run("--kubeconfig", path, *["--as-group=x"] * 6)
    equal(code, 2, "too many groups")
    world.front.seen.clear()
    path = world.kubeconfig({"token": "t", "as": "otto"})
    equal(world.run("--kubeconfig", path)[0], 0)
    equal({heads.get("Impersonate-User") for _, heads in world.front.seen}, {"otto"}, "who asks, by the kubeconfig")


def what_kubectl_refuses_is_its_sentence(world):
    path = world.kubeconfig({"token": "t"})
    code, out, err = world.run("--kubeconfig", path, "--context", "nope")
    equal((code, out), (1, ""))
    holds(err, "kubectl-inspect-gpushare: kubectl: context \"nope\" does not exist")
    equal(err.count("\n"), 1, "lines")
    code, out, err = world.run("--kubeconfig", world.kubeconfig({"token": "t"}, server="https://127.0.0.1:1"))
    equal((code, out), (1, ""))
    holds(err, "kubectl-inspect-gpushare: kubectl: ")
    holds(err, "connection refused")
    equal(err.count("connection refused"), 1, "once")
    code, out, err = world.run("--kubeconfig", path, env={"KUBECTL": "/nowhere/kubectl"})
    equal((code, out), (1, ""))
    equal(err, "kubectl-inspect-gpushare: kubectl: /nowhere/kubectl not found: install it, set $KUBECTL, or read a file with "
               "--from-file\n", "without kubectl")
    equal(world.left(), ([], []), "what is left")


def what_the_server_refuses_is_its_sentence(world):
    world.front.answer = 403, json.dumps({"kind": "Status", "status": "Failure", "code": 403, "message": "not you"}).encode()
    code, out, err = world.run("-o", "json", "--kubeconfig", world.kubeconfig({"token": "t"}))
    equal((code, out), (1, ""))
    holds(err, "not you")
    world.front.answer = 500, json.dumps({"kind": "Status", "status": "Failure", "code": 500, "message": "etcd is away"}).encode()
    code, out, err = world.run("-o", "json", "--kubeconfig", world.kubeconfig({"token": "t"}))
    equal((code, out), (1, ""))
    holds(err, "etcd is away")
    if "kubectl: " in err:
        raise AssertionError(f"the server's words as kubectl's: {err}")


def a_plugin_runs_once(world):
    world.front.token = "secret"
    path = world.kubeconfig(world.plugin(""))
    code, _, err = world.run("--kubeconfig", path)
    equal((code, err), (0, ""))
    equal(world.runs(), 1, "sign-ins")
    if len(world.front.seen) < 4:
        raise AssertionError("the lists have one page: nothing is shown")


def a_plugin_that_fails_runs_once(world):
    path = world.kubeconfig(world.plugin("echo no card >&2; exit 3"))
    code, out, err = world.run("--kubeconfig", path)
    equal((code, out), (1, ""))
    holds(err, "no card")
    holds(err, "kubectl-inspect-gpushare: kubectl: getting credentials")
    equal(world.runs(), 1, "sign-ins")


def on_terminal(world, *words):
    """(process, its terminal)"""
    mine, other = pty.openpty()
    process = subprocess.Popen([world.program, *words], env={**world.env, "TERM": "dumb"}, stdin=other, stdout=other, stderr=other,
                               start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(other)
    return process, mine


def read_until(terminal, part, seconds=60):
    text, deadline = b"", time.monotonic() + seconds
    while part not in text:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{part!r} is not in {text!r}")
        try:
            text += os.read(terminal, 65536)
        except OSError:
            break
    holds(text, part)


def a_plugin_may_ask_on_the_terminal(world):
    world.front.token = "secret"
    path = world.kubeconfig(world.plugin("printf 'code: ' >&2; read -r code; [ \"$code\" = 42 ] || exit 1"))
    process, terminal = on_terminal(world, "--kubeconfig", path, "--request-timeout", "5s")
    read_until(terminal, b"code: ")
    time.sleep(6) # longer than a request may take
    os.write(terminal, b"42\n")
    read_until(terminal, b"node-00001")
    equal(process.wait(60), 0)
    os.close(terminal)
    equal(world.runs(), 1, "sign-ins")


def kubectl_may_ask_itself(world):
    process, terminal = on_terminal(world, "--kubeconfig", world.kubeconfig({})) # without credentials
    read_until(terminal, b"Username")
    os.write(terminal, b"\x03")
    process.wait(20)
    os.close(terminal)


def interrupted_both_end(world):
    process, terminal = on_terminal(world, "web", "--kubeconfig", world.kubeconfig({"token": "t"}))
    read_until(terminal, b"http://")
    equal(len(world.left()[1]), 1, "proxies")
    os.write(terminal, b"\x03")
    process.wait(20)
    os.close(terminal)
    until(lambda: not world.left()[1], 10)
    equal(world.run("--kubeconfig", world.kubeconfig({"token": "t"}))[0], 0)
    equal(world.left(), ([], []), "what is left")


def killed_both_end(world):
    with subprocess.Popen([world.program, "web", "--kubeconfig", world.kubeconfig({"token": "t"})], env=world.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        holds(process.stdout.readline(), b"http://")
        folders, proxies = world.left()
        equal((folders, len(proxies)), ([], 1), "while it runs nobody else has a path to the socket")
        equal(world.run("--kubeconfig", world.kubeconfig({"token": "t"}))[0], 0)
        equal(world.left(), ([], proxies), "another one's, which runs")
        process.send_signal(signal.SIGKILL)
    until(lambda: world.left() == ([], []), 10)


def only_this_machine_is_asked_without_tls(world):
    for url in ("https://127.0.0.1:1", "http://10.0.0.1:1", "http://127.0.0.1.example:1", "127.0.0.1:1"):
        code, out, err = world.run("--server", url)
        equal((code, out), (2, ""), url)
        holds(err, "--server must be plain HTTP on loopback")
    for flags in (["--as", "x"], ["--as-uid", "7"], ["--as-group", "g"], ["--kubeconfig", "k"], ["--context", "x"], ["--cluster", "c"], ["--user", "u"]):
        code, out, err = world.run("--server", world.api, *flags)
        equal((code, out), (2, ""), flags) # not asked as nobody in particular


CASES = [the_same_table_as_without_kubectl, clusters_and_users_of_flags_count,
         kubectls_that_are_none, kubectl_may_die_under_the_page, the_namespace_is_the_contexts, kubectls_flags_count,
         a_pods_account_counts_without_a_kubeconfig,
         what_kubectl_refuses_is_its_sentence, what_the_server_refuses_is_its_sentence, a_plugin_runs_once,
         a_plugin_that_fails_runs_once, a_plugin_may_ask_on_the_terminal, kubectl_may_ask_itself, interrupted_both_end, killed_both_end,
         only_this_machine_is_asked_without_tls]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--only", action="append")
    args = parser.parse_args()
    failed = 0
    print("kubectl:", subprocess.run([KUBECTL, "version", "--client"], capture_output=True, text=True, check=False).stdout.strip())
    with tempfile.TemporaryDirectory() as folder:
        world = World(os.path.abspath(args.build), folder)
        try:
            for case in CASES:
                if args.only and case.__name__ not in args.only:
                    continue
                world.reset()
                try:
                    case(world)
                    print(f"ok: {case.__name__}")
                except (AssertionError, TimeoutError) as why:
                    failed += 1
                    print(f"FAILED: {case.__name__}: {why}")
        finally:
            world.sim.terminate()
            world.sim.wait()
    return 1 if failed else 0


sys.exit(main())
