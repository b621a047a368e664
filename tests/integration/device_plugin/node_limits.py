#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What limits a container beside the kernel, as the program answers it to a kubelet: MIG instances and
their words, a hook that the operator brings and one that was changed, MPS on nodes with the label.

  node_limits.py BUILD"""

import hashlib
import os
import random
import shutil
import sys
import tempfile

from kubelet_messages import M
from node_world import ASSIGNED, IDX, Api, Kubelet, Plugin, wait_for

LIBRARY = b"not really a library"
PRELOAD = "/usr/local/vgpu/libvgpu.so"


def equal(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


class World:
    def __init__(self, build, cards, *flags, labels=None):
        self.folder = tempfile.mkdtemp(prefix="node-limits-")
        os.chmod(self.folder, 0o755)
        os.mkdir(f"{self.folder}/kubelet")
        self.api = Api(self.folder, build)
        if labels:
            self.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": labels}})
        self.kubelet = Kubelet(f"{self.folder}/kubelet", random.Random(1))
        self.plugin = Plugin(self.folder, build, self.api)
        self.plugin.set_cards(cards)
        self.plugin.command += [flag.replace("{folder}", self.folder) for flag in flags]
        self.uids = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for stop in (self.plugin.kill if self.plugin.process else lambda: None, self.kubelet.stop,
                     self.api.stop):
            stop()
        if kind:
            with open(self.plugin.log, encoding="utf-8") as log:
                print(log.read()[-4000:], file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        self.plugin.start()
        wait_for("the node has an inventory", lambda: self.api.node("gpu-inventory"))

    def gpu(self, uuid):
        return {gpu["uuid"]: gpu for gpu in self.api.node("gpu-inventory")["gpus"]}.get(uuid)

    def word_is(self, uuid, word, reason=None):
        wait_for(f"{uuid} is {word}", lambda: self.gpu(uuid).get("enforced") == word)
        equal(self.gpu(uuid).get("enforcedReason"), reason, f"why {uuid} is {word}")

    def admit(self, name, units, idx, annotations=None):
        """What the container is given: an answer to Allocate."""
        uid = self.uids[name] = self.api.make_pod(
            name, [("c0", units)], {IDX: str(idx), ASSIGNED: "false", **(annotations or {})})
        given = self.kubelet.admit(uid, name, [("c0", units)], lambda box: False)
        if not isinstance(given, dict):
            raise AssertionError(f"{name} was not admitted: {given}")
        return M["ContainerAnswer"].FromString(self.kubelet.pods[uid]["answers"]["c0"])

    def start_container(self, name):
        return self.kubelet.start_container(self.uids[name], "c0")

    def end(self, name):
        self.api.phase(name, "Succeeded")
        self.api.delete(name)
        self.kubelet.forget(self.uids[name])


def envs(answer):
    return {env.key: env.value for env in answer.envs}


def instances_have_the_word_of_who_is_in_them(build):
    cards = [("GPU-card", 40), ("MIG-whole", 20), ("MIG-shared", 10)]
    with World(build, cards, "--enforce", "off") as world:
        world.start()
        world.word_is("GPU-card", "none", "not-enabled")
        world.word_is("MIG-whole", "mig")
        for name, units, idx in (("whole", 20, 1), ("one", 5, 2), ("card", 8, 0)):
            equal(envs(world.admit(name, units, idx))["NVIDIA_VISIBLE_DEVICES"], cards[idx][0], name)
            equal(world.start_container(name), None, f"the start of {name}")
        world.word_is("MIG-shared", "mig")
        equal(envs(world.admit("two", 5, 2))["NVIDIA_VISIBLE_DEVICES"], "MIG-shared", "two")
        world.word_is("MIG-shared", "none", "instance")
        world.word_is("MIG-whole", "mig")
        world.end("one")
        world.word_is("MIG-shared", "mig")
        world.plugin.set_cards([("GPU-card", 40), ("MIG-later", 20), ("MIG-shared", 10)])
        wait_for("the instance is gone", lambda: not world.gpu("MIG-whole")["healthy"])
        wait_for("another is there", lambda: world.gpu("MIG-later"))
        if world.gpu("MIG-later")["idx"] == world.gpu("MIG-whole")["idx"]:
            raise AssertionError("the new instance has the old one's index")


def only_the_pinned_library_is_preloaded(build):
    pinned = hashlib.sha256(LIBRARY).hexdigest()
    with World(build, [("GPU-a", 16)], "--hook-library", "{folder}/lib.so", "--hook-sha256", pinned,
               "--hook-root", "{folder}/hook") as world:
        def install(text):
            with open(f"{world.folder}/lib.so.new", "wb") as out:
                out.write(text)
            os.chmod(f"{world.folder}/lib.so.new", 0o644)
            os.rename(f"{world.folder}/lib.so.new", f"{world.folder}/lib.so")

        def mounts(name, units, annotations=None):
            answer = world.admit(name, units, 0, annotations)
            equal(envs(answer)["CUDA_DEVICE_MEMORY_LIMIT_0"], f"{units * 1024}m", f"{name}'s limit")
            found = {mount.container: mount for mount in answer.mounts}
            equal([(at, mount.read_only) for at, mount in found.items()],
                  [("/usr/local/vgpu", False), (PRELOAD, True), ("/etc/ld.so.preload", True),
                   ("/tmp/vgpulock", False)], f"{name}'s mounts")
            return found

        def preloads(found):
            with open(found["/etc/ld.so.preload"].host, encoding="ascii") as file:
                return file.read()

        install(LIBRARY)
        world.start()
        world.word_is("GPU-a", "hook")
        first = mounts("first", 8)
        equal(world.start_container("first"), None, "the start of first")
        equal(preloads(first), f"{PRELOAD}\n", "what first preloads")
        with open(first[PRELOAD].host, "rb") as file:
            equal(file.read(), LIBRARY, "what is preloaded")
        equal(oct(os.stat(first["/usr/local/vgpu"].host).st_mode & 0o7777), "0o777", "its folder's mode")

        install(b"another")
        world.word_is("GPU-a", "none", "hook-unavailable")
        second = mounts("second", 4)
        equal(world.start_container("second"), None, "the start of second")
        equal(preloads(second), "", "what second preloads")
        with open(first[PRELOAD].host, "rb") as file:
            equal(file.read(), LIBRARY, "what first has")
        third = mounts("third", 2, {"aliyun.com/gpu-enforce": "required"})
        refused = world.start_container("third")
        if not refused or "start blocked" not in refused:
            raise AssertionError(f"third, which insists: {refused}")
        install(LIBRARY)
        equal(world.start_container("third"), None, "the start of third")
        equal(preloads(third), f"{PRELOAD}\n", "what third preloads")
        world.word_is("GPU-a", "hook")


def mps_is_where_the_label_says(build):
    flags = ("--mps-root", "{folder}/mps", "--mps-by-label", "--enforce", "off")
    for labels, reason in ((None, "not-enabled"),
                           ({"aliyun.com/gpu-mps": "true"}, "mps-unavailable")):
        with World(build, [("GPU-a", 16)], *flags, labels=labels) as world:
            world.start()
            world.word_is("GPU-a", "none", reason)
            equal(world.gpu("GPU-a")["healthy"], labels is None, "the GPU's health")
            equal("CUDA_MPS_PIPE_DIRECTORY" in envs(world.admit("a", 4, 0)), labels is not None,
                  f"MPS with the labels {labels}")


def main():
    for case in (instances_have_the_word_of_who_is_in_them, only_the_pinned_library_is_preloaded,
                 mps_is_where_the_label_says):
        case(os.path.abspath(sys.argv[1]))
        print(f"ok    {case.__name__}", flush=True)


main()
