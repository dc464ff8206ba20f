# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record as bytes: one JSON object a line. Pure. PRIVATE to the collection.

A line that was being written when the controller was killed has no line feed: it is dropped, and its step is repeated.
Any other line that prove doesn't write, or that doesn't follow from the lines before it, is an error in one sentence.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Type, TypeVar

from ..._error import NearmetalError
from ..._parse import json_text
from ..._words import clipped, plain, shown
from .metrics import LARGER, LARGEST, MOST_METRICS, NAME, SMALLER, SMALLEST, UNIT, Metric
from .order import TUNED, UNTUNED
from .record import FORMAT_3, PHASES, READABLE, End, Entry, Measurement, Place, Record, Sample, Start, with_entry
from .rules import VERDICTS
from .settings import settings_of
from .step import check

MOST_BYTES = 8 * 1024 * 1024
MOST_LINES = 5000
LONGEST_TEXT = 4000
MOST_TEXTS = 1000
MOST_CLIENTS = 64

_KINDS: Mapping[str, type] = {"start": Start, "measurement": Measurement, "end": End}
# The fields that earlier formats lack.
_ADDED: Mapping[type, Tuple[str, ...]] = {
    Sample: ("jobs", "cpu_softirq", "context_switches", "interrupts"),
    Measurement: ("load_version", "sham_state", "program_ended"),
    Start: ("restart", "places", "tolerate", "machine"),
}
_COUNTER = r"[a-z][a-z0-9_]{0,63}"
_BOOT_ID = r"[0-9a-f-]{1,64}"
_NONE = type(None)
_Form = TypeVar("_Form")


def line_of(entry: Entry) -> str:
    """The entry as one line with its line feed, to be appended and synced before the next step."""
    kind = next(name for name, form in _KINDS.items() if isinstance(entry, form))
    content: Dict[str, Any] = {"kind": kind, **_as_json(entry)}
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def read(data: bytes) -> Record:
    """The record that the bytes hold. Raises NearmetalError, in one sentence, for anything else."""
    if len(data) > MOST_BYTES:
        raise NearmetalError(f"the record has {len(data)} bytes; no run of prove writes more than {MOST_BYTES}")
    lines = data.split(b"\n")[:-1]  # a line without its line feed is incomplete
    if len(lines) > MOST_LINES:
        raise NearmetalError(f"the record has {len(lines)} lines; no run of prove writes more than {MOST_LINES}")
    record: Optional[Record] = None
    for number, line in enumerate(lines, 1):
        try:
            record = _record_with(record, entry_of(line))
        except (ValueError, TypeError, KeyError, NearmetalError) as error:
            reason = f"{shown(error.args[0])} is absent" if isinstance(error, KeyError) else plain(str(error))
            raise NearmetalError(
                f"line {number} of the record isn't one that this nearmetal writes: {reason}"
            ) from None
    if record is None:
        raise NearmetalError("the record has no complete line: the run ended before its first step")
    check(record)
    return record


def _record_with(record: Optional[Record], entry: Entry) -> Record:
    if record is None:
        if not isinstance(entry, Start):
            raise NearmetalError("a record begins with its start")
        return Record(entry)
    if isinstance(entry, Start):
        raise NearmetalError("it is a second start")
    if record.end is not None:
        raise NearmetalError("it follows the end of the run")
    return with_entry(record, entry)


def _as_json(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _as_json(part) for name, part in value._asdict().items()}
    return list(map(_as_json, value)) if isinstance(value, tuple) else value


def entry_of(line: bytes) -> Entry:
    """The entry of one line. Raises NearmetalError, ValueError, TypeError or KeyError for anything else."""
    content = json_text.parse(line.decode("utf-8"))
    if not isinstance(content, dict):
        raise NearmetalError("it isn't a JSON object")
    kind = content.pop("kind")
    if kind == "start":
        number = content.pop("format")
        if number not in READABLE or isinstance(number, bool):
            known = " and ".join(map(str, READABLE))
            raise NearmetalError(f"format {_brief(number)} is of another version; this nearmetal reads {known}")
        start: Start = _checked_form(Start, content, _START)
        if number == FORMAT_3:  # what nobody could do then, and the user didn't leave out
            start = start._replace(settings=start.settings._replace(soak=0))
        return start._replace(format=number)
    if kind == "measurement":
        measurement = _checked_form(Measurement, content, _MEASUREMENT)
        if bool(measurement.metrics) == bool(measurement.error):
            raise NearmetalError("a measurement must have either metrics or an error")
        if measurement.unhealthy and not measurement.error:
            raise NearmetalError("a measurement of an unhealthy host must have an error")
        return measurement
    if kind == "end":
        return _checked_form(
            End, content, {"outcome": _choice("kept", "restored"), "verdict": _choice(*VERDICTS), "at": _seconds}
        )
    raise NearmetalError(f"its kind is {_brief(kind)}")


def _checked_form(form: Type[_Form], content: Any, checks: "Mapping[str, Callable[[Any], Any]]") -> _Form:
    """The entry. Raises NearmetalError when a field is unknown or has a wrong value, KeyError when one is absent."""
    if not isinstance(content, dict):
        raise NearmetalError(f"it has {_brief(content)} in place of an object")
    unknown = sorted(set(content) - set(checks))
    if unknown:
        raise NearmetalError(f"it has the unknown field {_brief(unknown[0])}")
    absent = [name for name in _ADDED.get(form, ()) if name not in content]
    return form(**{name: check(content[name]) for name, check in checks.items() if name not in absent})


def _brief(value: Any) -> str:
    return clipped(shown(value), 80)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise NearmetalError(f"it has {_brief(value)} in place of a text")
    return value


def _sentence(value: Any) -> str:
    """A text of one line without control characters."""
    if not _text(value).isprintable():
        raise NearmetalError(f"it has {_brief(value)} in place of a line without control characters")
    return str(value)


def _matching(pattern: str) -> "Callable[[Any], str]":
    def check(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise NearmetalError(f"it has {_brief(value)} in place of a name")
        return value

    return check


def _choice(*allowed: str) -> "Callable[[Any], str]":
    def check(value: Any) -> str:
        if value not in allowed or not isinstance(value, str):
            raise NearmetalError(f"it has {_brief(value)} in place of {' or '.join(allowed)}")
        return value

    return check


def _number(least: float, most: float) -> "Callable[[Any], float]":
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise NearmetalError(f"it has {_brief(value)} in place of a number from {least:.10g} to {most:.10g}")
        return float(value)

    return check


def _whole(least: int, most: int) -> "Callable[[Any], int]":
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise NearmetalError(f"it has {_brief(value)} in place of a whole number from {least} to {most}")
        return value

    return check


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NearmetalError(f"it has {_brief(value)} in place of true or false")
    return value


def _or_null(checked: "Callable[[Any], Any]") -> "Callable[[Any], Any]":
    return lambda value: None if value is None else checked(value)


def _each(checked: "Callable[[Any], Any]") -> "Callable[[Any], Any]":
    """What every client has; before there were several, it stood alone, or was null."""

    def check(value: Any) -> "Tuple[Any, ...]":
        values = value if isinstance(value, list) else [] if value is None else [value]
        if len(values) > MOST_CLIENTS:
            raise NearmetalError(f"it has {len(values)} clients; at most {MOST_CLIENTS} are read")
        return tuple(map(checked, values))

    return check


def _texts(value: Any) -> "tuple[str, ...]":
    if not isinstance(value, list) or len(value) > MOST_TEXTS:
        raise NearmetalError(f"it has {_brief(value)} in place of a list of texts")
    return tuple(_sentence(item) for item in value)


def metrics_from(value: Any) -> "tuple[Metric, ...]":
    """The metrics of a record. Raises NearmetalError, or KeyError, for anything else."""
    if not isinstance(value, list) or len(value) > MOST_METRICS:
        raise NearmetalError(f"it has {_brief(value)} in place of a list of metrics")
    metrics = tuple(_checked_form(Metric, item, _METRIC) for item in value)
    if len({metric.name for metric in metrics}) != len(metrics):
        raise NearmetalError("it names a metric twice")
    return metrics


def _by_name(what: str, name_of: "Callable[[Any], str]", checked: "Callable[[Any], Any]") -> "Callable[[Any], Any]":
    def check(value: Any) -> Dict[str, Any]:
        if not isinstance(value, dict) or len(value) > MOST_TEXTS:
            raise NearmetalError(f"it has {_brief(value)} in place of {what}")
        return {name_of(name): checked(item) for name, item in value.items()}

    return check


def sample_from(value: Any) -> Sample:
    """A host's counters. Raises NearmetalError, or KeyError, for anything else."""
    return _checked_form(Sample, value, _SAMPLE)


def _places(value: Any) -> "Tuple[Place, ...]":
    if not isinstance(value, list) or len(value) > MOST_TEXTS:
        raise NearmetalError(f"it has {_brief(value)} in place of a list of places")
    return tuple(_checked_form(Place, item, _PLACE) for item in value)


_seconds = _number(0, 1e12)
_COUNT = _whole(0, 2**64 - 1)
_METRIC: "Mapping[str, Callable[[Any], Any]]" = {
    "name": _matching(NAME),
    "value": lambda value: 0.0 if value == 0 and value is not False else _number(SMALLEST, LARGEST)(value),
    "unit": _matching(f"({UNIT})?"),
    "better": _choice(LARGER, SMALLER),
}
_SAMPLE: "Mapping[str, Callable[[Any], Any]]" = {
    "boot_id": _matching(_BOOT_ID),
    "host_seconds": _seconds,
    "cpu_total": _or_null(_seconds),
    "cpu_steal": _or_null(_seconds),
    "cpu_foreign": _or_null(_seconds),
    "throttled": _or_null(_COUNT),
    "swapped": _or_null(_COUNT),
    "allowances": _by_name("counters", _matching(_COUNTER), _COUNT),
    "cpu_softirq": _or_null(_seconds),
    "context_switches": _or_null(_COUNT),
    "interrupts": _by_name("counters", _sentence, _COUNT),
    "jobs": _by_name("jobs", _sentence, _sentence),
}
_PLACE: "Mapping[str, Callable[[Any], Any]]" = {
    "setting": _sentence,
    "where": _sentence,
    **dict.fromkeys((UNTUNED, TUNED), lambda value: value),
}
_START: "Mapping[str, Callable[[Any], Any]]" = {
    "settings": settings_of,
    "host": _sentence,
    "began": _seconds,
    "load": _text,
    "load_on": _sentence,
    "version": _sentence,
    "tested": _texts,
    "not_tested": _texts,
    "programs": _texts,
    "only": _texts,
    "states": _matching(r"[0-9a-f]{0,64}"),
    "health": _text,
    "restart": _text,
    "against": _sentence,
    "places": _places,
    "tolerate": _texts,
    "machine": _by_name("texts", _sentence, _sentence),
}
_MEASUREMENT: "Mapping[str, Callable[[Any], Any]]" = {
    "phase": _choice(*PHASES),
    "pair": _whole(1, 1000),
    "attempt": _whole(1, 1000),
    "state": _choice(UNTUNED, TUNED),
    "began": _seconds,
    "ended": _seconds,
    "metrics": metrics_from,
    "error": _sentence,
    "state_lost": _sentence,
    "generator_busy": _each(_number(0, 1)),
    "switch_seconds": _seconds,
    "before": _or_null(sample_from),
    "after": _or_null(sample_from),
    "concern": _matching(r"[a-z_]{0,40}"),
    "unhealthy": _flag,
    "client_before": _each(sample_from),
    "client_after": _each(sample_from),
    "load_version": _sentence,
    "sham_state": _choice(UNTUNED, TUNED),
    "program_ended": _flag,
}
