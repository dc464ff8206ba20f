# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user data of docs/examples, checked by cloud-init itself and made a script by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from dev import ROOT
from dev.programs.unpacked import CLOUD_INIT, MODULES

EXAMPLE = ROOT / "docs/examples/user-data"
HOME = CLOUD_INIT.home / MODULES


def cloud_init(*words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def check(file: Path) -> "subprocess.CompletedProcess[str]":
    return cloud_init(CLOUD_INIT.path("usr/bin/cloud-init"), "schema", "--config-file", str(file))


def test_cloud_init_takes_the_user_data(tmp_path: Path) -> None:
    done = check(EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(EXAMPLE.read_text().replace("runcmd:\n", "runcmd: 5\nbootcmd:\n"))
    assert check(wrong).returncode == 1, "it would notice a mistake"
    # Its schema accepts unknown keys at the top, where cloud-init ignores them.
    schema = json.loads((HOME / "cloudinit/config/schemas/schema-cloud-config-v1.json").read_text())
    known = {key for part in schema["$defs"].values() for key in part.get("properties", {})}
    assert set(yaml.safe_load(EXAMPLE.read_text())) <= known


def test_the_script_of_the_first_boot_stops_at_the_first_error(tmp_path: Path) -> None:
    lines = yaml.safe_load(EXAMPLE.read_text())["runcmd"]
    shellify = f"from cloudinit.util import shellify; print(shellify({lines!r}))"
    script = cloud_init("-c", shellify).stdout
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0, script
    stub = tmp_path / "python3"
    stub.write_text("#!/bin/sh\nexit 7\n")
    stub.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(["sh"], input=script, text=True, env=environment, check=False).returncode == 7
