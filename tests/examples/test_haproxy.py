# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks of docs/examples with a real HAProxy, in front of two servers of this process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from dev.programs.unpacked import HAPROXY
from tests.support.simulated import ROOT

PATIENCE = 120  # seconds that a busy machine may take
CONFIG = """global
 stats socket {folder}/admin level admin
defaults
 mode http
 timeout connect 10s
 timeout client 120s
 timeout server 120s
frontend one
 bind unix@{folder}/front
 default_backend web
backend web
 use-server web-1 if {{ path /slow }}
 server web-1 127.0.0.1:{ports[0]} check inter 200
 server web-2 127.0.0.1:{ports[1]} check inter 200
"""
PLAY = """
- hosts: web-1
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: nearmetal.ec2.rollout, tasks_from: hook.yml}
      vars: {rollout_hook: "{{ hook }}"}
"""


class Web(ThreadingHTTPServer):
    """A server that says its name, of a slow request not before it may."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = name
        self.asked, self.may_answer = threading.Event(), threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.server.asked.set()
            self.server.may_answer.wait(PATIENCE)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.name.encode())

    def log_message(self, *_words: Any) -> None:
        """Nothing."""


class Balanced:
    """HAProxy in front of two servers, and Ansible beside it."""

    def __init__(self, folder: Path, servers: List[Web]) -> None:
        self.folder, self.servers = folder, servers
        libraries = ":".join(map(str, HAPROXY.home.glob("usr/lib/*-linux-gnu")))
        programs = f"{HAPROXY.home}/usr/bin:{os.environ['PATH']}"
        self.environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "PATH": programs}
        self.environment["ANSIBLE_CONFIG"] = str(folder / "ansible.cfg")
        self.environment["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / ".ansible/collections")
        (folder / "config").write_text(CONFIG.format(folder=folder, ports=[server.server_port for server in servers]))
        (folder / "ansible.cfg").write_text("[defaults]\n")
        (folder / "play.yml").write_text(PLAY)
        (folder / "sudo").write_text('#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n')
        (folder / "sudo").chmod(0o755)
        hosts: Dict[str, Any] = {"web-1": {}, "web-2": {}, "balancer": {}}
        own = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "ansible_become_exe": str(folder / "sudo"),
            "haproxy_socket": str(folder / "admin"),
        }
        group = {"haproxy": {"hosts": {"balancer": {}}}}
        (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": own, "children": group}}))

    def hook(self, moment: str, backend: str = "web") -> "subprocess.Popen[str]":
        """Begin to do what comes before or after a host."""
        given = {"hook": str(ROOT / f"docs/examples/haproxy_{moment}.yml"), "haproxy_backend": backend}
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        words = [program, "-i", str(self.folder / "hosts.json"), str(self.folder / "play.yml"), "-e", json.dumps(given)]
        return subprocess.Popen(
            words,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def get(self, path: str = "/") -> str:
        """Which server answers a request."""
        return self._said("front", f"GET {path} HTTP/1.0\r\n\r\n").rpartition("\r\n\r\n")[2]

    def states(self) -> Dict[str, str]:
        """What HAProxy says of each server."""
        rows = [
            line.split(",") for line in self._said("admin", "show stat\n").splitlines() if line.startswith("web,web-")
        ]
        return {row[1]: row[17] for row in rows}

    def _said(self, name: str, text: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.folder / name))
            connection.sendall(text.encode())
            with connection.makefile("r", newline="") as stream:
                return stream.read()


@pytest.fixture
def balanced(tmp_path: Path) -> Iterator[Balanced]:
    """HAProxy, as soon as it finds both servers healthy."""
    servers = [Web("web-1"), Web("web-2")]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    found = Balanced(tmp_path, servers)
    command = [HAPROXY.path("usr/sbin/haproxy"), "-db", "-f", str(tmp_path / "config")]
    with subprocess.Popen(command, env=found.environment) as running:
        while running.poll() is None and not (tmp_path / "front").exists():
            pass
        yield found
        for server in servers:
            server.may_answer.set()
            server.shutdown()
            server.server_close()
        running.terminate()


def test_a_host_is_drained_before_its_tuning_and_asked_again_after_it(balanced: Balanced) -> None:
    first = balanced.servers[0]
    answers: List[str] = []
    slow = threading.Thread(target=lambda: answers.append(balanced.get("/slow")))
    slow.start()
    assert first.asked.wait(PATIENCE)
    with balanced.hook("before") as before:
        while before.poll() is None and balanced.states()["web-1"] != "DRAIN":
            pass
        assert {balanced.get() for _request in range(6)} == {"web-2"}
        assert before.poll() is None, "a request of the host isn't answered yet"
        first.may_answer.set()
        slow.join()
        assert before.wait() == 0, before.stdout.read()
    assert answers == ["web-1"]
    with balanced.hook("after") as after:
        assert after.wait() == 0, after.stdout.read()
    assert balanced.states()["web-1"] == "UP"
    assert {balanced.get() for _request in range(6)} == {"web-1", "web-2"}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_server_that_haproxy_doesnt_know_fails(balanced: Balanced, moment: str) -> None:
    with balanced.hook(moment, "shop") as ran:
        assert ran.wait() == 2
        assert "No such" in ran.stdout.read()
