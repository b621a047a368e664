# SPDX-License-Identifier: Apache-2.0
"""containerd with folders of its own, and one hand-made image: no registry is asked for anything."""

import hashlib
import io
import json
import os
import signal
import subprocess
import tarfile

from harness.processes import wait_for

IMAGE = "gpushare.e2e/box:1"
NODE_DIR = os.environ.get("NODE_DIR", "/")  # scripts/e2e.sh sets it
PATH = f"{NODE_DIR}/usr/bin:{NODE_DIR}/usr/sbin:{os.environ['PATH']}"
APPLETS = ("sh", "sleep", "env", "cat", "true", "renice", "ls")

# No AppArmor, no raising of OOM scores: a container that runs these tests may have neither.
CONFIG = """version = 2
root = "{dir}/root"
state = "{dir}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
{more}  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs}/usr/lib/cni"
    conf_dir = "{dir}/cni"
"""

# Most cases' pods use the host's network; the kubelet only wants to see that there is one.
POD_NETWORK = "10.88.0.0/16"
NETWORK = {"cniVersion": "0.4.0", "name": "e2e", "plugins": [
    {"type": "ptp", "ipam": {"type": "host-local", "subnet": POD_NETWORK,
                             "routes": [{"dst": "0.0.0.0/0"}]}}]}


def add_bytes(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def layer(program, links=(), files=()):
    """One layer: a static program in /bin and links to it. files: (path here, path in it)."""
    out = io.BytesIO()
    name = os.path.basename(program)
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(program, f"bin/{name}")
        for link_name in links:
            link = tarfile.TarInfo(f"bin/{link_name}")
            link.type, link.linkname = tarfile.SYMTYPE, name
            tar.addfile(link)
        for path, name in files:
            tar.add(os.path.realpath(path), name)
    return out.getvalue()


def write_image(path, image=IMAGE, program=os.path.join(NODE_DIR, "bin/busybox"), links=APPLETS, files=()):
    """A file as `docker save` writes it."""
    data = layer(program, links, files)
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["sleep", "1000000"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
    }).encode()
    manifest = [{"Config": "config.json", "RepoTags": [image], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as tar:
        add_bytes(tar, "config.json", config)
        add_bytes(tar, "layer.tar", data)
        add_bytes(tar, "manifest.json", json.dumps(manifest).encode())


class Containerd:
    """Started and stopped by the case; what it leaves behind is removed by path and by pid. more:
    lines for its CRI settings; programs: a folder whose containerd is taken before Debian's; files:
    what its image has beside busybox."""

    more, files, snapshotter = "", (), "native"
    programs = os.path.join(NODE_DIR, "usr/bin")

    def __init__(self, processes, run_dir):
        self.processes = processes
        self.dir = os.path.join(run_dir, "containerd")
        self.socket = os.path.join(self.dir, "containerd.sock")
        self.process = None

    def start(self):
        os.makedirs(os.path.join(self.dir, "cni"))
        with open(os.path.join(self.dir, "config.toml"), "w", encoding="ascii") as out:
            out.write(CONFIG.format(dir=self.dir, socket=self.socket, image=IMAGE,
                                    programs=NODE_DIR, more=self.more, snapshotter=self.snapshotter))
        with open(os.path.join(self.dir, "cni/e2e.conflist"), "w", encoding="ascii") as out:
            json.dump(NETWORK, out)
        self.launch()
        image = os.path.join(self.dir, "image.tar")
        write_image(image, files=self.files)
        self.import_image(image)

    def launch(self):
        process = self.process = self.processes.start("containerd", [
            os.path.join(self.programs, "containerd"),
            "--config", os.path.join(self.dir, "config.toml")],
            env={"PATH": f"{self.programs}:{PATH}"})

        def ready():
            process.must_run()
            return self.ctr("version", check=False).returncode == 0
        wait_for("containerd answers", ready)

    def import_image(self, path):
        self.ctr("images", "import", "--snapshotter", self.snapshotter, path)

    def ctr(self, *args, check=True):
        return subprocess.run([os.path.join(NODE_DIR, "usr/bin/ctr"), "--address", self.socket, "-n", "k8s.io", *args],
                              check=check, capture_output=True, text=True)

    def shims(self):
        """Their pids: they live on without containerd, and name its socket."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                    words = cmdline.read().split(b"\0")
            except OSError:
                continue
            if b"containerd-shim" in words[0] and self.socket.encode() in words:
                found.append(int(pid))
        return found

    def clean_up(self):
        """End all containers, then the shims, then unmount what they had mounted."""
        listed = self.ctr("tasks", "ls", "-q", check=False)
        for task in listed.stdout.split():
            self.ctr("tasks", "rm", "-f", task, check=False)
        for pid in self.shims():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        unmount_below(self.dir)


def unmount_below(folder):
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        points = [line.split(" ")[1].replace("\\040", " ") for line in mounts]
    for point in sorted(points, key=len, reverse=True):
        if point.startswith(folder + "/"):
            subprocess.run(["umount", "-l", point], check=False, capture_output=True)
