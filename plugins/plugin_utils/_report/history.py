# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many findings of each status every host had in earlier audits: the files of `audit_history`. PRIVATE."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Mapping, Tuple

from ...module_utils._error import NearmetalError
from .._files import made_of, write
from . import model
from .headings import ORDER
from .model import Past, Report
from .worth import counts

VERSION = 1
SHOWN = 60  # audits that a trend goes back
LARGEST = 64 * 1024 * 1024  # bytes of one file; 1,000 hosts are some 80 kB
_NAME = re.compile(r"audit-[0-9]{8}T[0-9]{6}Z\.json", re.ASCII)


def load(directory: str) -> Tuple[Past, ...]:
    """The last audits that were kept, the oldest first; a file that isn't one of them is left out.

    Raises NearmetalError for a directory that can't be read; one that is absent is empty.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise NearmetalError(f"audit_history: can't read {directory}: {error.strerror}") from None
    return tuple(filter(None, (made_of(os.path.join(directory, name), LARGEST, _past) for name in names[-SHOWN:])))


def keep(directory: str, report: Report) -> str:
    """Keep the counts of this audit beside the earlier ones; the path of their file.

    Raises NearmetalError when it can't be written.
    """
    hosts = {host.name: counts(host) for host in report.hosts if host.state == model.REPORTED}
    plain = {"version": VERSION, "finished": report.run.finished, "hosts": hosts}
    stamp = re.sub(r"[-:]", "", report.run.finished)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        return write(os.path.join(directory, f"audit-{stamp}.json"), json.dumps(plain, separators=(",", ":")) + "\n")
    except OSError as error:
        raise NearmetalError(f"audit_history: can't write {error.filename or directory}: {error.strerror}") from None


def _past(plain: Mapping[str, Any]) -> Past:
    if plain["version"] != VERSION or not re.fullmatch(r"[0-9TZ:-]{20}", plain["finished"], re.ASCII):
        raise ValueError(plain["version"])
    hosts = {
        str(name): {
            status: int(count) for status, count in counts.items() if status in ORDER and 0 <= int(count) < 10**6
        }
        for name, counts in plain["hosts"].items()
    }
    return Past(plain["finished"], hosts)
