# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units and scripts that set values while a host boots, after the files in sysctl.d and tmpfiles.d. PRIVATE.

What a program is told in its unit, or does in a script, is read; no list of programs is needed for that.
"""

from __future__ import annotations

import os
import re
import shlex
from fnmatch import fnmatchcase
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from .._parse import boot_commands, link_settings
from . import boot_units, sysctl
from .boot_lines import LIMIT, ROOTS, sysctl_lines_of
from .boot_units import variables_of
from .host import Host
from .native_files import is_nearmetal_file

# Each is a script, or a folder of scripts; those of network managers run whenever an interface comes up.
_SCRIPTS = (
    "/etc/rc.local",
    "/etc/rc.d/rc.local",
    "/etc/init.d/boot.local",
    "/var/lib/cloud/scripts/per-boot",
    *(f"/etc/cron.{often}" for often in ("hourly", "daily", "weekly", "monthly")),
    *("/etc/profile", "/etc/profile.d", "/root/.profile", "/root/.bash_profile", "/root/.bashrc"),  # at a login
    "/sbin/ifup-local",
    "/etc/network/if-pre-up.d",
    "/etc/network/if-up.d",
    *(f"/etc/dhcp/dhclient{part}" for part in (".d", "-enter-hooks", "-enter-hooks.d", "-exit-hooks", "-exit-hooks.d")),
    *(
        f"{root}/NetworkManager/dispatcher.d{part}"
        for root in ("/etc", "/usr/lib")
        for part in ("", "/pre-up.d", "/no-wait.d")
    ),
    *(
        f"{root}/networkd-dispatcher/{state}.d"
        for root in ("/etc", "/usr/lib")
        for state in ("carrier", "configured", "configuring", "degraded", "routable")
    ),
)
_OF_USERS = "/var/spool"
_CRON = ("/etc/crontab", "/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs", "/var/spool/cron/tabs")
_JOB = re.compile(r"\s*-?(?:@\w+|(?:[\w*][\w*/,~-]*\s+){4}[\w*/,~-]+)\s+(?:root\s+)?(?=\S)(.*)")
_ANACRON = re.compile(r"\s*(?:\d+|@\w+)\s+\d+\s+\S+\s+(.*)")
_INIT = tuple(f"/etc/{folder}rc{level}.d" for folder in ("", "rc.d/", "init.d/") for level in "S2345")
_CLOUD = ("/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d")
_WORDS_OF_LIST = re.compile(r""""[^"]*"|'[^']*'|[^,\s\[\]]+""")
_SYSCTL = tuple(f"{root}/sysctl.d/" for root in ROOTS)
_SYSFS = ("/etc/sysfs.conf", "/etc/sysfs.d")
_PROGRAM = 4 << 20  # bytes that are read of a program
_ELF = "\x7fE"  # a program begins so; all else is taken for a script
_NOT_SHELL = re.compile(r"#!.*\b(?:python|perl|ruby|node|lua)")
_WRITES = re.compile(r"""["'][wa]\+?["']|write|>""")
_KERNEL_FILE = re.compile(r"/(?:sys|proc/sys)/[\w./*-]+")
_HOLE = re.compile(r"""["']\s*[+.]\s*\w+\s*[+.]\s*["']|\{[^{}\n]{0,40}\}|%s|\$\w+|#\*""")  # in a text of theirs
_NAMED_FILE = re.compile(r"""^\s*(?:my\s+)?[$@]?(\w+)\s*=.*?["'](/(?:sys|proc/sys)/[^"']+)["']""")
_FUNCTION = re.compile(r"^(?:def|sub|function)\s+(\w+)|^(?=\S)")
_RUNS = re.compile(r"\b(?:subprocess|Popen|check_call|check_output|system|exec\w*|spawn\w*|run)\b[\w.]{0,80}\s*\(")
_WORD = re.compile(r"\w+")
_TEXTS = re.compile(r"""["']([^"']*)["']""")
_OWN_PROGRAMS = ("/usr/local/sbin", "/usr/local/bin")  # those of a site, which scripts call without a folder
_MANAGERS, _VERBS = ("systemctl", "service"), ("start", "restart", "reload-or-restart", "try-restart")
_MOST_SCRIPTS, _MOST_OF_JOBS = 16, 64  # that start or read each other; that the jobs of a file start
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
# What services set by programs that aren't read, by their own manuals and sources; None is what they compute.
_ADJUSTED: Mapping[str, Mapping[str, Optional[str]]] = {
    # bpftune-tcp-buffer(8), bpftune-net-buffer(8), bpftune-udp-buffer(8), read 2026-11-27; all the time
    "bpftune.service": dict.fromkeys(
        (
            *(f"/proc/sys/net/ipv4/{name}" for name in ("tcp_rmem", "tcp_wmem", "tcp_mem")),
            *(f"/proc/sys/net/core/netdev_{name}" for name in ("max_backlog", "budget", "budget_usecs")),
            "/proc/sys/net/core/rmem_max",
        )
    ),
    # scylla_prepare starts perftune.py for the interface and the disks, read 2026-11-28
    "scylla-server.service": {
        **dict.fromkeys(f"network.{name} $IFNAME" for name in ("affinity", "rps", "rfs", "xps")),
        **dict.fromkeys(f"/proc/sys/net/{name}" for name in ("core/rps_sock_flow_entries", "ipv4/tcp_mem")),
        **dict.fromkeys((f"/proc/sys/net/{name}" for name in ("core/somaxconn", "ipv4/tcp_max_syn_backlog")), "4096"),
        "/sys/block/*/queue/scheduler": "none",
        "/sys/block/*/queue/nomerges": "2",
    },
}
# A service that sets all of that only where one of these of its variables is yes.
_ASKED_BY: Mapping[str, Tuple[str, ...]] = {"scylla-server.service": ("SET_NIC_AND_DISKS", "SET_NIC")}
_NOTES = ("/var/lib/saptune/working/notes", "/etc/saptune/extra", "/etc/saptune/override")

# File or unit, and what it sets; see boot_commands.
Found = Iterator[Tuple[str, boot_commands.Setting]]


class _Read:
    """What was read on the way: each file once, so that those which name each other come to an end."""

    def __init__(self, most: int = _MOST_SCRIPTS) -> None:
        self._most = most
        self._asked: Set[Tuple[str, str]] = set()
        self._counts: Dict[str, int] = {}

    def first(self, kind: str, path: str) -> bool:
        """Whether a file, or a pattern of files, is asked for the first time, and not too many were taken."""
        fresh = (kind, path) not in self._asked and self._counts.get(kind, 0) < self._most
        self._asked.add((kind, path))
        return fresh

    def take(self, kind: str, path: str) -> bool:
        """As `first`, and count one that is read."""
        return self.first(kind, path) and self.count(kind)

    def count(self, kind: str) -> bool:
        """Count one that is read."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return True


def settings(host: Host, more: Iterable[str] = ()) -> Found:
    """What is set by scripts, units and the files of programs, in no order that the host promises.

    `more` are units that udev rules start.
    """
    for path in _files(host, _SCRIPTS):
        yield from script(host, path, path, {})
    for path in _files(host, _CRON):
        read = _Read(_MOST_SCRIPTS if path.startswith(_OF_USERS) else _MOST_OF_JOBS)
        for job in map(_JOB.match, (host.text(path, LIMIT) or "").splitlines()):
            if job is not None:
                yield from commands(host, path, job[1], {}, read)
    for job in map(_ANACRON.match, (host.text("/etc/anacrontab", LIMIT) or "").splitlines()):
        yield from commands(host, "/etc/anacrontab", job[1], {}) if job is not None else ()
    for path in (path for path in _files(host, _CLOUD) if path.endswith(".cfg")):
        yield from commands(host, path, _boot_commands_of_cloud(host.text(path, LIMIT) or ""), {})
    for unit in boot_units.started(host, more):
        yield from _unit(host, unit)
    for folder in _INIT:
        for name in host.names(folder):
            path = f"/etc/init.d/{name[3:]}"
            service = re.sub(r"(?:\.sh)?$", ".service", name[3:], count=1)  # as systemd-sysv-generator(8) calls it
            if name.startswith("S") and not boot_units.has_file(host, service):
                yield from script(host, path, path, {"1": "start"})
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
    names = {name, name.replace("/", "."), re.sub(r"\bpolicy\*/", "", name)}
    for unit in boot_units.started(host):
        for command in unit.commands:
            programs = [word for word in boot_commands.words_of(command)[:2] if word.startswith("/")]
            for text in (host.text(program, _PROGRAM) or "" for program in programs):
                inner = re.findall(r"/(?:usr|opt|etc)/[\w./-]+", text) if text[:2] == "#!" else ()
                if any(
                    word in part
                    for part in (text, *(host.text(place, LIMIT) or "" for place in inner))
                    for word in names
                ):
                    return f"; {unit.name} names it, which starts after nearmetal's file was applied"
    return ""


def _files(host: Host, places: Tuple[str, ...]) -> List[str]:
    """The files of these names, and those in folders of these names."""
    inside = {place: [f"{place}/{name}" for name in host.names(place)] for place in places}
    return [path for place in places for path in inside[place] or [place]]


def _boot_commands_of_cloud(text: str) -> str:
    """The commands below `bootcmd`, which cloud-init runs at each boot, a line each.

    A command may be a list of words, of which each may have a line of its own.
    """
    block = re.search(r"^bootcmd:[ \t]*(\[.*|)(?:#.*)?\n?((?:[ -].*\n?|\n)*)", text, re.MULTILINE)
    listed = re.findall(r"""\[[^\[\]]*\]|"[^"]*"|'[^']*'|[^\[\],"']+""", block[1][1:] if block else "")
    text = re.sub(r"^( *)-[ \t]*(?:\n *)?- +", r"\1- \n\1  - ", block[2] if block else "", flags=re.MULTILINE)
    first = re.match(r" *", text)
    inner = "\n" + " " * (len(first[0]) + 2 if first is not None else 2) + "- "
    lines = (re.sub(r"^[ \t]*(?:- *)?", "", line) for line in text.replace(inner, " ").splitlines())
    return "\n".join(
        " ".join(shlex.quote(word.strip("\"'")) for word in _WORDS_OF_LIST.findall(item))
        if item.startswith("[")
        else item.strip("'\"")
        for item in (*listed, *lines)
    )


def _unit(host: Host, unit: boot_units.Unit) -> Found:
    owner = unit.name if unit.path.startswith("/run") else unit.path
    for command in unit.commands:
        yield from commands(host, owner, command.replace("$$", "$"), unit.variables)
    if "yes" in map(unit.variables.get, _ASKED_BY.get(unit.name, ())) or unit.name not in _ASKED_BY:
        interface = unit.variables.get("IFNAME", "*")
        adjusted = _ADJUSTED.get(unit.name, {}).items()
        yield from ((owner, (name.replace("$IFNAME", interface), value)) for name, value in adjusted)
    yield from _of_sap(host, unit.name)


def script(host: Host, owner: str, path: str, variables: Mapping[str, str], read: Optional[_Read] = None) -> Found:
    """What a script sets, with those that it reads or starts; of one for another program, the files that it writes."""
    read = _Read() if read is None else read
    if not read.first(boot_commands.SCRIPT, path) or (_text(host, path, limit=2) or _ELF) == _ELF:
        return
    read.count(boot_commands.SCRIPT)
    text = _text(host, path)
    if _NOT_SHELL.match(text) or path.endswith((".py", ".pl", ".rb")):
        for name, command in dict.fromkeys(_of_language(text)):
            yield from [(owner, (name, None))] if name else commands(host, owner, command, {"0": path}, read)
        return
    yield from commands(host, owner, text, {**variables, "0": path}, read)


def _text(host: Host, path: str, limit: int = LIMIT) -> str:
    """Of a script; nothing of the kernel's files, of which any user may name one: /proc/kmsg loses what is read."""
    kernel = tuple(f"{os.path.realpath(host.real(top))}/" for top in ("/proc", "/sys"))
    of_kernel = "\0" in path or os.path.realpath(host.real(path)).startswith(kernel)
    return "" if of_kernel else host.text(path, limit) or ""


def _of_language(text: str) -> Iterator[Tuple[str, str]]:
    """A file that a script in Python, Perl or Ruby writes; or else a command that it starts."""
    files: Dict[str, List[str]] = {}
    writers: Set[str] = set()
    function, lines = "", text.splitlines()
    for line in lines:
        named, defined = _NAMED_FILE.match(line), _FUNCTION.match(line)
        function = defined[1] or "" if defined is not None else function
        if named is not None:
            files[named[1]] = [*files.get(named[1], []), _HOLE.sub("*", named[2])][:_MOST_SCRIPTS]
        if function and _WRITES.search(line):
            writers.add(function)
    for line in lines:
        words = set(_WORD.findall(line))
        if line.lstrip().startswith("#") or _NAMED_FILE.match(line):
            continue
        if _WRITES.search(line) or words & writers:
            named_here = [path for word in sorted(words & set(files)) for path in files[word]]
            yield from ((path, "") for path in (*_KERNEL_FILE.findall(_HOLE.sub("*", line)), *named_here))
        if _RUNS.search(line):
            yield "", " ".join(_TEXTS.findall(line))


def _programs_of(host: Host, path: str) -> List[str]:
    """The files of a program's path or pattern; one without a folder is one of the site's."""
    if "/" not in path:
        return [f"{folder}/{path}" for folder in _OWN_PROGRAMS]
    if re.search(r"[*?\[]", path):
        return boot_units.matching(host, path)
    return [path]


def commands(host: Host, owner: str, text: str, variables: Mapping[str, str], read: Optional[_Read] = None) -> Found:
    """What commands set, and the scripts that they start."""
    read = _Read() if read is None else read
    for name, value in boot_commands.settings(text, variables, lambda path: _text(host, path)):
        if name == boot_commands.SCRIPT:
            path, *given = boot_commands.words_of(str(value))
            starts = path.rpartition("/")[2] in _MANAGERS and {*given} & {*_VERBS}
            if starts and read.take("unit", " ".join(given)):
                for unit in boot_units.named(host, (word for word in given if word not in _VERBS)):
                    for command in unit.commands:
                        yield from commands(host, unit.path, command.replace("$$", "$"), unit.variables, read)
            numbered = {str(number): word for number, word in enumerate(given, 1)}
            patterns = "/" in path and re.search(r"[*?\[]", path)
            for program in _programs_of(host, path) if not patterns or read.take("pattern", path) else ():
                yield from script(host, owner, program, {**variables, **numbered}, read)
        elif name == boot_commands.FILE and read.take(name, str(value)):
            paths = boot_units.matching(host, str(value)) if "*" in str(value) else [str(value)]
            if paths != [value] and str(value).startswith(_SYSCTL):  # all of them end as the boot does
                paths = []
            of_others = (path for path in paths if not is_nearmetal_file(path) and _text(host, path, limit=2))
            for line in (line for path in of_others for line in sysctl_lines_of(host, path)):
                yield owner, (sysctl.path(line.name), line.value)
        elif name != boot_commands.FILE:
            yield owner, (name, value)


def _of_sap(host: Host, unit: str) -> Found:
    """What sapconf and saptune set: their values are in files of their own; without these nobody knows them."""
    paths = ["/etc/sysconfig/sapconf"] if unit == "sapconf.service" else []
    if unit == "saptune.service":
        chosen = variables_of(host, "/etc/sysconfig/saptune")
        notes = f"{chosen.get('NOTE_APPLY_ORDER', '')} {chosen.get('TUNE_FOR_NOTES', '')}".split()
        names = [f"{note}{end}" for note in notes for end in ("", ".conf")]
        paths = [f"{folder}/{name}" for folder in _NOTES for name in names]
    texts = [(path, host.text(path, LIMIT)) for path in paths]
    found: Dict[str, Tuple[str, boot_commands.Setting]] = {}
    for path, text in texts:
        for _path, (target, word) in _sap_file(path, text or ""):
            if word or path.startswith(_NOTES[-1]):  # an override without a value leaves the setting alone
                found[target] = (path, (target, word))
    yield from (setting for setting in found.values() if setting[1][1])
    if unit in ("sapconf.service", "saptune.service") and not any(texts_of for _path, texts_of in texts):
        yield from ((unit, (target, None)) for target in _OF_SAP.values())


def _sap_file(path: str, text: str) -> Found:
    for section, name, value in link_settings.lines(text):
        word = value.split("#")[0].strip(" \t\"'")
        if section == "sys":
            yield path, (f"/sys/{name.replace('.', '/')}", word)
        elif name in _OF_SAP:
            yield path, (_OF_SAP[name], word.rpartition(":")[2].split(",")[0])
        elif re.fullmatch(r"(?:vm|net|kernel|fs)\.[\w.-]+", name, re.ASCII):
            yield path, (sysctl.path(name), word)
