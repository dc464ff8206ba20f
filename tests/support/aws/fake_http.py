# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP in front of the fake AWS."""

from __future__ import annotations

import threading
import traceback
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional, Tuple

from tests.support.aws import wire
from tests.support.aws.fake_aws import FakeAws, Fault, LostAnswer, Raw
from tests.support.aws.fake_error import AwsError


class Handler(BaseHTTPRequestHandler):
    """HTTP in front of a FakeAws."""

    protocol_version = "HTTP/1.1"
    aws: FakeAws

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        target = self.headers.get("X-Amz-Target")
        service, operation, request = wire.json_request(target, body) if target else wire.form_request(body)
        fault = self.aws.count(operation, request)
        if fault and fault.kind == "hang":
            self.aws.released.wait()
            return
        try:
            answer = self.aws.respond(operation, request, self._caller(), fault)
            content, status = self._content(service, operation, answer), 200
        except LostAnswer:
            self.close_connection = True
            return
        except AwsError as error:
            code_and_message = (error.code, str(error))
            content, status = (
                wire.json_error(*code_and_message) if target else wire.xml_error(service, *code_and_message),
                error.status,
            )
        except AssertionError as error:
            self.aws.problems.append(str(error))
            content, status = b"", 500
        if fault and fault.kind == "html":
            content, status = b"<html>a proxy says hello", 200
        self._send(status, content, fault)

    def _caller(self) -> Tuple[str, str]:
        """The account and region in the signature; an assumed role's key is made of its account."""
        key, _day, region = self.headers["Authorization"].split("Credential=")[1].split("/")[:3]
        return (key[4:] if key.startswith("ASIA") else "111111111111"), region

    @staticmethod
    def _content(service: str, operation: str, answer: Raw) -> bytes:
        if service in wire.JSON:
            return wire.json_answer(service, operation, answer)
        return wire.xml_answer(service, operation, answer)

    def _send(self, status: int, content: bytes, fault: Optional[Fault]) -> None:
        self.send_response_only(status)
        now = self.aws.now() + timedelta(seconds=fault.seconds_off if fault else 0)
        self.send_header("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault and fault.kind == "cut":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        self.wfile.write(content)

    def log_message(self, *_what: Any) -> None:
        """Log nothing: tests report what matters."""


class Server(ThreadingHTTPServer):
    """A server whose own errors fail the test."""

    def handle_error(self, _request: Any, _address: Any) -> None:
        """Keep the error for the end of the test."""
        handler: Any = self.RequestHandlerClass
        handler.aws.problems.append(traceback.format_exc())


def serve(aws: FakeAws) -> ThreadingHTTPServer:
    """The server, on a port of its own choice."""
    server = Server(("127.0.0.1", 0), type("FakeHandler", (Handler,), {"aws": aws}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server
