# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chromium, driven through its debugging pipe: no driver, no network, no port."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Optional, Type

PROGRAM = shutil.which("chromium") or ""

# Chromium reads commands from descriptor 3 and answers on 4.
PLUG = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of a headless Chromium of its own."""

    def __init__(self) -> None:
        self._home = tempfile.mkdtemp(prefix="nearmetal-chromium-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", PLUG, str(to_browser), str(from_browser), PROGRAM, *_flags(self._home)],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._calls = 0
        self._session = ""
        self.complaints: List[str] = []  # messages of the page's console and its security policy
        self.requests: List[str] = []
        try:
            self._begin()
        except BaseException:
            self._end()
            raise

    def _begin(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._home, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Dict[str, Any]:
        """One command of the DevTools protocol and its answer."""
        self._calls += 1
        message: Dict[str, Any] = {"id": self._calls, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._calls:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                result: Dict[str, Any] = answer["result"]
                return result

    def _read(self) -> Dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._in, 1 << 20)
            if not part:
                raise AssertionError("Chromium ended; does it start? Run: chromium --headless --version")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: Dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, parameters: Dict[str, Any]) -> None:
        if event == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.call("Page.navigate", url=path.as_uri())
        while self.run("document.readyState") != "complete":
            continue

    def open_whole(self, path: Path) -> None:
        """Open a page that has all it needs: it asks for nothing else, and the browser has nothing to complain of."""
        self.complaints.clear()
        self.requests.clear()
        self.open(path)
        assert self.complaints == []
        assert set(self.requests) == {path.as_uri()}

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def key(self, name: str) -> None:
        """Press and release a key, as `ArrowDown` or `Enter`."""
        more: Dict[str, Any] = {"text": "\r"} if name == "Enter" else {}
        codes = {"Enter": 13, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "Escape": 27}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                windowsVirtualKeyCode=codes[name],
                **(more if kind == "keyDown" else {}),
            )

    def view(self, width: int, height: int, dark: bool = False, media: str = "") -> None:
        """Set the size of the page, its color scheme, and whether it is printed."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def picture(self, path: Path, whole: bool = False) -> None:
        """A PNG of the visible part, or of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])


def _flags(home: str) -> List[str]:
    return [
        "--headless",
        "--remote-debugging-pipe",
        "--no-sandbox",  # root has none; the page is our own file
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={home}",
        "about:blank",
    ]
