# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small metadata service: tokens, and several kinds of misbehavior. `python fake_imds.py ADDRESS PORT [KIND]`.

Standard library only and Python 3.8, because a lab host runs it too.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any, Dict, List

TOKEN = "AQAAAtest-token-that-is-long-enough=="
DOCUMENT = {
    "instanceId": "i-0123456789abcdef0",
    "instanceType": "c6in.32xlarge",
    "accountId": "123456789012",
    "region": "eu-west-1",
    "availabilityZone": "eu-west-1b",
    "architecture": "x86_64",
    "imageId": "ami-0123456789abcdef0",
    "kernelId": None,
}
TREE = {
    "dynamic/instance-identity/document": json.dumps(DOCUMENT),
    "meta-data/instance-life-cycle": "spot",
    "meta-data/placement/group-name": "together",
    "meta-data/placement/partition-number": "3",
    "meta-data/tags/instance/workload": "cache",
    "meta-data/network/interfaces/macs/": "02:00:00:00:00:02/\n02:00:00:00:00:01/",
    "meta-data/network/interfaces/macs/02:00:00:00:00:01/interface-id": "eni-1",
    "meta-data/network/interfaces/macs/02:00:00:00:00:01/device-number": "0",
    "meta-data/network/interfaces/macs/02:00:00:00:00:02/interface-id": "eni-2",
    "meta-data/network/interfaces/macs/02:00:00:00:00:02/device-number": "1",
    "meta-data/network/interfaces/macs/02:00:00:00:00:02/network-card": "1",
    "meta-data/events/maintenance/scheduled": json.dumps(
        [
            {"Code": "system-reboot", "NotBefore": "24 Dec 2026 03:00:00 GMT", "State": "active"},
            {"Code": "instance-stop", "State": "completed"},
        ]
    ),
    "meta-data/spot/instance-action": json.dumps({"action": "terminate", "time": "2026-12-24T03:00:00Z"}),
}


class FakeImds(ThreadingMixIn, HTTPServer):
    """The service. `kind`: ok | off | slow | drip | junk | huge | tired (falls asleep after the document)."""

    daemon_threads = True

    def __init__(self, address: str, port: int, kind: str = "ok") -> None:
        super().__init__((address, port), Handler)
        self.kind = kind
        self.tree: Dict[str, str] = dict(TREE)
        self.asked: List[str] = []
        self.released = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """Answers like IMDSv2: nothing without a token."""

    server: FakeImds
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.server.asked.append("PUT " + self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.kind == "slow":
            self.server.released.wait()
            return
        if self.server.kind == "drip":
            # An occasional byte keeps each single read alive; only a limit for all reads together ends it.
            while not self.server.released.wait(0.2):
                self.wfile.write(b"H")
            return
        if self.server.kind == "off":
            self._say(403, "")
        elif self.server.kind == "junk":
            self.wfile.write(b"\x00\xff no HTTP at all\r\n")
            self.close_connection = True
        else:
            assert self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            self._say(200, TOKEN)

    def do_GET(self) -> None:
        self.server.asked.append("GET " + self.path)
        if self.headers.get("X-aws-ec2-metadata-token") != TOKEN:
            self._say(401, "")
            return
        if self.server.kind == "tired" and "document" not in self.path:
            self.server.released.wait()
            return
        text = self.server.tree.get(self.path[len("/latest/") :])
        if self.server.kind == "huge":
            text = "x" * 200000
        self._say(404 if text is None else 200, text or "")

    def _say(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            self.close_connection = True

    def log_message(self, *_what: Any) -> None:
        """Log nothing: tests read `asked`."""


if __name__ == "__main__":
    FakeImds(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]).serve_forever()
