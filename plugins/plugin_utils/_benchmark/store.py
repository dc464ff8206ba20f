# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the baseline: one for each host, below the report directory. PRIVATE to the collection."""

from __future__ import annotations

import os
from typing import Dict, List

from .._files import append as append_line
from .._files import file_name, make_folder, writing
from .entry import Entry, entry_of_line, line_of

FOLDER = "benchmark"
_ENDING = ".jsonl"
_MOST_BYTES = 4 * 1024 * 1024  # of a file, from its end: some thousand runs
_MOST_FILES = 10000


def append(directory: str, entry: Entry) -> str:
    """Add a run to its host's file, on disk; its path. Raises NearmetalError."""
    path = os.path.join(directory, FOLDER, file_name(entry.host) + _ENDING)
    with writing(f"the baseline {path}"):
        make_folder(path)
        append_line(path, line_of(entry).encode(), os.O_CREAT)
    return path


def runs(directory: str) -> Dict[str, List[Entry]]:
    """Every host's runs, the oldest first. Lines that are damaged or of another version are left out."""
    folder = os.path.join(directory, FOLDER)
    runs_by_load: Dict[str, List[Entry]] = {}
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_ENDING))[:_MOST_FILES]
    except OSError:
        return {}
    for name in names:
        for entry in filter(None, map(entry_of_line, _lines(os.path.join(folder, name)))):
            # The names of two hosts may lead to one file, but no host writes into that of another.
            if file_name(entry.host) + _ENDING == name:
                runs_by_load.setdefault(entry.host, []).append(entry)
    return {host: sorted(entries, key=lambda entry: entry.at) for host, entries in runs_by_load.items()}


def _lines(path: str) -> List[bytes]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - _MOST_BYTES))
            lines = stream.read(_MOST_BYTES).split(b"\n")
    except OSError:
        return []
    return lines[1:] if size > _MOST_BYTES else lines
