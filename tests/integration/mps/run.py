#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD: gpushare-mps with a stand-in for NVIDIA's daemon that dies on demand.

The stand-in lies in /opt/bin, in a mount namespace of our own; without the right to make one: 77.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[3]
STAND_IN = SOURCE / "tests/support/mps/nvidia-cuda-mps-control"
GPUS = ("GPU-fake-0", "GPU-fake-1")
NAMESPACE = "GPUSHARE_MPS_TEST_NAMESPACE"


class Failed(Exception):
    pass


def until(what, fn, seconds=120):
    deadline = time.monotonic() + seconds
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def expect(what, got, wanted):
    if got != wanted:
        raise Failed(f"{what}: {got!r} instead of {wanted!r}")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Client:
    """A process that computes by MPS, as the stand-in sees one."""

    def __init__(self, root, gpu, pid):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"{root}/{gpu}/pipe/control")
        self.socket.sendall(f"client {pid}\n".encode())
        expect("the daemon's answer to a client", self.socket.recv(16), b"ok\n")

    def connected(self):
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1) != b""
        except BlockingIOError:
            return True
        finally:
            self.socket.setblocking(True)


class Node:
    def __init__(self, build, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mps"))
        self.root = self.folder / "mps"
        self.log = open(self.folder / "log", "w+")
        self.process = subprocess.Popen(
            [f"{build}/gpushare-mps", "--root", str(self.root), "--fake-gpus", "2x16GiB", *options],
            stderr=self.log, stdin=subprocess.DEVNULL)

    def state(self, gpu):
        try:
            return (self.root / gpu / "state").read_text().split(" ", 2)
        except FileNotFoundError:
            return ["none"]

    def ready(self, gpu):
        return self.state(gpu)[0] == "ready"

    def away(self, gpu, words):
        state = self.state(gpu)
        return state[0] == "away" and words in state[2]

    def starts(self, gpu):
        try:
            text = (self.root / gpu / "log/started").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines()]

    def pid(self, gpu):
        return self.starts(gpu)[-1]["pid"]

    def ask(self, gpu, what):
        (self.root / gpu / "log" / what).touch()

    def wait_ready(self, *gpus):
        for gpu in gpus or GPUS:
            until(f"{gpu} is ready: {self.state(gpu)}", lambda gpu=gpu: self.ready(gpu))

    def servers(self, gpu):
        out = subprocess.run([STAND_IN], input="get_server_list\n", capture_output=True, text=True,
                             env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": f"{self.root}/{gpu}/pipe"})
        return [int(word) for word in out.stdout.split()]

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def clean(self, failed):
        self.end()
        if failed:
            self.log.seek(0)
            print(self.log.read(), file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)


def each_gpu_has_a_daemon_of_its_own(node):
    node.wait_ready()
    for gpu in GPUS:
        start, = node.starts(gpu)
        expect("arguments", start["args"], ["-f", "-multiuser-server"])
        expect("GPUs that it sees", start["CUDA_VISIBLE_DEVICES"], gpu)
        expect("its pipes", start["CUDA_MPS_PIPE_DIRECTORY"], f"{node.root}/{gpu}/pipe")
        expect("its logs", start["CUDA_MPS_LOG_DIRECTORY"], f"{node.root}/{gpu}/log")
    shm = os.statvfs(node.root / "shm")
    expect("mode of shm", oct((node.root / "shm").stat().st_mode & 0o7777), "0o1777")
    expect("size of shm, which fills nothing of the host's", shm.f_blocks * shm.f_frsize, 1 << 30)


def is_let_alone(node, gpu, pid):
    """Its daemon is the same one. A busy machine may have it answer late."""
    until(f"{gpu} is ready", lambda: node.ready(gpu))
    expect(f"the daemon of {gpu}", node.pid(gpu), pid)


def one_that_dies_is_started_again_and_no_other(node):
    node.wait_ready()
    Client(node.root, GPUS[0], 77)
    first, other = node.pid(GPUS[0]), node.pid(GPUS[1])
    server, = node.servers(GPUS[0])
    node.ask(GPUS[0], "die")
    until("the dead one is away", lambda: node.away(GPUS[0], "has exited"))
    node.wait_ready(GPUS[0])
    expect("starts", len(node.starts(GPUS[0])), 2)
    expect("the first lives", alive(first), False)
    until("its server is dead", lambda: not alive(server))
    is_let_alone(node, GPUS[1], other)


def silent_connections(path):
    """All that the daemon's queue takes: nothing is ever said on them."""
    crowd = []
    while len(crowd) < 150:
        crowd.append(socket.socket(socket.AF_UNIX))
        crowd[-1].setblocking(False)
        try:
            crowd[-1].connect(str(path))
        except BlockingIOError:
            break
    return crowd


def who_silences_a_daemon_ends_no_client(node):
    node.wait_ready()
    client, pid = Client(node.root, GPUS[0], 77), node.pid(GPUS[0])
    crowd = silent_connections(node.root / GPUS[0] / "pipe/control")
    until("it is left alone", lambda: node.away(GPUS[0], "its server may have clients"))
    time.sleep(4)
    expect("the client is connected", client.connected(), True)
    for connection in crowd:
        connection.close()
    is_let_alone(node, GPUS[0], pid)
    expect("the client is connected", client.connected(), True)


def a_socket_in_its_place_is_not_asked(node):
    """It says that the only server has failed, and has no clients: time after time."""
    node.wait_ready()
    first, pid = Client(node.root, GPUS[0], 77), node.pid(GPUS[0])
    pipe = node.root / GPUS[0] / "pipe"

    def answer(listener):
        while True:
            connection, _ = listener.accept()
            text = connection.makefile("r").read()
            connection.sendall({"get_server_list": b"4242\n", "get_server_status": b"FAULT\n"}
                               .get(text.split()[0], b""))
            connection.close()
    liar = socket.socket(socket.AF_UNIX)
    liar.bind(str(pipe / "mine"))
    liar.listen(64)
    threading.Thread(target=answer, args=(liar,), daemon=True).start()
    until_s = time.monotonic() + 7  # two questions
    while time.monotonic() < until_s:
        (pipe / "again").unlink(missing_ok=True)
        os.link(pipe / "mine", pipe / "again")
        os.rename(pipe / "again", pipe / "control")
        time.sleep(0.0005)
    is_let_alone(node, GPUS[0], pid)
    expect("the client is connected", first.connected(), True)


def its_end_is_theirs(node):
    node.wait_ready()
    Client(node.root, GPUS[0], 77)
    pids = [node.pid(gpu) for gpu in GPUS] + node.servers(GPUS[0])
    node.end()
    expect("exit status", node.process.returncode, 0)
    until("no daemon or server lives", lambda: not any(alive(pid) for pid in pids))
    expect("what is told", [node.away(gpu, "gpushare-mps has stopped") for gpu in GPUS], [True, True])


def killed_it_leaves_no_daemon(node):
    node.wait_ready()
    pids = [node.pid(gpu) for gpu in GPUS]
    node.process.send_signal(signal.SIGKILL)
    node.process.wait()
    until("no daemon lives", lambda: not any(alive(pid) for pid in pids))


# When a daemon is stopped and started, its logs, whose socket is its own, and what is left in its folder: tests/unit/mps.
CASES = (each_gpu_has_a_daemon_of_its_own, one_that_dies_is_started_again_and_no_other,
         who_silences_a_daemon_ends_no_client, a_socket_in_its_place_is_not_asked, its_end_is_theirs,
         killed_it_leaves_no_daemon)


def without_the_program(build):
    """It waits, and begins when the driver is there."""
    program = pathlib.Path("/opt/bin/nvidia-cuda-mps-control")
    program.rename("/opt/bin/later")
    node = Node(build)
    time.sleep(1)
    expect("it waits", node.process.poll(), None)
    pathlib.Path("/opt/bin/later").rename(program)
    return node


def run(name, node, case):
    started = time.monotonic()
    failed = None
    try:
        case(node)
    except (Failed, OSError, ValueError) as why:
        failed = why
    node.clean(failed)
    print(f"{'FAIL' if failed else 'ok  '} {name.replace('_', ' ')} "
          f"({time.monotonic() - started:.0f} s){f': {failed}' if failed else ''}", flush=True)
    return failed is None


def main(build, names):
    os.makedirs("/opt/bin")
    shutil.copy(STAND_IN, "/opt/bin/nvidia-cuda-mps-control")
    root = "/opt/driver-root"
    os.mkdir(root)
    subprocess.run(["mount", "--rbind", "/", root], check=True)
    # side by side: they mostly wait
    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        done = [pool.submit(run, case.__name__, Node(build), case) for case in CASES
                if not names or case.__name__ in names]
        good = all([case.result() for case in done])
    if not names:
        good &= run("without the program it waits", without_the_program(build),
                    each_gpu_has_a_daemon_of_its_own)
        node = Node(build, "--driver-root", root)

        def rooted(node):
            each_gpu_has_a_daemon_of_its_own(node)
            expect("its root", os.readlink(f"/proc/{node.pid(GPUS[0])}/root"), root)
        good &= run("in a driver root", node, rooted)
    sys.exit(0 if good else 1)


if NAMESPACE in os.environ:
    main(os.path.abspath(sys.argv[1]), sys.argv[2:])
else:
    enter = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    prepare = "mount -t tmpfs tmpfs /opt && exec \"$@\""
    if subprocess.run([*enter, "sh", "-c", prepare, "sh", "true"], stderr=subprocess.DEVNULL).returncode:
        print("no mount namespace can be made here")
        sys.exit(77)
    os.environ[NAMESPACE] = "1"
    os.execvp(enter[0], [*enter, "sh", "-c", prepare, "sh", sys.executable, *sys.argv])
