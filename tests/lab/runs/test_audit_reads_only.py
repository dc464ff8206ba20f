# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit writes nothing on a host: every system call of its module is checked."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from lab.host import instance, inventory

ROOT = Path(__file__).resolve().parents[3]
TRACE = "/root/audit.trace"
# The interpreter that Ansible starts: the real one, under strace.
TRACER = f"""#!/bin/sh
exec strace -f -y -qq -s 300 -o {TRACE} \\
  -e trace=%file,%network,ioctl,fchmod,fchown,ftruncate,mount,bpf /usr/bin/python3 "$@"
"""
# The folder of AnsiballZ, and the file with which Python tests whether /tmp is writable.
OWN = re.compile(r'["<](/root/\.ansible/tmp/|/tmp/ansible_|/dev/null|/tmp/[a-z0-9_]{8}[">])')
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
CHANGES = (
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "mknod",
    "mknodat",
    "chmod",
    "fchmod",
    "fchmodat",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "truncate",
    "ftruncate",
    "mount",
    "setxattr",
    "utime",
    "utimensat",
    "bpf",
)
# Terminal and file-flag requests, which Python sends by itself, and requests to NIC drivers: strace doesn't
# show which, but Host.ethtool refuses every record that isn't one (test_network.py).
HARMLESS_IOCTL = re.compile(r"TCGETS|TIOCGWINSZ|FIOCLEX|FIONREAD|SIOCETHTOOL")


def forbidden(line: str) -> bool:
    """Whether a line of strace shows a change outside the module's own temporary directory."""
    call = re.match(r"\d+\s+(\w+)\(", line)
    if call is None or OWN.search(line):
        return False
    name = call.group(1)
    if name in ("open", "openat", "openat2", "creat"):
        return bool(WRITES.search(line))
    if name == "ioctl":
        return not HARMLESS_IOCTL.search(line)
    if name in ("socket", "sendto", "sendmsg"):
        return "NETLINK" in line or "AF_INET" in line
    return name in CHANGES


def test_the_tracer_sees_a_write() -> None:
    assert forbidden('7 openat(AT_FDCWD, "/etc/tmpfiles.d/x", O_WRONLY|O_CREAT, 0666) = 3')
    assert forbidden('7 rename("/etc/a", "/etc/b") = 0')
    assert not forbidden('7 openat(AT_FDCWD, "/proc/cpuinfo", O_RDONLY|O_CLOEXEC) = 3')
    assert not forbidden('7 unlink("/tmp/ansible_x/a") = 0')
    assert not forbidden("7 ftruncate(3</tmp/ansible_x/a.zip>, 5) = 0")
    assert forbidden("7 ftruncate(3</etc/fstab>, 5) = 0")


def test_audit_changes_nothing(tmp_path: Path) -> None:
    with instance.running("default", "audit-reads-only") as host:
        host.put(TRACER.encode(), "/root/tracer", mode="0755")
        lines = inventory.ansible([host]).replace("/usr/bin/python3", "/root/tracer")
        hosts = tmp_path / "hosts.ini"
        hosts.write_text(lines)
        done = subprocess.run(
            ["ansible-playbook", "nearmetal.ec2.in_memory_database", "--check", "-i", str(hosts)],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_PIPELINING": "true"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "would change" in done.stdout, "nothing was planned, so nothing was proven"
        trace = host.run(f"cat {TRACE}").splitlines()
    assert any("current_clocksource" in line for line in trace), "the module was not traced"
    assert [line for line in trace if forbidden(line)] == []
