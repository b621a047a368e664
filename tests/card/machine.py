# SPDX-License-Identifier: Apache-2.0
"""What this machine has, and what of it decides how the cluster on it is configured. Nothing is changed."""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess

from harness import seclusion
from harness.control_plane import ROOT, built_program
from harness.processes import Failure

IN_POD = "/usr/local/card"  # where containers have the driver's libraries
CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
LIBRARIES = (CUDA, NVML, "libnvidia-ptxjitcompiler.so.1", "libnvidia-gpucomp.so*", "libnvidia-nvvm.so*",
             "libcudadebugger.so.1")
FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")
CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
NVIDIA = re.compile(r"Kernel Module.*? (\d+\.\d[\d.]*)")
CGROUPS = "/sys/fs/cgroup"
CARD_MIB = 16384  # the simulated one's


def output(*command):
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""


def text_of(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as text:
        return text.read()
    return ""


class Machine:
    def __init__(self, run_dir, rehearsal):
        self.run_dir, self.rehearsal = run_dir, rehearsal
        self.kernel, self.cgroup = os.uname().release, seclusion.Cgroup(run_dir)
        self.libraries = self.simulate() if rehearsal else self.find_libraries()
        found = NVIDIA.search(text_of("/proc/driver/nvidia/version"))
        self.driver = "simulated" if rehearsal else found.group(1) if found else "unknown"
        self.nvml = os.path.join(self.libraries, NVML)
        self.card = self.gpus()[0]
        self.overlayfs = self.mounts_overlayfs()
        self.seccomp = "Seccomp:" in text_of("/proc/self/status")
        self.namespaces = sorted(os.listdir("/proc/self/ns"))

    # ---- the driver ----

    def simulate(self):
        """Its two libraries, the list by which they know of each other's processes, and its MPS program."""
        folder = os.path.join(self.run_dir, "driver")
        os.makedirs(folder)
        shutil.copy(built_program("libfake_nvml.so"), os.path.join(folder, NVML))
        shutil.copy(built_program("libfake_cuda.so"), os.path.join(folder, CUDA))
        os.environ["GS_FAKE_NVML"] = os.path.join(folder, "cards")
        with open(os.environ["GS_FAKE_NVML"], "w", encoding="ascii") as out:
            out.write(f"gpu GPU-simulated {CARD_MIB} 0 00000000:3B:00.0\ncounts\n")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/opt"], check=True)  # in a namespace of our own
        os.mkdir("/opt/bin")
        shutil.copy(os.path.join(ROOT, "tests/support/mps/nvidia-cuda-mps-control"), "/opt/bin")
        return folder

    @staticmethod
    def find_libraries():
        known = re.findall(rf"=> (/\S+)/{CUDA}", output("ldconfig", "-p") + output("/sbin/ldconfig", "-p"))
        for folder in (*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *FOLDERS, *known):
            if folder and all(os.path.exists(os.path.join(folder, name)) for name in (CUDA, NVML)):
                return folder
        raise Failure(f"no folder has the driver's {CUDA} and {NVML}")

    def driver_says(self):
        done = subprocess.run([built_program("gpu_source"), self.nvml, "1"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"the driver cannot be read: {done.stderr}")
        return done.stdout

    def gpus(self):
        """Each {uuid, mib, used_mib, minor, model} as the driver says it now."""
        lines = re.findall(r"^gpu (.*?) model=(.*)$", self.driver_says(), re.M)
        if not lines:
            raise Failure(f"the driver has no GPU to share: {self.driver_says()}")
        return [{**{key: int(value) if value.isdigit() else value for key, value in
                    (word.split("=", 1) for word in words.split())}, "model": model} for words, model in lines]

    def used_mib(self):
        return next(gpu["used_mib"] for gpu in self.gpus() if gpu["uuid"] == self.card["uuid"])

    def users(self):
        """{UID of a pod, or "-": MiB} of the processes that the driver lists."""
        lines = re.findall(r"^process gpu=\d+ pid=\d+ mib=(\d+|-) pod=(\S+)", self.driver_says(), re.M)
        return {pod: sum(int(mib) for mib, one in lines if one == pod and mib != "-") for _, pod in lines}

    # ---- what containers get of it ----

    def cdi(self):
        """A specification as nvidia-ctk writes it, made of what is here: one device for each GPU, by its
        UUID, and "all"."""
        gpus = self.gpus()
        names = [path for name in LIBRARIES for path in glob.glob(os.path.join(self.libraries, name))]
        shared = {"env": [f"LD_LIBRARY_PATH={IN_POD}"],
                  "deviceNodes": [{"path": path} for path in CONTROL if os.path.exists(path)],
                  "mounts": [{"hostPath": os.path.realpath(path), "containerPath": f"{IN_POD}/{os.path.basename(path)}",
                              "options": ["ro", "bind"]} for path in names]}
        if self.rehearsal:
            cards = os.environ["GS_FAKE_NVML"]
            shared["env"].append(f"GS_FAKE_NVML={cards}")
            shared["mounts"].append({"hostPath": cards, "containerPath": cards, "options": ["rw", "bind"]})
        nodes = {gpu["uuid"]: [self.node(gpu)] for gpu in gpus}
        return {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "containerEdits": shared,
                "devices": [{"name": name, "containerEdits": {"deviceNodes": some}} for name, some in
                            [*nodes.items(), ("all", sum(nodes.values(), []))]]}

    def node(self, gpu):
        path = f"/dev/nvidia{gpu['minor']}"
        return {"path": path, "hostPath": "/dev/null"} if self.rehearsal else {"path": path}

    def runtime_spec(self):
        """Containers of the runtime "nvidia" have all cards: in place of NVIDIA's runtime, what containerd begins
        each container's specification with."""
        made, cdi = json.loads(output(f"{os.environ['NODE_DIR']}/usr/bin/ctr", "oci", "spec")), self.cdi()
        every = cdi["devices"][-1]["containerEdits"]["deviceNodes"] + cdi["containerEdits"]["deviceNodes"]
        for path in (node["path"] for node in every if "hostPath" not in node):
            number = os.stat(path).st_rdev
            device = {"type": "c", "major": os.major(number), "minor": os.minor(number)}
            made["linux"].setdefault("devices", []).append({**device, "path": path, "fileMode": 0o666})
            made["linux"]["resources"]["devices"].append({**device, "allow": True, "access": "rw"})
        made["mounts"] += [{"type": "bind", "source": mount["hostPath"], "destination": mount["containerPath"],
                            "options": mount["options"]} for mount in cdi["containerEdits"]["mounts"]]
        return made

    # ---- containers ----

    def mounts_overlayfs(self):
        below, above, work, point = (os.path.join(self.run_dir, "overlay", name) for name in "abcd")
        for folder in (below, above, work, point):
            os.makedirs(folder)
        done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                               f"lowerdir={below},upperdir={above},workdir={work}", point], capture_output=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", point], check=False)
        return done.returncode == 0

    def try_runc(self):
        """One container with limits, by runc alone: what is refused here would be refused to every pod."""
        bundle = os.path.join(self.run_dir, "trial")
        os.makedirs(f"{bundle}/rootfs/bin")
        shutil.copy(os.path.join(os.environ["NODE_DIR"], "bin/busybox"), f"{bundle}/rootfs/bin")
        subprocess.run(["runc", "spec", "--bundle", bundle], check=True)
        path = f"{bundle}/config.json"
        made = json.loads(text_of(path))
        made["process"].update(terminal=False, args=["/bin/busybox", "cat", "/proc/self/cgroup"])
        made["linux"]["namespaces"] = [one for one in made["linux"]["namespaces"] if one["type"] != "network"]
        made["linux"]["resources"].update(memory={"limit": 64 << 20}, pids={"limit": 100})
        made["linux"]["cgroupsPath"] = f"{self.cgroup.name}/trial"
        with open(path, "w", encoding="ascii") as out:
            json.dump(made, out)
        done = subprocess.run(["runc", "--root", f"{bundle}/state", "run", "--bundle", bundle, "trial"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"runc cannot run a container here: {done.stderr.strip()}")

    def tell(self):
        unified = text_of(f"{CGROUPS}/cgroup.controllers").split()
        hierarchies = sorted(os.path.basename(path) for path in glob.glob(f"{CGROUPS}/*") if os.path.ismount(path))
        for what, said in (
                ("kernel", self.kernel), ("driver", self.driver),
                ("cards", "; ".join(f"{gpu['model']} {gpu['uuid']} {gpu['mib']} MiB" for gpu in self.gpus())),
                ("libraries", self.libraries), ("devices", " ".join(sorted(glob.glob("/dev/nvidia*"))) or "none"),
                ("cgroup", f"v2: {' '.join(unified)}" if unified else f"v1: {' '.join(hierarchies)}"),
                ("dmem", "yes" if "dmem" in unified else "no: nothing is limited by the kernel"),
                ("namespaces", " ".join(self.namespaces)),
                ("overlayfs", "yes" if self.overlayfs else "no: the native snapshotter"),
                ("seccomp", "yes" if self.seccomp else "no: pods without a profile"),
                ("AppArmor, OOM scores", "left alone")):
            print(f"# {what}: {said}", flush=True)
        for path in ("/etc/hosts", "/etc/resolv.conf"):
            if not os.path.exists(path):
                raise Failure(f"containerd gives every pod a copy of {path}, and there is none")
        self.try_runc()
        print("# runc: runs a container", flush=True)
