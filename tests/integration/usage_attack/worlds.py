# SPDX-License-Identifier: Apache-2.0
"""A world (world.py) happens to the built plugin (node.py), and each page that it says meanwhile is judged."""

import json
import signal
import time

import objects
from api import Served
from attack import Wrong
from node import Plugin, READ_NS
from world import World

PATIENCE_S, AGAIN_S, STEPS = 20, 0.8, 20
EVENT = "GpuMemoryOverRequest"


def sentinel_of(page):
    """The reading that a page is of; 0 where it says that nobody uses anything; None: it does not say."""
    for pod in json.loads(page).get("pods", []):
        if pod["name"] == "sentinel":
            return pod["gpus"][0].get("usedBytes")
    return None


def wait_page(world, plugin):
    """The first page of this reading that names the pods of now; older ones may be said before. None: in vain."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        page = plugin.get("/usage")
        number = sentinel_of(page) if page else None
        if page and '"usedBytes"' in page:      # of GPUs: a driver that was read is asked at once
            until = min(until, time.monotonic() + AGAIN_S)
        if number is not None and number > world.number:
            raise Wrong(f"reading {world.number}: the sentinel uses {number}: {page}")
        if number == world.number:
            fault = world.judge(page)
            if not fault:
                return page
            if "named" not in fault:
                raise Wrong(f"reading {world.number}: {fault}\n{page}")
        time.sleep(0.01)
    return None


def reading(world, plugin):
    """The driver is asked, and again while pods that came or went are not known yet."""
    for _ in range(10):  # a busy machine reads late
        world.write(plugin)
        world.read()
        if not plugin.alive():
            plugin.start()
        else:
            plugin.jump(READ_NS)
        if wait_page(world, plugin):
            world.seen()
            fault = world.judge_metrics(plugin.get("/metrics"))
            if fault:
                raise Wrong(f"reading {world.number}: {fault}")
            return
    raise Wrong(f"reading {world.number}: {world.judge(plugin.get('/usage') or '{}')}\n{plugin.said()[-800:]}")


def restart(world, plugin, api):
    judge_events(world, api)        # what waits to be sent is lost with it
    how = signal.SIGKILL if world.rng.random() < 0.5 else signal.SIGTERM
    status = plugin.end(how)
    if status and how == signal.SIGTERM:
        raise Wrong(f"it ended with {status}: {plugin.said()[-800:]}")
    world.began_anew()


def judge_events(world, api):
    """Who was far above his share has an Event, and so has his controller; nobody else has. How many have."""
    until = time.monotonic() + 10
    while True:
        with api.lock:
            events = [one for one in api.events if one["reason"] == EVENT]
        about = {(one["involvedObject"]["kind"], one["involvedObject"]["name"]) for one in events}
        missing = [(pod.name, pod.owner) for pod in map(world.above.get, world.told)
                   if ("Pod", pod.name) not in about or (pod.owner and not pod.static and pod.owner not in about)]
        if not missing:
            break
        if time.monotonic() > until:
            raise Wrong(f"{missing} are above their share, and they or their controllers are not told so: {about}")
        time.sleep(0.02)
    wanted = {("Pod", name) for name in world.above} | {pod.owner for pod in world.above.values()}
    if about - wanted:
        raise Wrong(f"{sorted(about - wanted)} are told that they are above their share")
    return len(world.told)


def seed_of(seed, number):
    return f"usage {seed + number}"


def one_world(build, rng, _):
    """Readings, and pods told to be above their share."""
    world = World(rng, 9_000_000)
    with Served([objects.new_node("n", []), *(pod.document("n") for pod in world.pods.values())]) as api:
        plugin = Plugin(build, api, rng.choice(["nvml", "auto"]))
        try:
            for step in range(STEPS):
                world.step()
                if step and rng.random() < 0.08:
                    restart(world, plugin, api)
                elif rng.random() < 0.15 and (pod := world.add_pod()):
                    api.put(pod.document("n"))
                elif rng.random() < 0.1 and (pod := world.drop_pod()):
                    judge_events(world, api)
                    api.delete("pods", ("team", pod.name))
                reading(world, plugin)
            told = judge_events(world, api)
            if status := plugin.end():
                raise Wrong(f"it ended with {status}: {plugin.said()[-800:]}")
        except Wrong as why:
            raise Wrong("\n".join([str(why), *world.trace])) from why
        finally:
            plugin.clean()
    return {"readings": world.number, "told": told}
