# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a run's record: every entry is on disk before the next step. PRIVATE to the collection."""

from __future__ import annotations

import errno
import os
import re
from typing import Optional

from ...module_utils._error import NearmetalError
from ...module_utils._prove import lines
from ...module_utils._prove.record import Entry, Record, Start, with_entry
from ...module_utils._words import plain

_UNSAFE_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]")


class Log:
    """A record that grows on disk."""

    def __init__(self, path: str, record: Record, complete: Optional[int] = None) -> None:
        self.path = path
        self.record = record
        self._complete = complete  # how many bytes were whole lines when the run was killed; None: all

    def append(self, entry: Entry) -> None:
        """Add an entry, and sync it to disk. Raises NearmetalError for an entry that could not be read again."""
        try:
            line = lines.line_of(entry).encode()
            checked = lines.entry_of(line)
        except (ValueError, TypeError, KeyError, NearmetalError) as error:
            raise NearmetalError(f"the host's answer can't be recorded: {plain(str(error))}") from None
        if self._complete is not None:
            _drop_partial_line(self.path, self._complete)
            self._complete = None
        _write(self.path, line, os.O_APPEND)
        self.record = with_entry(self.record, checked)


def file_name(host: str) -> str:
    """The host's part in the name of a record."""
    return _UNSAFE_IN_A_NAME.sub("_", host)[:100]


def prepare(path: str) -> None:
    """Make the folder of a record or a report. Raises NearmetalError when it can't be made or written to."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _write_error(path, error) from None


def begin(path: str, start: Start) -> Log:
    """A new record. Raises NearmetalError when the file can't be made."""
    line = lines.line_of(start).encode()
    record = lines.read(line)
    _write(path, line, os.O_CREAT | os.O_EXCL)
    return Log(path, record)


def resume(path: str, host: str) -> Log:
    """The record of an interrupted run, which stays as it is until an entry is added.

    Raises NearmetalError for a run that ended, or that was on another host.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(lines.MOST_BYTES + 1)
    except OSError as error:
        raise NearmetalError(f"resume names {path}, which can't be read: {error.strerror}") from None
    try:
        record = lines.read(data)
    except NearmetalError as error:
        raise NearmetalError(f"resume names {path}: {error}") from None
    if record.end is not None:
        raise NearmetalError(
            f"resume names {path}, a run that has ended ({record.end.verdict}, {record.end.outcome}): start a new run"
        )
    if record.start.host != host:
        raise NearmetalError(f"resume names {path}, a run on {record.start.host}, not on {host}")
    complete = data.rfind(b"\n") + 1
    return Log(path, record, complete if complete < len(data) else None)


def _drop_partial_line(path: str, size: int) -> None:
    """Drop a line that was being written when the run was killed."""
    try:
        os.truncate(path, size)
    except OSError as error:
        raise _write_error(path, error) from None


def _write(path: str, data: bytes, flags: int) -> None:
    descriptor: Optional[int] = None
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
        if os.write(descriptor, data) != len(data):
            raise OSError(28, "No space left on device")
        os.fsync(descriptor)
    except OSError as error:
        raise _write_error(path, error) from None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _write_error(path: str, error: OSError) -> NearmetalError:
    return NearmetalError(
        f"the record {path} can't be written: {error.strerror}; name another directory with NEARMETAL_REPORT_DIRECTORY"
    )
