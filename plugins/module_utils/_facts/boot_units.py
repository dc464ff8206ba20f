# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that a boot starts, as systemd.unit(5) puts them together from files. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from .._parse import link_settings
from .._parse.boot_commands import words_of
from . import boot_lines, cpu
from .host import Host
from .systemd import UNIT_FOLDERS

_MASK = "/dev/null"
_MANY = 2000  # units; more are no boot of this world
_UNIT_NAME = re.compile(
    r"[A-Za-z0-9:_.\\-]{1,120}(?:@[A-Za-z0-9:_.\\-]{0,100})?\.(?:service|timer|path|socket|target|device)", re.ASCII
)
_TARGETS = ("default.target", "sysinit.target", "basic.target", "multi-user.target", "graphical.target")
# What isn't started on the way up.
_NOT_UP = re.compile(
    r"(?:rescue|emergency|reboot|poweroff|halt|kexec|soft-reboot|shutdown|final|umount|exit|initrd.*|.*sleep|suspend.*"
    r"|hibernate)\.target|.*\.(?:service|timer|path|socket)"
)
# What starts a service, and the key that names one of another name.
_STARTS = {"timer": "Unit", "path": "Unit", "socket": "Service"}
_PULLS = ("Wants", "Requires", "Requisite", "BindsTo", "Upholds", "OnSuccess")
_EXEC = re.compile(r"Exec(?:Condition|StartPre|Start|StartPost)")
_CONDITION = re.compile(r"(?:Condition|Assert)(\w+)")
_SPECIFIER = re.compile(r"%([iIjJnNpPf%])")
_SWITCHES = {
    **dict.fromkeys(("1", "yes", "true", "on", "vm"), True),
    **dict.fromkeys(("0", "no", "false", "off"), False),
}


class Unit(NamedTuple):
    """A service that a boot starts."""

    name: str
    path: str  # its file
    commands: Tuple[str, ...]
    variables: Mapping[str, str]


class _Tree:
    """What the folders of units hold, read once: name → its places, the one that counts first."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.places: Dict[str, List[str]] = {}
        for root in UNIT_FOLDERS:
            for name in host.names(root):
                self.places.setdefault(name, []).append(f"{root}/{name}")

    def inside(self, folder: str) -> Iterator[Tuple[str, str]]:
        """Name and path of each file in the folders of this name."""
        for place in self.places.get(folder, ()):
            yield from ((name, f"{place}/{name}") for name in self.host.names(place))

    def wanted(self, unit: str) -> Iterator[str]:
        """The units that a unit's folders name; a service may be there by another name."""
        for kind in ("wants", "requires", "upholds"):
            for name, path in self.inside(f"{unit}.{kind}"):
                linked = os.path.basename(self.host.link(path) or name)
                yield name if "@" in name or not _UNIT_NAME.fullmatch(linked) else linked

    def file(self, name: str) -> str:
        """The file of a unit, or of its template; empty where there is none."""
        return next((path for file in (name, re.sub(r"@.*\.", "@.", name)) for path in self.places.get(file, ())), "")

    def lines(self, name: str, path: str) -> link_settings.Lines:
        """The lines of a unit and its drop-ins, with what its name says."""
        stem, _dot, kind = name.rpartition(".")
        prefix, at, instance = stem.partition("@")
        dashes = [f"{prefix[:place]}.{kind}" for place in range(len(prefix), 0, -1) if prefix[place - 1] == "-"]
        parts: Dict[str, str] = {}
        for unit in (name, *([f"{prefix}@.{kind}"] if at else []), *dashes, kind):
            for file, part in self.inside(f"{unit}.d"):
                if file.endswith(".conf"):
                    parts.setdefault(file, part)
        files = filter(None, (path, *(parts[file] for file in sorted(parts))))
        texts = (self.host.text(part, boot_lines.LIMIT) for part in files)
        known = {"i": instance, "j": prefix.rpartition("-")[2], "n": name, "N": stem, "p": prefix, "%": "%"}
        plain = {sign.upper(): _unescaped(known[sign]) for sign in "ijp"}
        known = {**known, **plain, "f": f"/{plain['I'] if at else plain['P']}"}
        text = "\n".join(text or "" for text in texts).replace("\\\n", " ")
        return link_settings.lines(_SPECIFIER.sub(lambda sign: known.get(sign[1], sign[0]), text))


def has_file(host: Host, name: str) -> bool:
    """Whether a unit has a file of its own, which counts in place of a script in init.d."""
    return any(host.exists(f"{root}/{name}") or host.link(f"{root}/{name}") for root in UNIT_FOLDERS)


def wanted(host: Host) -> Set[str]:
    """The units that any unit's folders name: those that an operator enabled, whether or not their conditions hold."""
    tree = _Tree(host)
    stems = {name.rpartition(".")[0] for name in tree.places if name.endswith((".wants", ".requires", ".upholds"))}
    return {unit for stem in stems for unit in tree.wanted(stem) if host.link(tree.file(unit)) != _MASK}


def started(host: Host, more: Iterable[str] = ()) -> Iterator[Unit]:
    """Each service that a boot starts, none of nearmetal; `more` is what udev rules start."""
    tree = _Tree(host)
    folders = (name.rpartition(".") for name in tree.places)
    targets = [unit for unit, _dot, kind in folders if kind in ("wants", "requires", "upholds")]
    pulled: Iterable[str] = (*_TARGETS, *(unit for unit in targets if not _NOT_UP.fullmatch(unit)), *more)
    todo = list(dict.fromkeys(pulled))[:_MANY]
    seen = set(todo)
    for name in todo:  # which grows
        if not _UNIT_NAME.fullmatch(name) or name.startswith(("nearmetal.", "nearmetal-")):
            continue
        path = tree.file(name)
        lines = tree.lines(name, path)
        if host.link(path) == _MASK or not conditions_hold(host, lines, "Unit"):
            continue
        stem, _dot, kind = name.rpartition(".")
        words_of = (value.split() for part, key, value in lines if part == "Unit" and key in _PULLS)
        pulled = [*tree.wanted(name), *(word for found in words_of for word in found)]
        if kind in _STARTS:
            pulled.append(next((value for _section, key, value in lines if key == _STARTS[kind]), f"{stem}.service"))
        elif kind == "service":
            yield Unit(name, path or name, _commands(lines), _variables(host, lines))
        fresh = [unit for unit in dict.fromkeys(pulled) if unit not in seen][: max(0, _MANY - len(todo))]
        seen.update(fresh)
        todo += fresh


def named(host: Host, names: Iterable[str]) -> Iterator[Unit]:
    """The services of these names that somebody starts, such as `systemctl start` in a script."""
    tree = _Tree(host)
    for name in dict.fromkeys(name if _UNIT_NAME.fullmatch(name) else f"{name}.service" for name in names):
        path = tree.file(name) if _UNIT_NAME.fullmatch(name) and not name.startswith("nearmetal") else ""
        lines = tree.lines(name, path) if path else ()
        if name.endswith(".service") and path and host.link(path) != _MASK and conditions_hold(host, lines, "Unit"):
            yield Unit(name, path, _commands(lines), _variables(host, lines))


def _unescaped(word: str) -> str:
    """As systemd-escape(1) --unescape."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), word.replace("-", "/"))


def _commands(lines: link_settings.Lines) -> Tuple[str, ...]:
    """What the service starts, without the signs before; an empty line takes back those of its kind before it."""
    commands: List[Tuple[str, str]] = []
    for section, key, value in lines:
        if section == "Service" and _EXEC.fullmatch(key):
            bare = value.lstrip("@-+!:|")
            if "@" in value[: len(value) - len(bare)]:  # the second word is the name that the program sees
                bare = re.sub(r"^(\S+)\s+\S+", r"\1", bare)
            commands = commands if bare else [each for each in commands if each[0] != key]
            commands += [(key, bare)] if bare else []
    return tuple(command for _key, command in commands)


def _variables(host: Host, lines: link_settings.Lines) -> Dict[str, str]:
    variables: Dict[str, str] = {}
    for section, key, value in lines:
        if section != "Service":
            continue
        if key == "Environment":
            assigned = (word.partition("=") for word in words_of(value))
            variables.update({name: text for name, sign, text in assigned if sign})
        elif key == "EnvironmentFile":
            for path in matching(host, value.lstrip("-")):
                variables.update(variables_of(host, path))
        elif key == "WorkingDirectory":
            variables["PWD"] = value.lstrip("-")
    return variables


def variables_of(host: Host, path: str) -> Dict[str, str]:
    """The variables of a file such as EnvironmentFile= names."""
    return {
        key: value.strip("\"'") for _section, key, value in link_settings.lines(host.text(path, boot_lines.LIMIT) or "")
    }


def matching(host: Host, pattern: str) -> List[str]:
    """The files of a pattern whose last part may have wildcards."""
    folder, _slash, name = pattern.rpartition("/")
    return [f"{folder}/{file}" for file in host.names(folder or "/") if link_settings.fits(file, name)]


def conditions_hold(host: Host, lines: link_settings.Lines, section: str) -> bool:
    """Whether the conditions of systemd.unit(5), systemd.link(5) or systemd.network(5) hold; unknown ones do.

    Of those with `|` one is enough; an empty one takes all before it back.
    """
    needed: List[bool] = []
    enough: List[bool] = []
    for part, key, value in lines:
        kind = _CONDITION.fullmatch(key)
        name = kind[1] if kind is not None else key if section == "Match" else ""
        if part != section or not name:
            continue
        if not value:
            needed, enough = [], []
            continue
        bare = value.lstrip("|! ")
        holds = _holds(host, name, bare)
        signs = value[: len(value) - len(bare)]
        (enough if "|" in signs else needed).append(holds is None or holds != ("!" in signs))
    return all(needed) and (not enough or any(enough))


def _holds(host: Host, name: str, word: str) -> Optional[bool]:
    """Whether a condition without its signs holds; None where that isn't known."""
    if name in ("PathExists", "PathIsReadWrite", "FileIsExecutable"):
        return host.exists(word)
    if name == "PathIsSymbolicLink":
        return host.link(word) is not None
    if name == "PathExistsGlob":
        return None if re.search(r"[*?\[].*/", word) else bool(matching(host, word))
    if name == "PathIsDirectory":
        return host.exists(f"{word}/.")
    if name == "DirectoryNotEmpty":
        return bool(host.names(word))
    if name == "FileNotEmpty":
        return bool(host.text(word, limit=1))
    if name == "KernelCommandLine":
        return word in re.split(r"[\s=]" if "=" not in word else r"\s", host.line("/proc/cmdline") or "")
    if name == "Architecture":
        machine = host.machine() or host.line("/proc/sys/kernel/arch")
        native = {"x86_64": "x86-64", "aarch64": "arm64"}.get(machine or "")
        return None if native is None or word == "native" else word == native
    if name == "Host":
        known = host.line("/proc/sys/kernel/hostname")
        return None if known is None else link_settings.fits(known.lower(), word.lower())
    if name == "FirstBoot":
        return not _SWITCHES.get(word, False)
    return _virtual(host, word) if name == "Virtualization" else None


def _virtual(host: Host, word: str) -> Optional[bool]:
    """systemd before 243 calls Nitro kvm, and later ones amazon; processors of Arm don't say that they are virtual."""
    xen = host.exists("/proc/xen") or host.line("/sys/hypervisor/type") == "xen"
    if word not in _SWITCHES and (xen or word not in ("kvm", "amazon")):
        return xen and word == "xen"
    virtual = xen or cpu.under_hypervisor(cpu.first_processor(host))
    if word in _SWITCHES:
        return None if virtual is None else virtual is _SWITCHES[word]
    return False if virtual is False else None
