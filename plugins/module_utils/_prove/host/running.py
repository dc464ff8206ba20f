# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running experiment: its lease, what is compared, and its states. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._engine.lease import confirmation, record, taking_back
from ..._engine.lease.record import REBOOTED, SWITCHED, UNTUNED, Kind, Lease, read_actions, read_texts
from ..._engine.lease.taking_back import journal_of, require_none, set_values
from ..._error import NearmetalError
from ..._facts.json_data import json_data
from ..._host.host import WritableHost
from ..._levers.registry import lever_of, place_of
from ..._memory.entry import Entry
from ..._parse import json_text
from ..._plan import Action, Finding, Value
from ..._words import in_words

_OWN: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    SWITCHED.path: {
        "difference": read_actions,
        "shared": read_actions,
        "against": bool,
        "untested": read_texts,
        "restarts": bool,
    },
    REBOOTED.path: dict.fromkeys(("places", "arguments", "refused"), read_texts),
}


class Experiment(NamedTuple):
    """What is compared on this host."""

    lease: Lease
    # Where the host is switched while it runs:
    difference: Tuple[Action, ...] = ()  # from untuned, or another tuning, to tuned
    shared: Tuple[Action, ...] = ()  # that another tuning sets as the tuned state does
    against: bool = False  # untuned is another tuning, not the host's originals
    untested: Tuple[str, ...] = ()  # `concern.option` of all that `tune` would change, and that isn't compared
    restarts: bool = False  # whether the programs that serve the load start anew with each switch
    # Where it is rebooted:
    places: Tuple[str, ...] = ()  # each difference on disk
    arguments: Tuple[str, ...] = ()  # the kernel arguments among them, as the boot loader has them
    refused: Tuple[str, ...] = ()  # places of a workload that a driver refused

    @property
    def reboots(self) -> bool:
        """Whether the host is rebooted between the states."""
        return self.lease.kind is REBOOTED


def running(host: WritableHost, kind: Kind = SWITCHED) -> Optional[Experiment]:
    """The experiment, checked like any input; None when there is none. Raises NearmetalError."""
    lease = record.present(host, kind)
    if lease is None:
        return None
    try:
        own = {"untested": [], "restarts": False, **lease.own}  # 0.2.0 wrote none
        experiment = Experiment(lease, **{name: read_own(own[name]) for name, read_own in _OWN[kind.path].items()})
        for action in experiment.difference if experiment.against else ():
            lever_of(action.what).check(action.where, action.before)  # it is written too
        return experiment
    except json_text.DAMAGE as error:
        raise kind.damaged(error) from None


def require_running(host: WritableHost, run_id: str, kind: Kind = SWITCHED) -> Experiment:
    """The experiment of this run. Raises NearmetalError when the host was taken back meanwhile."""
    experiment = running(host, kind)
    if experiment is None or experiment.lease.run != run_id or experiment.lease.ending:
        others = ", or" if kind is REBOOTED else ","
        reboot = "" if kind is REBOOTED else ", or it was rebooted"
        raise NearmetalError(
            f"the experiment ended on the host: its timer or a person took it back{others} somebody restored the"
            f" host{reboot}"
        )
    return experiment


def require_no_other(host: WritableHost, run_id: str) -> None:
    """Raise NearmetalError when another lease than one of this run is on the host."""
    for kind in (SWITCHED, REBOOTED):
        other = record.present(host, kind)
        if other is not None and other.run != run_id:
            raise another_run(other.run)
    if confirmation.waits(host):
        confirmation.require_none_waits(host)


def another_run(name: str) -> NearmetalError:
    """The error for a host on which another run compares something."""
    return NearmetalError(
        f"another run of prove compares two states of this host: go on where that run began, with prove_resume:"
        f" nearmetal-report/prove/{name}.jsonl, or take it back with the module prove and step: back"
    )


def with_own(experiment: Experiment) -> Lease:
    """The lease of an experiment, with what is compared beside it."""
    own = {name: json_data(getattr(experiment, name)) for name in _OWN[experiment.lease.kind.path]}
    return experiment.lease._replace(own=own)


def earlier_actions(host: WritableHost, lease: Lease) -> Tuple[Action, ...]:
    """The actions that set again on an untuned host what nearmetal had set before."""
    return _values(host, taking_back.switched_entries(journal_of(host), lease))


def on_disk(host: WritableHost) -> Tuple[Action, ...]:
    """The actions that bring back the files that nearmetal had written before the tuning is kept.

    A file that somebody changed so that it can't be written again is left out, so that the tuning can be kept.
    """
    actions: List[Action] = []
    for entry in taking_back.entries_on_disk(journal_of(host)):
        with suppress(NearmetalError):
            actions += _values(host, [entry])
    return tuple(actions)


def _values(host: WritableHost, entries: Sequence[Entry]) -> Tuple[Action, ...]:
    actions = []
    for entry in entries:
        place = entry.place(host)
        if place.detached():
            continue
        now = place.read()
        place.check(entry.where, now)
        reason = "as it was before the experiment"
        action = Action(entry.concern, entry.knob, entry.what, None, now, reason, "journal", entry.where)
        actions.append(action._replace(scope=place.scope))
    return tuple(actions)


def untune(host: WritableHost, experiment: Experiment, without: str = "") -> Sequence[Finding]:
    """Restore the originals of the knobs that take part, or set another tuning. Returns what can't be untuned.

    `without` a concern, that one is untuned, and all others are tuned. Raises NearmetalError after everything that
    can be untuned is.
    """
    if experiment.against:
        actions = (
            action._replace(after=action.before) if without in ("", action.concern) else action
            for action in experiment.difference
        )
        require_none(set_values(host, [*experiment.shared, *actions]))
        return ()
    lease = experiment.lease
    if without:
        require_none(set_values(host, [action for action in experiment.difference if action.concern != without]))
        lease = lease._replace(concerns=(without,))
    findings, failed = taking_back.untune(host, lease)
    require_none(failed)
    return findings


def tune(host: WritableHost, experiment: Experiment) -> None:
    """Set what `tune` would. Raises NearmetalError."""
    require_none(set_values(host, [*experiment.shared, *experiment.difference]))


class Comparison(NamedTuple):
    """What two tunings have in common, and what leads from the other one to the one under test."""

    shared: Tuple[Action, ...]  # both tunings set the same value
    difference: Tuple[Action, ...]  # from the other tuning's value, or the original, to the value under test


def compare(another: Sequence[Action], tuned: Sequence[Action]) -> Comparison:
    """Compare two tunings, planned on the same untuned host.

    Raises NearmetalError for an original that can't be set.
    """
    unmatched = {action.key: action for action in another}
    shared: List[Action] = []
    difference: List[Action] = []
    for action in tuned:
        other = unmatched.pop(action.key, None)
        if other is None:
            difference.append(action)
        elif lever_of(action.what).same(other.after, action.after):
            shared.append(action)
        else:
            difference.append(action._replace(before=other.after))
    difference += (action._replace(before=action.after, after=action.before) for action in unmatched.values())
    for action in difference:
        for value in (action.before, action.after):
            lever_of(action.what).check(action.where, value)
    return Comparison(tuple(shared), tuple(difference))


def taken_back(host: WritableHost, experiment: Experiment, state: str, without: str = "") -> List[str]:
    """The places that aren't in this state although the host was brought to it, because somebody else has set them."""
    goals = []
    for action in (*experiment.shared, *experiment.difference):
        untuned = state == UNTUNED and without in ("", action.concern) and action not in experiment.shared
        goals.append((action, action.before if untuned else action.after))
    return list(_differing(host, goals))


def set_by_others(host: WritableHost, experiment: Optional[Experiment]) -> Dict[str, List[str]]:
    """The places that aren't as before the experiment although it was taken back, as a part of the answer, if any.

    After a comparison with another tuning only those that nearmetal had set before are known.
    """
    if experiment is None:
        return {}
    earlier = {action.key: action.after for action in experiment.lease.earlier}
    goals = [
        (action, earlier.get(action.key, action.before))
        for action in experiment.difference
        if action.concern in experiment.lease.concerns  # of those that a failed try left
        and not (experiment.against and action.key not in earlier)
        and not place_of(host, action.key).detached()
    ]
    differing = list(_differing(host, goals))
    return {"set_by_others": differing} if differing else {}


def _differing(host: WritableHost, goals: List[Tuple[Action, Value]]) -> Iterator[str]:
    for action, goal in goals:
        place = place_of(host, action.key)
        now = place.read()
        if not place.same(now, goal):
            name = f"{action.what} {action.where}".strip()
            yield f"{name} is {in_words(now, 'absent', 40)}, not {in_words(goal, 'absent', 40)}"
