# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's programs, run on hosts of the lab."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.host import Host, inventory

PIPELINED = {"ANSIBLE_PIPELINING": "true"}


def inventory_of(folder: Path, *hosts: Host) -> Path:
    """An inventory of these hosts, written in the folder."""
    path = folder / "hosts.ini"
    path.write_text(inventory.ansible(hosts), encoding="utf-8")
    return path


def playbook(name: str, hosts: Path, variables: Mapping[str, object]) -> list[str]:
    """The command that runs a playbook of the collection on the hosts of an inventory."""
    return ["ansible-playbook", "-i", str(hosts), f"nearmetal.ec2.{name}", "-e", json.dumps(variables)]


def run(
    arguments: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command; its errors are in its output."""
    return subprocess.run(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        check=False,
    )


def module(name: str, host: Host, folder: Path, options: Mapping[str, object], *arguments: str) -> dict[str, Any]:
    """What a module of the collection returned on a host."""
    given = ["-a", json.dumps(options)] if options else []
    hosts = str(inventory_of(folder, host))
    done = run(["ansible", "-i", hosts, "all", "-m", f"nearmetal.ec2.{name}", *given, *arguments])
    assert done.returncode == 0, done.stdout
    result: dict[str, Any] = json.loads(done.stdout.partition("=> ")[2])
    return result
