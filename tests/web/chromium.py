# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium over its DevTools protocol, with nothing but the standard library.

    with Chromium() as browser:
        page = browser.page(url)
        page.run("document.title")
        page.screenshot("page.png")
"""

import base64
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
import zlib


class Socket:
    """A WebSocket client (RFC 6455), as far as one trusted server on loopback needs it."""

    def __init__(self, host, port, path):
        self.tcp = socket.create_connection((host, port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.tcp.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
                          f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                          "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.take(1)
        if b" 101 " not in head:
            raise OSError(head.decode())

    def take(self, count):
        data = b""
        while len(data) < count:
            more = self.tcp.recv(count - len(data))
            if not more:
                raise EOFError("the browser is gone")
            data += more
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | size) if size < 126 else \
            struct.pack("!BBH", 0x81, 0xfe, size) if size < 65536 else \
            struct.pack("!BBQ", 0x81, 0xff, size)
        self.tcp.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            first, second = self.take(2)
            size = second & 0x7f
            if size == 126:
                size = struct.unpack("!H", self.take(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self.take(8))[0]
            data = self.take(size)
            if first & 0x0f in (0, 1, 2):
                text += data
                if first & 0x80:
                    return text.decode()


class Navigated(Exception):
    """The page was left while it was asked."""


class Page:
    """One tab."""

    def __init__(self, host, port, path):
        self.socket = Socket(host, port, path)
        self.number = 0
        self.events = []
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("id") == self.number:
                if "navigated" in answer.get("error", {}).get("message", ""):
                    raise Navigated(method)
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script, seconds=20):
        """Until the expression is true, of a page that is not just being left."""
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(Navigated):
                if self.run(f"!!({script})"):
                    return
            if time.monotonic() > deadline:
                raise AssertionError(f"never true: {script}")
            time.sleep(0.1)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url)}) && "
                  "document.readyState == 'complete'")

    def key(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text if kind == "keyDown" else "",
                      **({"windowsVirtualKeyCode": 9} if key == "Tab" else {}))

    def hover(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def size(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def scripts(self, allowed):
        self.call("Emulation.setScriptExecutionDisabled", value=not allowed)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pixel(self, x, y):
        """(red, green, blue) of a point of the window."""
        top = self.run("[scrollX, scrollY]")
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png", clip={
            "x": int(x) + top[0], "y": int(y) + top[1], "width": 1, "height": 1, "scale": 1})["data"])
        data, at = b"", 8
        while at < len(png): # chunks: length, type, data, checksum
            size, kind = struct.unpack_from("!I4s", png, at)
            data += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
            at += 12 + size
        return tuple(zlib.decompress(data)[1:4]) # behind the line's filter, which changes nothing of one point

    def complaints(self):
        """What the console and the log hold of errors and of the policy."""
        self.run("0")  # what is on its way arrives before the answer
        found = []
        for event in self.events:
            params = event.get("params", {})
            entry = params.get("entry", {})
            if event["method"] == "Log.entryAdded" and entry.get("level") == "error":
                found.append(entry.get("text", "") + " " + entry.get("url", ""))
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"]))
        return found


class Chromium:
    """The browser, with a profile of its own that goes with it."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="gpushare-chromium.")
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if not program:
            raise FileNotFoundError("chromium is not installed")
        # Runs as root in a container, where its own sandbox cannot; it sees pages of ours only.
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
             f"--user-data-dir={self.profile}", "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = self.find_port()
        return self

    def find_port(self):
        deadline = time.monotonic() + 60
        name = os.path.join(self.profile, "DevToolsActivePort")
        while time.monotonic() < deadline:
            try:
                with open(name, encoding="ascii") as file:
                    return int(file.readline())
            except (FileNotFoundError, ValueError):
                time.sleep(0.1)
        raise TimeoutError("Chromium does not start")

    def page(self, url=None):
        ask = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank",
                                     method="PUT")
        with urllib.request.urlopen(ask, timeout=60) as answer:
            target = json.load(answer)
        path = target["webSocketDebuggerUrl"].split("/", 3)[3]
        page = Page("127.0.0.1", self.port, "/" + path)
        if url:
            page.open(url)
        return page

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
