# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers of hosts to the steps of a run, which are untrusted until they are checked. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, NamedTuple, Tuple

from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics.order import TUNED, UNTUNED
from ...module_utils._prove.statistics.record import Place
from ...module_utils._prove.statistics.record_lines import MOST_TEXTS
from ...module_utils._words import printable
from .. import _clean as clean
from . import loop

_LONGEST_SENTENCE = 1000  # characters of a host's sentence about a setting
_LONGEST_SWITCH = 1e6  # seconds; no run waits longer
_DIGEST = re.compile("[0-9a-f]{64}")


class Begun(NamedTuple):
    """A host's answer to the step `begin`: what it compares."""

    tested: List[str]
    wanted: Mapping[str, Any]
    untested: List[str]  # with the reason; written if the tuning is kept
    left_out: List[str]  # with the reason; never written
    states: str  # a digest of the values of both states
    tuned_before: bool
    places: Tuple[Place, ...] = ()
    machine: Mapping[str, str] = {}


def sentences(answer: Mapping[str, Any], name: str) -> List[str]:
    """The settings that the answer lists under this name, each with its reason. Raises NearmetalError."""
    texts = answer.get(name)
    if not isinstance(texts, list):
        raise NearmetalError(loop.UNKNOWN_FORM)
    return [printable(clean.text(text, _LONGEST_SENTENCE)) for text in texts[:MOST_TEXTS]]


def begin(answer: Mapping[str, Any]) -> Begun:
    """Check an untrusted answer to `begin`. Raises NearmetalError when it has another form."""
    tested, untested, left_out = (sentences(answer, name) for name in ("tested", "untested", "left_out"))
    states = str(answer.get("states"))
    if not _DIGEST.fullmatch(states):
        raise NearmetalError(loop.UNKNOWN_FORM)
    values = clean.Budget().value(answer.get("wanted"))
    wanted = values if isinstance(values, dict) else {}
    budget = clean.Budget()
    places = [
        Place(
            *(budget.text(place.get(name)) for name in ("setting", "where")),
            *(budget.value(place.get(state)) for state in (UNTUNED, TUNED)),
        )
        for place in clean.mappings(answer.get("places"), MOST_TEXTS)
    ]
    machine = {budget.text(name): budget.text(text) for name, text in clean.mapping(answer.get("machine")).items()}
    tuned_before = answer.get("tuned_before") is True
    return Begun(tested, wanted, untested, left_out, states, tuned_before, tuple(places), machine)


def busiest(others: Any) -> str:
    """The name of the program that used the most CPU time, the load excepted; untrusted."""
    first = others[0] if isinstance(others, list) and others else None
    return clean.text(first.get("name"), 16) if isinstance(first, dict) else ""


def measured(answer: Mapping[str, Any], ran: Mapping[str, Any]) -> loop.Answer:
    """A host's answer to a measurement, with that of where the load `ran`, which may be the same host.

    Raises NearmetalError when it has another form.
    """
    load, taken_back, switch_seconds = ran.get("load"), answer.get("taken_back"), answer.get("switch_seconds", 0.0)
    if (
        isinstance(switch_seconds, bool)
        or not isinstance(switch_seconds, (int, float))
        or not 0 <= switch_seconds <= _LONGEST_SWITCH
    ):
        raise NearmetalError(loop.UNKNOWN_FORM)
    return loop.Answer(
        load=load if isinstance(load, dict) else {},
        before=answer.get("before"),
        after=answer.get("after"),
        taken_back=tuple(map(str, taken_back)) if isinstance(taken_back, list) else (),
        switch_seconds=float(switch_seconds),
        generator_busy=tuple(ran.get("busy", ())),
        unhealthy=str(answer.get("unhealthy") or ""),
        ended=str(answer.get("ended") or ""),
        client_before=ran.get("client_before", ()),
        client_after=ran.get("client_after", ()),
    )
