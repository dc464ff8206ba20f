# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The baseline: its entries, in one file for each host below the report directory. PRIVATE to the collection."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ...module_utils._benchmark.tools.registry import BENCHMARKS
from ...module_utils._error import NearmetalError
from ...module_utils._facts.platform import INSTANCE_TYPE
from ...module_utils._parse import json_text
from ...module_utils._prove.statistics.metrics import MOST_METRICS, Metric
from ...module_utils._prove.statistics.record_lines import metrics_from
from .._clean import mapping, text
from .._files import append as append_line
from .._files import file_name, make_folder, writing

FORMAT = 1  # of a line
MOST_LINE = 16 * 1024  # bytes
LONGEST = 120  # characters of a text that a host wrote
LATEST = 253402300799  # seconds since 1970: the end of the year 9999
_DIGEST = re.compile(r"[0-9a-f]{12}", re.ASCII)
FOLDER = "benchmark"
_ENDING = ".jsonl"
_MOST_BYTES = 4 * 1024 * 1024  # of a file, from its end: some thousand runs
_MOST_FILES = 10000


class Entry(NamedTuple):
    """One run."""

    host: str  # as the inventory names it
    at: int  # seconds since 1970 by the controller's clock
    benchmark: str
    options: str  # JSON with sorted names
    instance_type: str  # empty where the host doesn't know it
    instance: str  # a digest of the instance's id: another instance under the same name is another machine
    kernel: str
    versions: Tuple[str, ...]  # "fio: fio-3.33", sorted
    metrics: Tuple[Metric, ...]  # the deciding one first


def entry_of_result(host: str, at: int, name: str, options: str, result: Mapping[str, Any]) -> Optional[Entry]:
    """The entry for a result of the module, which a host wrote; None for one without figures, or of another form."""
    platform, versions = mapping(result.get("platform")), mapping(result.get("versions"))
    said = sorted(f"{text(tool, LONGEST)}: {text(version, LONGEST)}" for tool, version in list(versions.items())[:8])
    plain = {
        "format": FORMAT,
        "host": host,
        "at": at,
        "benchmark": name,
        "options": options,
        "instance_type": platform.get("instance_type") or "",
        "instance": platform.get("instance") or "",
        "kernel": text(platform.get("kernel") or "", LONGEST),
        "versions": said,
        "metrics": result.get("metrics"),
    }
    try:
        return _entry(plain) if plain["metrics"] else None
    except (NearmetalError, ValueError, TypeError, KeyError):
        return None


def line_of(entry: Entry) -> str:
    plain: Dict[str, Any] = {"format": FORMAT, **entry._asdict()}
    plain["metrics"] = [metric._asdict() for metric in entry.metrics]
    return json.dumps(plain, allow_nan=False, separators=(",", ":")) + "\n"


def entry_of_line(line: bytes) -> Optional[Entry]:
    """The entry of a line; None for a line of another version, or one that nearmetal didn't write."""
    if len(line) > MOST_LINE:
        return None
    try:
        return _entry(json_text.parse(line.decode("utf-8")))
    except (NearmetalError, ValueError, TypeError, KeyError):
        return None


def _entry(plain: Any) -> Entry:
    """Raises NearmetalError, ValueError, TypeError or KeyError for anything that isn't an entry."""
    if not isinstance(plain, Mapping) or plain["format"] != FORMAT or isinstance(plain["format"], bool):
        raise ValueError("another format")
    at, kind, instance = plain["at"], plain["instance_type"], plain["instance"]
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at <= LATEST:
        raise ValueError("at")
    if plain["benchmark"] not in BENCHMARKS:
        raise ValueError("benchmark")
    if (kind and not INSTANCE_TYPE.fullmatch(kind)) or (instance and not _DIGEST.fullmatch(instance)):
        raise ValueError("instance")
    metrics = metrics_from(plain["metrics"])
    if not metrics or not all(metric.value for metric in metrics):  # hosts are compared by ratios
        raise ValueError("metrics")
    versions = plain["versions"]
    if not isinstance(versions, list) or len(versions) > MOST_METRICS:
        raise ValueError("versions")
    return Entry(
        host=_text(plain["host"], 255),
        at=at,
        benchmark=plain["benchmark"],
        options=_text(plain["options"], 4096),
        instance_type=kind,
        instance=instance,
        kernel=_text(plain["kernel"], LONGEST),
        versions=tuple(_text(version, 2 * LONGEST + 2) for version in versions),
        metrics=metrics,
    )


def _text(value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or text(value, longest) != value:
        raise ValueError("text")
    return value


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
