# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of `prove` that plan: its beginning, keeping what is better, and all around a reboot. PRIVATE."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ..._concerns.registry import CONCERNS
from ..._engine.lease.record import REBOOTED, TUNED, UNTUNED
from ..._engine.result import described
from ..._engine.run import Ask, Conditions
from ..._engine.session import Origin
from ..._error import NearmetalError
from ..._facts import cpu, imds, platform
from ..._facts.topology import CPU
from ..._host.host import WritableHost
from ..._plan import Finding
from ..._planning.concern import Concern
from ..._planning.knob import BOOT
from ..._planning.options import validate
from ..._planning.waivers import managed
from ..._tasks.tuning import WANTED, tune_request
from ..._words import choices, shown
from ..statistics.settings import BOOT_SECONDS
from . import health, reboots, running, second_clock, states
from .left_out import NothingDiffers

_CHOICES = ("workload", "program", "workload_concerns", "workload_concerns_of", "concerns", "exclude", "prune")


def plan(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """What `begin` would compare, or why there is `nothing` to compare; nothing is changed. Raises NearmetalError."""
    try:
        if options["reboot"]:
            tested, untested = reboots.preview(host, options["run"], _tuning(host, options), options["abandon_after"])
        else:
            tested, untested = states.preview(host, options["run"], *_comparison(host, options))
    except NothingDiffers as nothing:
        return {"nothing": str(nothing)}
    return {"tested": list(tested), "untested": _sentences(untested)}


def _comparison(host: WritableHost, options: Mapping[str, Any]) -> Tuple[List[Ask], List[str], int, bool]:
    """The tunings that are compared, the settings that take part, the time of the timer, and if programs restart."""
    asks = [tune_request(host, _wanted(options)).ask]
    if options["against"]:
        asks.append(tune_request(host, other_tuning(options["tune"], options["against"])).ask)
    _require_known(options["only"])
    return asks, options["only"], options["abandon_after"], bool(options["restart"])


def _sentences(findings: Sequence[Finding]) -> List[str]:
    """Each setting that isn't compared, with the reason."""
    return list(dict.fromkeys(f"{finding.concern}.{finding.knob}: {finding.reason}" for finding in findings))


def begin(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Begin the experiment, and say what it compares, or why there is `nothing` to compare. Raises NearmetalError."""
    health.require(options["health"])
    try:
        begun: Optional[states.Begun]
        if options["reboot"]:
            begun = reboots.begin(host, options["run"], _tuning(host, options), options["abandon_after"])
        else:
            begun = states.begin(host, options["run"], *_comparison(host, options))
    except NothingDiffers as nothing:
        return {"nothing": str(nothing)}
    if begun is None:
        return {"reboot": True}
    if options["timed"] and options["load_on"] == ["host"] and second_clock.needed(begun.experiment):
        try:
            second_clock.require(host)
        except NearmetalError:
            if options["reboot"]:
                reboots.take_back(host, options["run"])
            else:
                states.end(host, options["run"])
            raise
    return _described(host, begun)


def _described(host: WritableHost, begun: states.Begun) -> Dict[str, Any]:
    difference = begun.experiment.difference
    values: Dict[str, List[Any]] = {}
    for finding in begun.tuned:
        same = values.setdefault(f"{finding.concern}.{finding.knob}", [])
        same += [finding.wanted] if finding.wanted not in same else []
    return {
        "wanted": values,
        "tested": list(dict.fromkeys(f"{action.concern}.{action.knob}" for action in difference)),
        "untested": _sentences(begun.untested),
        "left_out": _sentences(begun.left_out),
        "states": _digest(begun.experiment),
        "tuned_before": bool(begun.experiment.lease.earlier),
        "places": [
            {
                "setting": f"{action.concern}.{action.knob}",
                "where": action.where,
                UNTUNED: action.before,
                TUNED: action.after,
            }
            for action in difference
        ],
        "machine": _machine(host),
        "boot_id": host.boot_id(),
    }


def _machine(host: WritableHost) -> Dict[str, str]:
    """What the figures hold for, as far as the host says."""
    seen = platform.observe(host)
    metadata = imds.observe(seen)
    about = {
        "kernel": seen.kernel,
        "kernel_build": host.line("/proc/sys/kernel/version"),
        "architecture": seen.architecture,
        "host_class": seen.host_class,
        "instance_type": seen.instance_type or metadata.instance_type,
        "processor": cpu.observe(host).model,
        "cpus": host.line(f"{CPU}/online"),
        "system": " ".join(filter(None, (seen.distribution, seen.distribution_version))),
        "image": metadata.image_id,
    }
    return {name: text or "" for name, text in about.items()}


def _digest(experiment: running.Experiment) -> str:
    """A digest by which the controller recognizes the same two states in a later run."""
    values = [[action.what, action.where, action.after] for action in (*experiment.difference, *experiment.shared)]
    if experiment.against:
        values += [[action.what, action.where, action.before, "against"] for action in experiment.difference]
    places = sorted(json.dumps(value, sort_keys=True) for value in values)
    return hashlib.sha256("\n".join(places).encode()).hexdigest()


def _require_known(knobs: Sequence[str]) -> None:
    for name in knobs:
        concern, _dot, option = name.partition(".")
        if concern not in CONCERNS:
            raise NearmetalError(f"prove.only has {shown(name)}; its concerns are {', '.join(sorted(CONCERNS))}")
        options = sorted({knob.name for knob in CONCERNS[concern].knobs if knob.lever})
        if option not in options:
            raise NearmetalError(
                f"prove.only has {shown(name)}; the settings of {concern} are {choices(options, option)}"
            )


def keep(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """End the experiment tuned, and do what `tune` does: the same values are kept for the next boot.

    Where `only` some settings were compared, the host is taken back. Raises NearmetalError.
    """
    if options["reboot"] and options["only"]:  # `tune` would also set what was never compared
        answer = take_back(host, options)
        return {"kept": False, "reboot_required": False, "reboot": answer.get("reboot") is True}
    if options["reboot"]:
        arguments = list(running.require_running(host, options["run"], REBOOTED).arguments)
        done, waits = reboots.keep(host, options["run"], _tuning(host, options))
        required = described(done.facts, done.outcomes)["reboot_required"]
        return {"kept": True, "reboot_required": required, "reboot": waits, "arguments": arguments}
    if options["only"]:
        running.require_running(host, options["run"])
        ended = states.end(host, options["run"])
        return {"kept": False, "reboot_required": False, **running.set_by_others(host, ended)}
    experiment = running.require_running(host, options["run"])
    done = states.keep(host, options["run"], _tuning(host, options, experiment))
    changed = {f"{action.concern}.{action.knob}" for outcome in done.outcomes for action in outcome.plan.actions}
    written = [name for name in experiment.untested if name in changed]
    required = described(done.facts, done.outcomes)["reboot_required"]
    return {"kept": True, "reboot_required": required, "written": written}


def switch(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Write what the host is to boot into."""
    return {"arguments": reboots.write_state(host, options["run"], options["state"], _tuning(host, options))}


def arrive(host: WritableHost, options: Mapping[str, Any], booted: Callable[[], None]) -> running.Experiment:
    """The experiment, when the host has booted into the state of the step; `booted` is called before it is tuned."""
    return reboots.arrive(host, options["run"], options["state"], _tuning(host, options), BOOT_SECONDS, booted)


def not_in_force(host: WritableHost, experiment: running.Experiment, options: Mapping[str, Any]) -> List[str]:
    """What isn't as the state wants it."""
    return reboots.not_in_force(host, experiment, _tuning(host, options))


def take_back(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Take back an experiment that outlives reboots; `reboot` says that the host still runs with what was."""
    lease = reboots.take_back(host, options["run"])
    if lease is None or not lease.ending:
        return {"ended": lease is not None, "reboot": False}
    within = f"or its timer does so within {lease.abandon_after} s"
    return {
        "ended": True,
        "reboot": True,
        "msg": f"done; the host still runs with what was taken back: reboot it, {within}",
    }


def _tuning(
    host: WritableHost, options: Mapping[str, Any], experiment: Optional[running.Experiment] = None
) -> states.Tuning:
    """How `tune` is run with the options that are proven, without what an experiment couldn't test.

    Raises NearmetalError for a wrong option.
    """
    _require_known(options["only"])
    wanted = {**_wanted(options), "only": options["only"]}
    limits = _felt_after_boot(wanted) if options["reboot"] else _tested(wanted, experiment)
    chosen, ask = tune_request(host, {**wanted, **limits})
    conditions = Conditions(Origin(chosen.run), strict=wanted["strict"], roll_back_all=True)
    return states.Tuning(ask, conditions, tune_request(host, wanted).ask)


def _tested(wanted: Mapping[str, Any], experiment: Optional[running.Experiment]) -> Dict[str, Any]:
    """The options of `tune` that limit a run to what an experiment tested; none if it tested all.

    Beside `prune`, which takes back everything else, `only` isn't possible.
    """
    if experiment is None or not experiment.untested:
        return {}
    if wanted["prune"]:
        return _without(wanted, lambda concern, option: f"{concern.name}.{option}" in experiment.untested)
    actions = (*experiment.difference, *experiment.shared)
    return {"only": list(dict.fromkeys(f"{action.concern}.{action.knob}" for action in actions))}


def _felt_after_boot(wanted: Mapping[str, Any]) -> Dict[str, Any]:
    """The options of `tune` that leave out what no load right after a boot may show."""
    return _without(wanted, lambda concern, option: bool(concern.unfelt(option, BOOT)))


def _without(wanted: Mapping[str, Any], leaves_out: Callable[[Concern, str], bool]) -> Dict[str, Any]:
    settings = ((concern, option) for concern in CONCERNS.values() for option in managed(concern))
    named = [f"{concern.name}.{option}" for concern, option in settings if leaves_out(concern, option)]
    waived = [waiver.get("knob") for waiver in wanted["waivers"]]
    return {"exclude": [*wanted["exclude"], *(name for name in named if name not in waived)]}


def _wanted(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The options of `tune` that are proven, checked. Raises NearmetalError for a wrong one."""
    return validate("tune", WANTED, options["tune"])


def other_tuning(tune: Mapping[str, Any], against: Mapping[str, Any]) -> Dict[str, Any]:
    """The options of the other tuning: its own workloads and concerns, and what else `tune` was given.

    Raises NearmetalError for a wrong one.
    """
    rest = {name: value for name, value in tune.items() if name not in _CHOICES}
    return validate("prove.against", WANTED, {**rest, **against})


STEPS: Mapping[str, Callable[[WritableHost, Mapping[str, Any]], Dict[str, Any]]] = {
    "plan": plan,
    "begin": begin,
    "switch": switch,
    "keep": keep,
}
