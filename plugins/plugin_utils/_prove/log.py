# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a run's record: every entry is on disk before the next step. PRIVATE to the collection."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import Optional

from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics import record_lines
from ...module_utils._prove.statistics.record import Entry, Record, Start, with_entry
from ...module_utils._words import plain
from .._files import append, writing


class Log:
    """A record that grows on disk."""

    def __init__(self, path: str, record: Record, complete: Optional[int] = None) -> None:
        self.path = path
        self.record = record
        self._complete = complete  # how many bytes were whole lines when the run was killed; None: all

    def append(self, entry: Entry) -> None:
        """Add an entry, and sync it to disk. Raises NearmetalError for an entry that could not be read again."""
        try:
            line = record_lines.line_of(entry).encode()
            checked = record_lines.entry_of(line)
        except (ValueError, TypeError, KeyError, NearmetalError) as error:
            raise NearmetalError(f"the host's answer can't be recorded: {plain(str(error))}") from None
        if self._complete is not None:
            with writing(f"the record {self.path}"):  # drops a line that was being written when the run was killed
                os.truncate(self.path, self._complete)
            self._complete = None
        with writing(f"the record {self.path}"):
            append(self.path, line)
        self.record = with_entry(self.record, checked)

    def sha256(self) -> str:
        """By what the file is recognized; empty if it can't be read any more."""
        with suppress(OSError), open(self.path, "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
        return ""


def begin(path: str, start: Start) -> Log:
    """A new record. Raises NearmetalError when the file can't be made."""
    line = record_lines.line_of(start).encode()
    record = record_lines.read(line)
    with writing(f"the record {path}"):
        append(path, line, os.O_CREAT | os.O_EXCL)
    return Log(path, record)


def resume(path: str, host: str) -> Log:
    """The record of an interrupted run, which stays as it is until an entry is added.

    Raises NearmetalError for a run that ended, or that was on another host.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(record_lines.MOST_BYTES + 1)
    except OSError as error:
        raise NearmetalError(f"resume names {path}, which can't be read: {error.strerror}") from None
    try:
        record = record_lines.read(data)
    except NearmetalError as error:
        raise NearmetalError(f"resume names {path}: {error}; start a new run") from None
    if record.end is not None:
        raise NearmetalError(
            f"resume names {path}, a run that has ended ({record.end.verdict}, {record.end.outcome}): start a new run"
        )
    if record.start.host != host:
        raise NearmetalError(f"resume names {path}, a run on {record.start.host}, not on {host}")
    complete = data.rfind(b"\n") + 1
    return Log(path, record, complete if complete < len(data) else None)
