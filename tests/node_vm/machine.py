# SPDX-License-Identifier: Apache-2.0
"""The virtual machine: QEMU without KVM on a disk of its own, its network a tap device of this network
namespace, its programs reached over ssh."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time

from harness import seclusion
from harness.processes import Failure, wait_for

ADDRESS = seclusion.GATEWAY  # programs here send to it whatever is not on the wire: pods, Services
ACCEL = os.environ.get("KERNEL_ACCEL", "tcg,thread=multi")
MEMORY_MIB = 3072
NICE = os.environ.get("NODE_VM_NICE", "10")
BOOT_LIMIT_S = 600


class Machine:
    def __init__(self, processes, run_dir, kernel, disk_dir):
        self.processes, self.dir = processes, run_dir
        self.kernel, self.disk_dir = kernel, disk_dir
        self.disk = os.path.join(run_dir, "disk.qcow2")
        self.payload = os.path.join(run_dir, "payload")
        self.monitor, self.wire_path = (os.path.join(run_dir, name) for name in ("monitor", "ssh"))
        self.process = self.wire = None
        self.ssh = ["ssh", "-q", "-i", os.path.join(disk_dir, "key"), "-o", "BatchMode=yes"]
        for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null",
                       "ConnectTimeout=30", f"ControlPath={self.wire_path}"):
            self.ssh += ["-o", option]

    def write_payload(self, files):
        """A file system with what differs from run to run."""
        for file in files:
            shutil.copy(file, self.payload)
        for name in ("fakegpu.ko", "modules"):
            path = os.path.join(self.kernel, name)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(self.payload, name), symlinks=True)
            elif os.path.exists(path):
                shutil.copy(path, self.payload)
        size = sum(os.path.getsize(os.path.join(folder, name))
                   for folder, _, names in os.walk(self.payload) for name in names)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-L", "payload", "-d", self.payload,
                        f"{self.payload}.disk", f"{(size >> 20) * 11 // 10 + 16}M"], check=True)
        shutil.rmtree(self.payload)

    def start(self, files):
        os.makedirs(self.payload)
        self.write_payload(files)
        self.disk_on(os.path.join(self.disk_dir, "disk"), "raw")
        self.boot()

    def disk_on(self, below, form):
        """Its own disk, whose blocks are another's until they are written."""
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", form, "-b", below, self.disk],
                       check=True)

    def save(self, folder):
        """Ends it; its memory and its disks are in the folder, from which resume() goes on."""
        self.tell("stop")
        self.tell("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        self.tell("migrate", uri=f"exec:cat >{folder}/memory")
        wait_for("its memory is written", lambda: self.tell("query-migrate")["status"] == "completed", 300)
        self.process.stop()
        for file in (self.disk, f"{self.payload}.disk"):
            shutil.move(file, folder)

    def resume(self, folder):
        os.symlink(os.path.join(folder, "payload.disk"), f"{self.payload}.disk")
        self.disk_on(os.path.join(folder, "disk.qcow2"), "qcow2")
        self.boot("-incoming", f"exec:cat {folder}/memory")

    def tell(self, command, **arguments):
        """What QEMU answers (QMP)."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as wire:
            wire.connect(self.monitor)
            with wire.makefile("rw", encoding="ascii") as lines:
                for execute, more in (("qmp_capabilities", {}), (command, arguments)):
                    lines.write(json.dumps({"execute": execute, "arguments": more}) + "\n")
                    lines.flush()
                    answer = self.answer(lines)
        return answer

    @staticmethod
    def answer(lines):
        for line in lines:
            said = json.loads(line)
            if "error" in said:
                raise Failure(f"QEMU: {said['error']['desc']}")
            if "return" in said:
                return said["return"]
        raise Failure("QEMU has hung up")

    def hardware(self):
        """microvm where the kernel is ours; a PC, whose parts come from an initramfs, for Debian's."""
        initrd = os.path.join(self.kernel, "initrd")
        if os.path.exists(initrd):
            return "q35", "pci", ("-initrd", initrd)
        return "microvm,acpi=off,rtc=on", "device", ()

    def boot(self, *incoming):
        machine, bus, more = self.hardware()
        self.process = self.processes.start("qemu", [
            "nice", "-n", NICE, "qemu-system-x86_64", "-M", machine, "-accel", ACCEL, "-cpu", "max",
            "-smp", "2", "-m", MEMORY_MIB, "-nodefaults", "-display", "none",
            "-serial", f"file:{self.dir}/console.log",
            "-drive", f"if=none,id=disk,format=qcow2,cache=unsafe,file={self.disk}",
            "-device", f"virtio-blk-{bus},drive=disk",
            "-drive", f"if=none,id=payload,format=raw,readonly=on,file={self.payload}.disk",
            "-device", f"virtio-blk-{bus},drive=payload",
            "-netdev", "tap,id=net,ifname=node0,script=no,downscript=no",
            "-device", f"virtio-net-{bus},netdev=net",
            "-qmp", f"unix:{self.monitor},server=on,wait=off", *incoming,
            "-kernel", os.path.join(self.kernel, "bzImage"), *more,
            "-append", "console=ttyS0 root=/dev/vda rw panic=-1 reboot=t mitigations=off quiet "
                       "no_timer_check ipv6.disable=1 net.ifnames=0 systemd.show_status=0 "
                       "systemd.mask=serial-getty@ttyS0.service "
                       f"ip={ADDRESS}::{seclusion.ADDRESS}:255.255.255.0:real:eth0:off"])
        if incoming:
            wait_for("its memory is read", lambda: self.process.must_run() or
                     self.tell("query-status")["status"] == "paused", 120)
            self.tell("cont")
        self.wait_up()

    def reboot(self):
        """As an operator does it; systemd ends what runs."""
        self.ask("systemctl reboot")
        wait_for("it goes down", lambda: not self.wire.running(), 120, interval_s=0.5)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.wire_path)
        self.wait_up()

    def wait_up(self):
        wait_for("the virtual machine has booted", lambda: self.process.must_run() or self.greets(),
                 BOOT_LIMIT_S, interval_s=1)
        self.wire = self.processes.start("ssh", [*self.ssh, "-N", "-M", f"root@{ADDRESS}"])
        wait_for("its ssh server lets us in", lambda: self.ask("true").returncode == 0, 300,
                 interval_s=1)
        self.do(f"date -s @{int(time.time())}")

    @staticmethod
    def greets():
        with socket.create_connection((ADDRESS, 22), timeout=30) as connection:
            return connection.recv(4) == b"SSH-"

    def ask(self, script, data=None):
        """One shell script there, as root, on the connection that is open."""
        return subprocess.run([*self.ssh, f"root@{ADDRESS}", script], input=data,
                              capture_output=True, text=True, check=False)

    def do(self, script, data=None):
        """What it printed; a failure says what it said."""
        done = self.ask(script, data)
        if done.returncode:
            raise Failure(f"in the machine: {script}: {done.stderr}{done.stdout}")
        return done.stdout

    def send(self, path, script):
        """The same, with a file as its input."""
        with open(path, "rb") as data:
            done = subprocess.run([*self.ssh, f"root@{ADDRESS}", script], stdin=data, capture_output=True, check=False)
        if done.returncode:
            raise Failure(f"in the machine: {script}: {done.stderr}{done.stdout}")

    def read(self, path):
        """A file's text, or "" where there is none."""
        return self.ask(f"cat {path}").stdout
