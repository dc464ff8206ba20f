# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A generated grub.cfg, and the boot entries in it. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import cmdline

# grub-mkconfig names the script that made each part; nearmetal's arguments are in that for Linux, not in 40_custom.
_BEGIN = re.compile(r"### BEGIN /etc/grub\.d/(\S+) ###")
_END = re.compile(r"### END /etc/grub\.d/\S+ ###")
_LINUX = re.compile(r"linux(16|efi)?")
_INITRD = re.compile(r"initrd(16|efi)?")
_ID = re.compile(r"""\$menuentry_id_option\s+['"]([^'"]*)['"]""")
_LONGEST = 2048  # characters of a word, more than a kernel takes


class Entry(NamedTuple):
    """One way to boot Linux."""

    kernel: str
    arguments: Tuple[str, ...]
    initrds: Tuple[str, ...]
    recovery: bool  # for repairs: it gets no arguments of nearmetal


def entries(text: str) -> Tuple[Entry, ...]:
    """The entries that the script for Linux made, in their order. Raises nothing."""
    menu_entries: List[Tuple[str, Tuple[str, ...], List[str], bool]] = []
    inside = recovery = False
    for line in text.splitlines():
        words = line.strip()
        begin = _BEGIN.fullmatch(words)
        if begin or _END.fullmatch(words):
            inside = begin is not None and begin.group(1).startswith("10_linux")
        if not inside:
            continue
        command, rest = [*words.split(None, 1), "", ""][:2]
        if command == "menuentry":
            recovery = _recovery(words)
        elif _LINUX.fullmatch(command):
            kernel, *arguments = cmdline.tokens(rest) or ("",)
            menu_entries.append((kernel, tuple(arguments), [], recovery))
        elif _INITRD.fullmatch(command) and menu_entries:
            menu_entries[-1][2].extend(cmdline.tokens(rest))
    return tuple(
        Entry(kernel, arguments, tuple(initrds), recovery) for kernel, arguments, initrds, recovery in menu_entries
    )


def release(kernel: str) -> str:
    """The release in a kernel's file name: /boot/vmlinuz-6.1.0-28-amd64 is 6.1.0-28-amd64."""
    name = kernel.rsplit("/", 1)[-1]
    _prefix, dash, rest = name.partition("-")
    return rest if dash else name


def is_stub(text: str) -> bool:
    """Whether this grub.cfg only loads another one, as those on EFI partitions do, and must not be overwritten."""
    return "configfile" in text and "menuentry" not in text and "blscfg" not in text


def variables(text: str, environment: Mapping[str, str]) -> Dict[str, str]:
    """The variables with which GRUB makes entries of files (blscfg): those of the environment block, then this file's.

    Of a condition only comparisons of texts are known; any other, such as whether a file exists, counts as met.
    """
    known = dict(environment)
    branches: List[Tuple[bool, bool]] = []  # of each `if`: whether a branch was taken, and whether this one is
    for statement in re.findall(r"(?:[^\n;\"']|\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*')+", text):
        words = _words(statement, known)
        if words[:1] in (["then"], ["else"]):
            if words[0] == "else" and branches:
                branches[-1] = (True, not branches[-1][0])
            words = words[1:]
        if words[:1] in (["if"], ["elif"]):
            taken = branches.pop()[0] if words[0] == "elif" and branches else False
            holds = not taken and _condition_holds(words[1:])
            branches.append((taken or holds, holds))
        elif words[:1] == ["fi"]:
            del branches[-1:]
        elif words and all(active for _taken, active in branches):
            name, sign, value = words[min(words[0] == "set", len(words) - 1)].partition("=")
            if words[0] == "blscfg":
                break
            if sign and name.isidentifier():
                known[name] = value[:_LONGEST]
            elif words[0] == "unset":
                known.pop(words[-1], None)
    return known


def _words(statement: str, known: Mapping[str, str]) -> List[str]:
    """The words of a statement with their quotes taken off and their variables replaced."""
    words, quoted = [""], False
    for piece in re.findall(r"\s+|#.*|'[^']*'|\"(?:[^\"\\]|\\.)*\"|[^\s'\"]+", statement.strip()):
        if piece.startswith("#") and words[-1] == "" and not quoted:
            break
        if piece.isspace():
            words.append("")
        elif piece.startswith("'"):
            words[-1] += piece[1:-1]
        else:
            plain = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda name: known.get(name[1] or name[2], ""), piece[:_LONGEST])
            words[-1] += re.sub(r"\\(.)", r"\1", plain[1:-1]) if piece.startswith('"') else plain
    return words


def _condition_holds(words: List[str]) -> bool:
    if words[:1] == ["!"]:
        return not _condition_holds(words[1:])
    test = words[1:-1] if words[:1] == ["["] else words[1:]
    if words[:1] not in (["["], ["test"]) or len(test) > 3:
        return True
    if len(test) == 2 and test[0] in ("-z", "-n"):
        return (test[1] == "") is (test[0] == "-z")
    if len(test) == 3 and test[1] in ("=", "==", "!="):
        return (test[0] == test[2]) is (test[1] != "!=")
    return len(test) != 1 or test[0] != ""


def _recovery(words: str) -> bool:
    """Titles are translated, so the id decides where there is one."""
    named: Optional["re.Match[str]"] = _ID.search(words)
    return "recovery" in (named.group(1) if named else words)
