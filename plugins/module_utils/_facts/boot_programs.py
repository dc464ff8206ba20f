# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units and scripts that set values while a host boots, after the files in sysctl.d and tmpfiles.d. PRIVATE.

What a program is told in its unit, or does in a script, is read; no list of programs is needed for that.
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from typing import Dict, Iterator, List, Mapping, Tuple

from .._parse import boot_commands, link_settings
from .boot_lines import LIMIT, sysctl_lines_of
from .host import Host

_UNITS = tuple(f"{root}/systemd/system" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
_GENERATED = ("/run/systemd/generator", "/run/systemd/generator.late", "/run/systemd/generator.early")
_SCRIPTS = ("/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local")
_FOLDERS = (
    "/var/lib/cloud/scripts/per-boot",
    "/etc/network/if-up.d",
    "/etc/NetworkManager/dispatcher.d",
    "/etc/networkd-dispatcher/routable.d",
)
_CRON = ("/etc/crontab", "/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs")
_SYSFS = ("/etc/sysfs.conf", "/etc/sysfs.d")
_PROGRAM = 4 << 20  # bytes that are read of a program
_MASK = "/dev/null"
_ELF = "\x7fE"  # a program begins so; all else is taken for a script
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.\\-]{1,120}(?:@[A-Za-z0-9:_.\\-]{0,100})?\.(?:service|timer)", re.ASCII)
_EXEC = re.compile(r"^Exec(?:StartPre|Start|StartPost)\s*=[ \t]*(.*)$", re.MULTILINE)
_VIRTUAL = re.compile(r"^flags\s*:.*\bhypervisor\b", re.MULTILINE)
# The words of SAP's sapconf and of notes of saptune for what others call differently.
_OF_SAP: Mapping[str, str] = {
    "THP": "/sys/kernel/mm/transparent_hugepage/enabled",
    "KSM": "/sys/kernel/mm/ksm/run",
    "GOVERNOR": boot_commands.GOVERNOR,
    "governor": boot_commands.GOVERNOR,
    "MAX_MAP_COUNT": "/proc/sys/vm/max_map_count",
    "SWAPPINESS": "/proc/sys/vm/swappiness",
    "DIRTY_BYTES": "/proc/sys/vm/dirty_bytes",
    "DIRTY_BG_BYTES": "/proc/sys/vm/dirty_background_bytes",
    "TCP_SLOW_START": "/proc/sys/net/ipv4/tcp_slow_start_after_idle",
    "IO_SCHEDULER": "/sys/block/*/queue/scheduler",
    "NRREQ": "/sys/block/*/queue/nr_requests",
    "READ_AHEAD_KB": "/sys/block/*/queue/read_ahead_kb",
}
# What services adjust all the time, by their own manuals.
_ADJUSTED: Mapping[str, Tuple[str, ...]] = {
    "bpftune.service": (  # bpftune-tcp-buffer(8), bpftune-net-buffer(8), bpftune-udp-buffer(8), read 2026-11-27
        *(f"net/ipv4/{name}" for name in ("tcp_rmem", "tcp_wmem", "tcp_mem")),
        *(f"net/core/{name}" for name in ("netdev_max_backlog", "netdev_budget", "netdev_budget_usecs", "rmem_max")),
    ),
}
_NOTES = ("/var/lib/saptune/working/notes", "/etc/saptune/extra", "/etc/saptune/override")

# File or unit, and what it sets; see boot_commands.
Found = Iterator[Tuple[str, boot_commands.Setting]]


def settings(host: Host) -> Found:
    """What is set by scripts, units and the files of programs, in no order that the host promises."""
    for path in (*_SCRIPTS, *(f"{folder}/{name}" for folder in _FOLDERS for name in host.names(folder))):
        yield from _script(host, path, path, {})
    for path in _files(host, _CRON):
        for line in (host.text(path, LIMIT) or "").splitlines():
            at_boot = re.match(r"\s*@reboot\s+(?:root\s+)?(.*)", line)
            if at_boot is not None:
                yield from _command(host, path, at_boot[1], {})
    for name, path in _enabled(host):
        yield from _unit(host, name, path)
    for path in _files(host, _SYSFS):
        for attribute, sign, value in (line.partition("=") for line in (host.text(path, LIMIT) or "").splitlines()):
            if sign and not attribute.lstrip().startswith(("#", "mode ", "owner ")):
                yield path, (f"/sys/{attribute.strip()}", value.strip())


def setter(host: Host, path: str) -> str:
    """Who seems to set a file of the kernel, by path or pattern: who has it open, or starts with the host and names it.

    The rest of a sentence; empty where nothing tells. It reads the links of all processes, and programs.
    """
    for process in filter(str.isdigit, host.names("/proc")):
        for handle in host.names(f"/proc/{process}/fd"):
            if fnmatchcase(host.link(f"/proc/{process}/fd/{handle}") or "", path):
                return f"; process {process}, {host.line(f'/proc/{process}/comm')}, has it open"
    name = "/".join(path.split("/")[-2:]).lstrip("*/")
    words = {name, name.replace("/", "."), re.sub(r"\bpolicy\*/", "", name)}
    for unit, file in _enabled(host):
        for command in _EXEC.findall(host.text(file, LIMIT) or ""):
            programs = [word for word in _words(command.lstrip("@-+!:"))[:2] if word.startswith("/")]
            for text in (host.text(program, _PROGRAM) or "" for program in programs):
                inner = re.findall(r"/(?:usr|opt|etc)/[\w./-]+", text) if text[:2] == "#!" else ()
                if any(
                    word in part
                    for part in (text, *(host.text(place, LIMIT) or "" for place in inner))
                    for word in words
                ):
                    return f"; {unit} names it, which starts after nearmetal's file was applied"
    return ""


def _files(host: Host, places: Tuple[str, ...]) -> List[str]:
    """The files of these names, and those in folders of these names."""
    inside = {place: [f"{place}/{name}" for name in host.names(place)] for place in places}
    return [path for place in places for path in inside[place] or [place]]


def _enabled(host: Host) -> Iterator[Tuple[str, str]]:
    """Name and file of each service that a target or a timer starts; none of nearmetal."""
    seen = set()
    for folder in (*_UNITS, *_GENERATED):
        for target in host.names(folder):
            for name in host.names(f"{folder}/{target}") if target.endswith((".wants", ".requires")) else ():
                if not _UNIT_NAME.fullmatch(name) or name.startswith(("nearmetal.", "nearmetal-")):
                    continue
                service = re.sub(r"\.timer$", ".service", name)
                template = re.sub(r"@.*\.", "@.", service)
                places = (f"{place}/{file}" for file in (service, template) for place in (*_UNITS, *_GENERATED))
                path = next((place for place in places if host.exists(place)), f"{folder}/{target}/{name}")
                if service not in seen and host.link(path) != _MASK:
                    seen.add(service)
                    yield service, path


def _unit(host: Host, name: str, path: str) -> Found:
    parts = [path, *(f"{place}/{name}.d/{file}" for place in _UNITS[::-1] for file in host.names(f"{place}/{name}.d"))]
    text = "\n".join(host.text(part, LIMIT) or "" for part in parts).replace("\\\n", " ")
    if not _conditions_hold(host, text):
        return
    variables: Dict[str, str] = {}
    for kind, value in re.findall(r"^(Environment|EnvironmentFile)\s*=\s*(.*)$", text, re.MULTILINE):
        if kind == "EnvironmentFile":
            variables.update(_variables(host, value.strip().lstrip("-")))
        else:
            assigned = (word.partition("=") for word in _words(value))
            variables.update({name: text for name, sign, text in assigned if sign})
    commands: List[str] = []
    for command in _EXEC.findall(text):
        commands = [*commands, command] if command else []
    for command in commands:
        yield from _command(host, name if path.startswith("/run") else path, command, variables)
    yield from ((path, (f"/proc/sys/{parameter}", None)) for parameter in _ADJUSTED.get(name, ()))
    yield from _of_sap(host, name)


def _conditions_hold(host: Host, unit: str) -> bool:
    """Whether conditions about paths and virtual machines hold; any other counts as met."""
    virtual = _VIRTUAL.search(host.text("/proc/cpuinfo", 4096) or "") is not None or host.exists("/proc/xen")
    for kind, no, word in re.findall(r"^Condition(PathExists|Virtualization)=(!?)(\S*)", unit, re.MULTILINE):
        holds = host.exists(word) if kind == "PathExists" else virtual == (word not in ("no", "false", "0", "off"))
        if holds == bool(no):
            return False
    return True


def _variables(host: Host, path: str) -> Dict[str, str]:
    """The variables of a file for EnvironmentFile=."""
    return {key: value.strip("\"'") for _section, key, value in link_settings.lines(host.text(path, LIMIT) or "")}


def _words(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _command(host: Host, owner: str, command: str, variables: Mapping[str, str]) -> Found:
    """What a command sets, and the script that it starts."""
    found = list(_named(host, owner, boot_commands.settings(command, variables)))
    yield from found
    for word in _words(command.lstrip("@-+!:"))[:2] if not found else ():
        if word.startswith("/"):
            yield from _script(host, owner, word, variables)


def _script(host: Host, owner: str, path: str, variables: Mapping[str, str]) -> Found:
    if (host.text(path, limit=2) or _ELF) != _ELF:
        yield from _named(host, owner, boot_commands.settings(host.text(path, LIMIT) or "", variables))


def _named(host: Host, owner: str, settings_of_text: Iterator[boot_commands.Setting]) -> Found:
    for name, value in settings_of_text:
        if name == boot_commands.FILE:
            for line in sysctl_lines_of(host, str(value)):
                yield owner, (f"/proc/sys/{line.name.replace('.', '/')}", line.value)
        else:
            yield owner, (name, value)


def _of_sap(host: Host, unit: str) -> Found:
    """What sapconf and saptune set: their values are in files of their own; without these nobody knows them."""
    paths = ["/etc/sysconfig/sapconf"] if unit == "sapconf.service" else []
    if unit == "saptune.service":
        chosen = _variables(host, "/etc/sysconfig/saptune")
        notes = f"{chosen.get('NOTE_APPLY_ORDER', '')} {chosen.get('TUNE_FOR_NOTES', '')}".split()
        places = [f"{folder}/{note}" for note in notes for folder in _NOTES]
        paths = [*places, *(f"{place}.conf" for place in places)]
    texts = [(path, host.text(path, LIMIT)) for path in paths]
    for path, text in texts:
        yield from _sap_file(path, text or "")
    if unit in ("sapconf.service", "saptune.service") and not any(texts_of for _path, texts_of in texts):
        yield from ((unit, (target, None)) for target in _OF_SAP.values())


def _sap_file(path: str, text: str) -> Found:
    for line in text.splitlines():
        key, sign, value = line.partition("=")
        name, word = key.strip(), value.split("#")[0].strip(" \t\"'")
        if sign and word and (name in _OF_SAP or re.fullmatch(r"(?:vm|net|kernel|fs)\.[\w.-]+", name, re.ASCII)):
            target = _OF_SAP.get(name, f"/proc/sys/{name.replace('.', '/')}")
            yield path, (target, word.rpartition(":")[2] if name in _OF_SAP else word)
