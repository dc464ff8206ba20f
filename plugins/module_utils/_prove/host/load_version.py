# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version of its load a measurement ran: a digest of the programs that the command names. PRIVATE."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from contextlib import suppress

# What a shell's command can name a program with; a quoted word that is none of a file is passed over.
_WORD = re.compile(r"[A-Za-z0-9_./+@%-]+", re.ASCII)
_MOST_PROGRAMS = 8
_MOST_BYTES = 16 * 1024 * 1024  # of a program; of a larger one its size counts too
_DIGITS = 12


def identify(command: str) -> str:
    """Each program that the command names, with the first digits of its SHA-256; empty if it names none.

    A file that isn't executable counts if it says by `#!` that it is a script, so no data of the load do.
    """
    found = {}
    for word in dict.fromkeys(_WORD.findall(command)):
        path = shutil.which(word) or word
        with suppress(OSError, ValueError):
            digest = _digest(path)
            if digest:
                found[os.path.basename(path)] = digest
        if len(found) == _MOST_PROGRAMS:
            break
    return ", ".join(f"{name} {digest}" for name, digest in found.items())


def _digest(path: str) -> str:
    status = os.stat(path)  # before it is opened: to open a device may do something
    if not stat.S_ISREG(status.st_mode):
        return ""
    with open(path, "rb") as stream:
        content = stream.read(_MOST_BYTES)
    if not (content.startswith(b"#!") or status.st_mode & 0o111):
        return ""
    size = b"" if status.st_size == len(content) else str(status.st_size).encode()
    return hashlib.sha256(content + size).hexdigest()[:_DIGITS]
