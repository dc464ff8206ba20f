# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a benchmark from running on this host, each in one sentence. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
import resource
import socket
from typing import Optional

from ..._error import NearmetalError
from ..._facts.host import Host
from ..._number import is_number
from ..._parse import kernel_counters, mountinfo, os_release
from ..tools.benchmark import INSTALLS, Limits, Tool
from .processes import NOBODY, argv_for, program_path

_FREE_SHARE = 0.1  # of a file system that is left free in any case
_MIB = 1024 * 1024
_OTHER_FILES = 128  # of one process: its own, and those that Redis keeps free for itself
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})+", re.ASCII)


def family(host: Host) -> Optional[str]:
    """The family of this host's distribution, one of INSTALLS; None for any other."""
    release = os_release.parse(host.text("/etc/os-release") or "")
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    names = ["fedora" if name == "rhel" else name for name in names]
    return next((name for name in names if name in INSTALLS), None)


def program_of(tool: Tool) -> Optional[str]:
    """The name by which a tool can be started here; None if it isn't installed."""
    return next((name for name in (tool.program, *tool.also) if program_path(name)), None)


def require_tool(host: Host, tool: Tool) -> None:
    """Raises NearmetalError for a program that isn't installed, with the package that has it."""
    if program_of(tool):
        return
    if tool.program.startswith("/"):
        raise NearmetalError(f"{tool.program} isn't a program that this host can start: build it, and set `path`")
    distribution = family(host)
    package = tool.packages.get(distribution or "")
    if distribution is None or package is None:
        raise NearmetalError(
            f"{tool.program} isn't installed, and no package of this distribution is known to have it: install it"
            " yourself, in a folder such as /usr/local/bin"
        )
    advice = f"run `{INSTALLS[distribution]} {package}` on the host"
    if tool.service and distribution == "debian":
        advice += f"; it starts a service, unless you run `systemctl mask {tool.service}` first"
    raise NearmetalError(f"{tool.program} isn't installed: {advice}")


def require_version(tool: Tool, version: str, answer: str) -> None:
    """Raises NearmetalError for a program that is too old, by what it says about itself."""
    number = _VERSION.search(version)
    if tool.oldest and (number is None or tuple(map(int, number[0].split("."))) < tool.oldest):
        oldest = ".".join(map(str, tool.oldest))
        raise NearmetalError(f"the benchmark needs {tool.program} {oldest} or newer; this host has {version!r}")
    if tool.has not in answer:
        raise NearmetalError(
            f"the benchmark needs a newer {tool.program}, with the option {tool.has}; this host has {version!r}"
        )


def require_setpriv() -> None:
    """Raises NearmetalError where root can't start a program as nobody."""
    if argv_for(["true"], as_root=False)[0] == "setpriv" and not program_path("setpriv"):
        raise NearmetalError(f"setpriv, of util-linux, isn't installed: it starts the benchmark as user {NOBODY}")


def require_connections(host: Host, limits: Limits) -> None:
    """Raises NearmetalError where one process may not hold so many connections, or has not the ports for them."""
    if not limits.connections:
        return
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if files != resource.RLIM_INFINITY and limits.connections > files - _OTHER_FILES:
        raise NearmetalError(
            f"the benchmark holds {limits.connections} connections; `ulimit -Hn` leaves room for"
            f" {max(files - _OTHER_FILES, 0)}: give it fewer"
        )
    ends = (host.line("/proc/sys/net/ipv4/ip_local_port_range") or "").split()
    if len(ends) == 2 and all(map(is_number, ends)) and limits.connections > int(ends[1]) - int(ends[0]):
        raise NearmetalError(
            f"the benchmark holds {limits.connections} connections to one port; net.ipv4.ip_local_port_range has ports"
            f" from {ends[0]} to {ends[1]}: give it fewer"
        )


def require_memory(host: Host, limits: Limits) -> None:
    """Raises NearmetalError where a run would take memory that the host's own programs use."""
    available = kernel_counters.parse_meminfo(host.text("/proc/meminfo") or "").get("MemAvailable")
    if available is not None and limits.needs_mib > available // _MIB:
        raise NearmetalError(
            f"the benchmark needs {limits.needs_mib} MiB of memory; the host has {available // _MIB} MiB available"
        )


def require_disk(host: Host, folder: str, limits: Limits) -> None:
    """Raises NearmetalError where the files of a run would be in memory."""
    if not limits.disk_mib:
        return
    place = os.path.join(os.path.realpath(folder), "")
    mounts = mountinfo.parse(host.text("/proc/self/mountinfo") or "")
    within = [mount for mount in mounts if place.startswith(os.path.join(mount.point, ""))]
    mount = max(within, key=lambda mount: len(mount.point), default=None)
    if mount is not None and mount.kind in ("tmpfs", "ramfs"):
        raise NearmetalError(f"{folder} is in memory ({mount.kind} on {mount.point}): choose a directory on a disk")


def require_room(folder: str, limits: Limits) -> None:
    """Raises NearmetalError where the files of a run don't fit, with a tenth of the file system left free."""
    try:
        room = os.statvfs(folder)
    except OSError as error:
        raise NearmetalError(f"{folder} can't hold the benchmark's files: {os.strerror(error.errno or 0)}") from None
    available = (room.f_bavail - _FREE_SHARE * room.f_blocks) * room.f_frsize / _MIB
    if limits.disk_mib and limits.disk_mib > available:
        raise NearmetalError(
            f"{folder} has room for {max(available, 0):.0f} MiB if a tenth stays free; the benchmark writes"
            f" {limits.disk_mib} MiB: give it less, or another folder"
        )


def require_port(port: int, takes_over: bool = True) -> None:
    """Raises NearmetalError for a port on which something listens, or on which connections still end."""
    if not port:
        return
    reason = _refused(port, takes_over=True)
    if not reason and not takes_over and _refused(port, takes_over=False):
        reason = "connections of an earlier run still end there, for at most a minute"
    if reason:
        raise NearmetalError(f"port {port} can't be used ({reason}): set another `port` among the benchmark's options")


def _refused(port: int, takes_over: bool) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(takes_over))
        try:
            server.bind(("", port))
        except OSError as error:
            return os.strerror(error.errno or 0)
    return ""
