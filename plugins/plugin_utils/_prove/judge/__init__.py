# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a run computed again from its record alone, and whether its report says the same. PRIVATE.

Needs neither a host nor Ansible: python3 -m ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove.judge RECORD
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import Any, Dict, List, Mapping

from ....module_utils._error import NearmetalError
from ....module_utils._prove.statistics.record import Record
from ....module_utils._prove.statistics.record_lines import MOST_BYTES, read
from ....module_utils._prove.statistics.verdict import verdict
from ....module_utils._version import VERSION
from ....module_utils._words import printable, shown
from ..._clean import mapping
from ..._files import read_json
from .. import document, sentences

_AGREE, _DIGEST = "record and report agree", "SHA-256 of the record: "
_NO_REPORT = "there is no report beside the record: only a digest noted elsewhere can show that it is whole"
_START, _FIRST = b'"kind":"start"', 100  # what the first bytes of a record have in them
_NO_RECORD = (
    "no record of prove, whose first line is the start of a run: name one, such as"
    " nearmetal-report/prove/HOST-TIME-SEED.jsonl"
)
_LONGEST_PATH = 4096
_LARGEST = 64 * 1024 * 1024  # bytes of a report


def judge(path: str, report: str = "") -> Dict[str, Any]:
    """Judge the record at `path`, and the report beside it, or the one that is named.

    Raises NearmetalError when one that should be there can't be read.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        beside = report or f"{os.path.splitext(path)[0]}.json"
        said = read_json(beside, _LARGEST) if report or os.path.exists(beside) else None
    except (OSError, ValueError, RecursionError) as error:
        if len(path.splitlines()) > 1 or len(path) > _LONGEST_PATH:
            raise NearmetalError("the path of a record is wanted, and not what is in it") from None
        raise NearmetalError(f"{path} and its report can't be read: {error}") from None
    digest, summary = hashlib.sha256(data).hexdigest(), ""
    problems: List[str] = [] if data.endswith(b"\n") else ["the last line of the record is cut off"]
    derived: Dict[str, Any] = {"measurements": range(data.count(b"\n") - 2)}
    try:
        record = read(data)
        result = verdict(record)
        derived = document.derive(record, result)
        summary = sentences.summary(result, sentences.Ending(derived["kept"], record.start.tested))
        problems += _contradictions(record, result.verdict, result.over, result.keep)
        rules = record.start.version
    except NearmetalError as error:
        problems.append(f"no verdict follows from the record: {error}")
        rules = ""
    if _START not in data[:_FIRST]:
        problems, said = [f"{path} is {_NO_RECORD}"], None
    problems += [] if said is None else _compare(mapping(said), derived, digest)
    if problems and rules not in ("", VERSION):
        problems.append(f"nearmetal {rules} measured, and this is {VERSION}, whose rules may differ")
    problems = [printable(problem) for problem in problems]
    return {
        "agrees": not problems,
        "verdict": derived["verdict"]["verdict"] if summary else "",
        "lines": [*filter(None, (summary, *(problems or [_NO_REPORT if said is None else _AGREE]))), _DIGEST + digest],
        "problems": problems,
        "sha256": digest,
        "report": "" if said is None else beside,
    }


def _contradictions(record: Record, found: str, over: bool, keeps: bool) -> List[str]:
    """What the last line of a record says against the lines before it."""
    if record.end is None:
        return ["the record has no end: the run was interrupted, or it was shortened"]
    problems = [] if over else ["the record ends before its own rules let a run end: it was shortened or changed"]
    if record.end.verdict != found:
        problems.append(f"its last line says {record.end.verdict}, and {found} follows from its measurements")
    if record.end.outcome == "kept" and not keeps:
        problems.append("its last line says that the tuning was kept, which that verdict doesn't allow")
    return problems


def _compare(said: Mapping[str, Any], derived: Mapping[str, Any], digest: str) -> List[str]:
    """What a report says otherwise than its record."""
    if said.get("schema") != document.SCHEMA or said.get("version") not in document.READABLE:
        return ["the report isn't one of prove that this version knows"]
    problems, reported = [], said.get("measurements")
    there, listed = len(derived["measurements"]), len(reported) if isinstance(reported, list) else 0
    if there != listed:
        word = "shortened" if there < listed else "added to"
        problems.append(f"the record was {word}: it has {there} measurements, and the report {listed}")
    elif said.get("sha256", digest) != digest:
        problems.append("the record or the report was changed: the report has another digest of the record")
    if "verdict" not in derived:
        return problems
    of_report, of_record = (mapping(of.get("verdict")).get("verdict") for of in (said, derived))
    if of_report != of_record:
        problems.append(f"the report says {shown(of_report)}, and the record {of_record}")
    other = [name for name in derived if name in said and not _same(said[name], derived[name])]
    return problems + ([f"the report says otherwise than the record: {', '.join(other)}"] if other else [])


def _same(said: Any, derived: Any) -> bool:
    """Whether a report says the same. Another version may know more keys, and another machine round differently."""
    if isinstance(said, dict) and isinstance(derived, Mapping):
        return all(_same(said[name], derived[name]) for name in derived if name in said)
    if isinstance(said, list) and isinstance(derived, (list, tuple)):
        return len(said) == len(derived) and all(map(_same, said, derived))
    if isinstance(said, float) and isinstance(derived, (int, float)):
        return math.isclose(said, derived, rel_tol=1e-9, abs_tol=1e-9)
    return bool(said == derived)
