# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of prove asks, records and says, from its options and answers. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics.order import TUNED, UNTUNED
from ...module_utils._prove.statistics.record import Record, Start
from ...module_utils._prove.statistics.settings import Settings
from ...module_utils._prove.statistics.verdict import Verdict
from ...module_utils._version import VERSION
from ...module_utils._words import clipped, sentence
from . import reboots, sentences
from .host_answers import Begun
from .log import Log

_ALIKE = "the same in both states"
_OPTIONS_OF_STEPS = (
    "command",
    "load_on",
    "health",
    "restart",
    "programs",
    "tolerate",
    "only",
    "tune",
    "against",
    "profile",
)
_SETTINGS_OF_STEPS = ("seconds", "settle", "timed", "reboot", "abandon_after")


def arguments_for_steps(options: Mapping[str, Any], settings: Settings, run: str) -> Dict[str, Any]:
    """The arguments that every step on the host has."""
    return {
        **{name: options[name] for name in _OPTIONS_OF_STEPS},
        **{name: getattr(settings, name) for name in _SETTINGS_OF_STEPS},
        "run": run,
    }


def planned(lines: List[str], tested: List[str], untested: List[str]) -> Dict[str, Any]:
    """The task's result in check mode, of the lines that it showed."""
    return {
        "changed": False,
        "msg": sentence("; ".join(line.strip() for line in lines[:2])),
        "tested": tested,
        "untested": untested,
    }


def start(host: str, began: float, settings: Settings, options: Mapping[str, Any], compared: Begun) -> Start:
    """The first line of a new record."""
    return Start(
        settings=settings,
        host=host,
        began=began,
        load=options["command"],
        load_on=", ".join(options["load_on"]),
        version=VERSION,
        tested=tuple(compared.tested),
        not_tested=(*compared.untested, *compared.left_out),
        programs=tuple(options["programs"]),
        tolerate=tuple(options["tolerate"]),
        only=tuple(options["only"]),
        states=compared.states,
        health=options["health"],
        restart=options["restart"],
        against=sentences.tuning(options["against"]),
        places=compared.places,
        machine=compared.machine,
    )


def require_same(start: Start, compared: Begun) -> None:
    """Raise NearmetalError when the run that is resumed compared other states, or was on another kernel or machine."""
    if sorted(start.tested) != sorted(compared.tested):
        raise NearmetalError(
            f"resume names a run that compared {', '.join(start.tested)}; now the states differ in"
            f" {', '.join(compared.tested)}: start a new run"
        )
    differing = [
        f"{name.replace('_', ' ')} was {text} and is {compared.machine.get(name)}"
        for name, text in start.machine.items()
        if text and compared.machine.get(name, "") not in ("", text)
    ]
    now = {place[:2]: place for place in compared.places}
    for place in start.places:
        found = now.get(place[:2], place._replace(untuned=_ALIKE, tuned=_ALIKE))
        for index, state in ((2, UNTUNED), (3, TUNED)):
            if place[index] != found[index]:
                was, is_now = (sentences.place_cells(of)[index] for of in (place, found))
                differing.append(f"{' '.join(filter(None, place[:2]))} {state} was {was} and is {is_now}")
    listed = clipped("; ".join(differing), 600)
    if start.states != compared.states:
        raise NearmetalError(
            f"resume names a run that compared other values of these settings{f' ({listed})' if listed else ''}:"
            " start a new run, or use the tuning of that run"
        )
    if differing:
        raise NearmetalError(f"resume names a run on this host as it was then: {listed}; start a new run")


def ending(
    log: Log, compared: Begun, reboot_required: bool, set_by_others: List[str], written: List[str]
) -> sentences.Ending:
    """What the run compared, and what it did to the host at its end."""
    return sentences.Ending(
        kept=log.record.end is not None and log.record.end.outcome == "kept",
        tested=compared.tested,
        untested=compared.untested,
        written=written,
        left_out=compared.left_out,
        tuned_before=compared.tuned_before,
        reboot_required=reboot_required,
        wanted=compared.wanted,
        set_by_others=set_by_others,
        sha256=log.sha256(),
    )


def ended(record: Record, result: Verdict, ending: sentences.Ending, path: str, reports: List[str]) -> Dict[str, Any]:
    """The task's result after a verdict."""
    return {
        "changed": ending.kept,
        "msg": sentences.summary(result, ending),
        "verdict": result.as_dict(),
        **ending._asdict(),
        "load": record.start.load,
        "against": record.start.against,
        "record": path,
        "reports": reports,
    }


def not_restored(
    reason: str, error: str, settings: Settings, options: Mapping[str, Any], began: bool, keeping: bool
) -> str:
    """Why a run ended, and what restores the host that it couldn't restore."""
    advice = reboots.restored_by(settings)
    if not began:  # perhaps the host was never reached
        return f"{reason}; if the run had begun on the host, {advice}"
    if keeping and not options["only"]:
        has_timer = settings.abandon_after
        advice = f"it is tuned unless {advice}: run an audit to see" if has_timer else "run an audit to see its state"
    return f"{reason}; the host could not be restored ({error}); {advice}"
