# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of programs, as packages and file names have them. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
import struct
from typing import Container, Dict, Mapping

_NUMBERS = re.compile(r"(?:[0-9]{1,9}:)?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})", re.ASCII)
_PACKAGE = re.compile(r"^Package: (.+)$", re.MULTILINE)
_VERSION = re.compile(r"^Version: (.+)$", re.MULTILINE)
_RPM_VERSION = 1001  # RPMTAG_VERSION in rpmtag.h
_INSTALLED = re.compile(r"^Status: (?:install|hold) ok installed$", re.MULTILINE)  # hold: by `apt-mark hold`


def numbers(text: str) -> str:
    """The numbers of a package's version, without its epoch and its revision: 7.0.15 of 5:7.0.15-1~deb12u1."""
    match = _NUMBERS.match(text)
    return match[1] if match else ""


def debian(text: str, names: Container[str]) -> Dict[str, str]:
    """Package → version, of those of these names that are installed, in the words of dpkg's status file."""
    versions = {}
    for paragraph in text.split("\n\n"):
        package = _PACKAGE.search(paragraph)
        if package is not None and package[1] in names and _INSTALLED.search(paragraph):
            version = _VERSION.search(paragraph)
            versions[package[1]] = numbers(version[1]) if version else ""
    return versions


def rpm(header: bytes) -> str:
    """The version in a package's header in rpm's database: an index of tags, and the texts to which they point."""
    try:
        entries, _size = struct.unpack_from(">II", header)
        for entry in range(min(entries, 65536)):
            tag, _kind, place, _count = struct.unpack_from(">IIII", header, 8 + 16 * entry)
            if tag == _RPM_VERSION:
                return numbers(header[8 + 16 * entries + place :][:64].split(b"\0")[0].decode("utf-8", "replace"))
    except struct.error:
        pass
    return ""


def render(installed: Mapping[str, str]) -> str:
    """These packages and versions in the words of dpkg's status file."""
    lines = "Package: {}\nStatus: install ok installed\nVersion: {}".format
    return "\n\n".join(lines(package, version) for package, version in installed.items())
