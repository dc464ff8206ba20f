# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ssh server of this machine's own, for measurements: private keys, 127.0.0.1, a free port.

`with dev.programs.sshd.running() as host:` gives its port, key and an inventory. Nothing of the system's own
ssh is read or changed; the server ends with the block.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

SERVER = "/usr/sbin/sshd"
# dpkg starts a service on installation unless this file says no (101: "action forbidden by policy").
POLICY = Path("/usr/sbin/policy-rc.d")


class SshdError(Exception):
    """A sentence that says why the server can't run, and what to do."""


@dataclass(frozen=True)
class Native:
    """A running server."""

    port: int
    key: Path
    inventory: Path
    pid: int


def install() -> None:
    """Install the server's program without starting or enabling its service."""
    if Path(SERVER).exists():
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SshdError("The native measurement needs sshd: install openssh-server; its service may stay off.")
    blocked = not POLICY.exists()
    if blocked:
        POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
        POLICY.chmod(0o755)
    try:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "-q", "-y", "install", "--no-install-recommends", "openssh-server"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    finally:
        if blocked:
            POLICY.unlink()
    if done.returncode:
        raise SshdError(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")
    if blocked and Path("/run/systemd/system").is_dir():
        subprocess.run(["systemctl", "disable", "--quiet", "ssh.service"], check=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _configure(folder: Path, port: int) -> Path:
    """Write keys, and a configuration that admits only this user, by one key; the path of the configuration."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    lines = [
        f"ListenAddress 127.0.0.1:{port}",
        f"HostKey {folder}/host",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        f"PidFile {folder}/pid",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "UsePAM no",
        "StrictModes no",
    ]
    settings = folder / "sshd_config"
    settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return settings


def _inventory(folder: Path, port: int) -> Path:
    """One host, its connection kept open between runs."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    options = [
        "-o ControlMaster=auto",
        "-o ControlPersist=120s",
        f"-o ControlPath={folder}/master",
        "-o StrictHostKeyChecking=no",
        "-o UserKnownHostsFile=/dev/null",
        "-o IdentitiesOnly=yes",
        "-o LogLevel=ERROR",
    ]
    path = folder / "inventory.ini"
    path.write_text(
        f"native ansible_host=127.0.0.1 ansible_port={port} ansible_user={user} "
        f"ansible_ssh_private_key_file={folder}/user ansible_python_interpreter={python()} "
        f"ansible_ssh_args='{' '.join(options)}'\n",
        encoding="utf-8",
    )
    return path


def python() -> str:
    """The interpreter that Ansible uses through this server: the system's, or else this one."""
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


@contextmanager
def running() -> "Iterator[Native]":
    """A running server for the length of a with statement."""
    install()
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd's privilege separation directory
    folder = Path(tempfile.mkdtemp(prefix="nm-sshd-"))
    port = _free_port()
    process = subprocess.Popen(
        [SERVER, "-D", "-e", "-f", str(_configure(folder, port))], stderr=(folder / "log").open("wb")
    )
    inventory = _inventory(folder, port)
    try:
        _wait(folder, port, process)
        yield Native(port, folder / "user", inventory, process.pid)
    finally:
        close = ["ssh", "-o", f"ControlPath={folder}/master", "-O", "exit", "native"]
        subprocess.run(close, stderr=subprocess.DEVNULL, check=False)
        process.send_signal(signal.SIGTERM)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(folder: Path, port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the server takes connections. Raises SshdError with its log when it ended."""
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise SshdError(f"sshd did not start:\n{(folder / 'log').read_text(encoding='utf-8', errors='replace')}")
