# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes as files of /proc, as the kernel shows them: for hosts as data."""

from __future__ import annotations

from typing import Dict, List, Sequence

# The kernel's header and line for IPv4 (net/ipv4/tcp_ipv4.c); every line is padded to 149 characters.
_HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
_LINE = (
    "{:4d}: {}:{:04X} {}:{:04X} {:02X} 00000000:00000000 00:00000000 00000000 {:5d}        0 {} 1"
    " 0000000000000000 100 0 0 10 0"
)
_LISTENS, _ESTABLISHED = 0x0A, 0x01
HOSTS_PIDS, HOSTS_NET = 4026531836, 4026531840


def process(
    pid: int,
    comm: str,
    executable: str = "",
    line: Sequence[str] = (),
    ports: Sequence[int] = (),
    connections: int = 0,
    pids: int = HOSTS_PIDS,
    net: int = HOSTS_NET,
) -> Dict[str, str]:
    """The files of a process that listens on `ports` and has `connections`; without an executable it has ended."""
    place = f"/proc/{pid}"
    files = {f"{place}/comm": f"{comm}\n", f"{place}/cmdline": "\0".join([*(line or [comm]), ""])}
    if not executable:
        return files
    files[f"{place}/exe"] = f"-> {executable}"
    files[f"{place}/ns/pid"] = f"-> pid:[{pids}]"
    files[f"{place}/ns/net"] = f"-> net:[{net}]"
    rows = [_HEADER]
    number = 4
    files[f"{place}/fd/0"] = "-> /dev/null"
    files[f"{place}/fd/3"] = "-> /srv/hunter2/appendonly.aof"
    states = [(port, _LISTENS) for port in ports] + [(50000, _ESTABLISHED)] * connections
    for port, state in states:
        inode = pid * 1000 + number
        rows.append(_LINE.format(number, "0100007F", port, "FE071F0A", 443, state, 112, inode).ljust(149))
        files[f"{place}/fd/{number}"] = f"-> socket:[{inode}]"
        number += 1
    files[f"{place}/net/tcp"] = "\n".join(rows) + "\n"
    return files


def together(*processes: Dict[str, str]) -> Dict[str, str]:
    """The files of a host's processes: those of one network see one table, in which listening sockets come first."""
    files = {path: text for files_of_process in processes for path, text in files_of_process.items()}
    networks: Dict[str, List[str]] = {}
    for path, text in files.items():
        if path.endswith("/net/tcp"):
            rows = networks.setdefault(files[path.replace("/net/tcp", "/ns/net")], [])
            rows += text.splitlines()[1:]
    for path in files:
        if path.endswith("/net/tcp"):
            rows = networks[files[path.replace("/net/tcp", "/ns/net")]]
            files[path] = "\n".join([_HEADER, *sorted(rows, key=lambda row: " 0A " not in row)]) + "\n"
    return files


def first() -> Dict[str, str]:
    """The first process of the host."""
    return process(1, "systemd", "/usr/lib/systemd/systemd")
