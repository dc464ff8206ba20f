# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of udev(7) and systemd.link(5) that rules of nearmetal and operators need, apart from the engine."""

from __future__ import annotations

import fnmatch
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, List, Tuple

Term = Tuple[str, str, str, str]
_TERM = re.compile(r'([A-Z]+)(?:\{([^}]*)\})?(==|!=|\+=|=)"([^"]*)"')
CLASSES = {"block": "sys/block", "net": "sys/class/net", "cpu": "sys/devices/system/cpu"}
_LINK = {"MTUBytes": "mtu", "TransmitQueueLength": "tx_queue_len"}


class Udev:
    """Applies the rules below `root` to each event; `take` writes to the kernel."""

    def __init__(self, root: Path, take: Callable[[str, str], object]) -> None:
        self._root = root
        self._take = take

    def event(self, subsystem: str, name: str, action: str) -> None:
        """Apply the files to an event of a disk, an interface or a CPU; a hidden disk has no events."""
        if re.fullmatch(r"nvme\d+c\d+n\d+", name):
            return
        if subsystem == "net" and action == "add":
            self._link(name)
        known = {"ACTION": action, "SUBSYSTEM": subsystem, "KERNEL": name}
        if subsystem == "block":
            known["ENV.DEVTYPE"] = "disk"
        for rules in self._files("udev/rules.d", "*.rules"):
            self._follow(name, known, rules.read_text())

    def _files(self, folder: str, pattern: str) -> List[Path]:
        """Sorted by name, those of /etc in place of others of the same name."""
        files: Dict[str, Path] = {}
        for top in ("usr/lib", "run", "etc"):
            files.update((path.name, path) for path in (self._root / top / folder).glob(pattern))
        return [files[name] for name in sorted(files)]

    def _follow(self, name: str, known: Dict[str, str], text: str) -> None:
        folder = CLASSES[known["SUBSYSTEM"]]
        target = ""
        for line in text.splitlines():
            terms = [] if line.startswith("#") else _TERM.findall(line)
            assert line.startswith("#") or ", ".join("".join(self._shown(term)) for term in terms) == line, line
            if target and ("LABEL", "", "=", target) not in terms:
                continue
            target = ""
            place = (self._root / folder / name).resolve()
            if not all(self._holds(place, known, term) for term in terms if term[2] in ("==", "!=")):
                continue
            for key, inner, sign, value in terms:
                if sign == "=" and key == "GOTO":
                    target = value
                elif sign == "=" and key == "ENV":
                    known[f"ENV.{inner}"] = value
                elif sign == "=" and key == "ATTR":
                    with suppress(OSError):  # udev logs an error and goes on
                        self._take(f"/{folder}/{name}/{inner}", value)

    @staticmethod
    def _shown(term: Term) -> List[str]:
        key, inner, sign, value = term
        return [key, f"{{{inner}}}" if inner else "", sign, f'"{value}"']

    def _holds(self, folder: Path, known: Dict[str, str], term: Term) -> bool:
        key, inner, sign, value = term
        ways = [folder, *folder.parents]
        if key == "TEST":
            holds = os.path.lexists(f"{self._root}{value}") if value.startswith("/") else (folder / value).exists()
        elif key == "ATTR":
            file = folder / inner
            holds = file.exists() and _fits(file.read_text().strip(), value)
        elif key == "ATTRS":
            holds = any((way / inner).is_file() and _fits((way / inner).read_text().rstrip(), value) for way in ways)
        elif key == "DRIVERS":
            holds = any(_fits(os.path.basename(_link(way / "driver")), value) for way in ways)
        elif key == "DEVPATH":
            holds = _fits(str(folder)[len(str(self._root)) + len("/sys") :], value)
        else:
            holds = _fits(known.get(f"{key}.{inner}" if inner else key, ""), value)
        return holds == (sign == "==")

    def _link(self, name: str) -> None:
        """The first .link file that matches, and no other."""
        folder = self._root / CLASSES["net"] / name
        seen = {"OriginalName": name, "Driver": os.path.basename(_link(folder / "device/driver"))}
        for file in self._files("systemd/network", "*.link"):
            section, match, pairs = "", [], {}
            for line in file.read_text().splitlines():
                key, equals, value = line.strip().partition("=")
                if not equals:
                    section = key
                elif section == "[Match]":
                    match.append(any(fnmatch.fnmatchcase(seen.get(key, ""), word) for word in value.split()))
                elif section == "[Link]":
                    pairs[key] = value
            if match and all(match):
                for key in _LINK.keys() & pairs.keys():
                    with suppress(OSError):
                        self._take(f"/sys/class/net/{name}/{_LINK[key]}", pairs[key])
                return


def _fits(text: str, pattern: str) -> bool:
    """Alternatives with | between them, each a shell pattern."""
    return any(fnmatch.fnmatchcase(text, alternative) for alternative in pattern.split("|"))


def _link(path: Path) -> str:
    return os.readlink(path) if path.is_symlink() else ""
