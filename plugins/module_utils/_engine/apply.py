# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying a plan: journal, write, look again, or roll back. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import AbstractSet, Callable, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import Declined, NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.capabilities import (
    Batch,
    completed,
    disturbed_by,
    may_return,
    seen,
    write_all,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of, way_back
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Value
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import LONGEST_VALUE, in_words


def obstacles(host: WritableHost, actions: Sequence[Action]) -> List[str]:
    """Why these actions can't be done, known before anything is changed."""
    found = []
    for action in actions:
        lever = lever_of(action.what)
        lever.check(action.where, action.after)
        sentence = lever.obstacle(host, action.where)
        if sentence:
            found.append(f"{action.concern}.{action.knob}: {sentence}")
    return found


def _nothing() -> None:
    return


def apply(
    host: WritableHost,
    journal: Journal,
    actions: Sequence[Action],
    left: Callable[[], Sequence[Action]],
    remember: Callable[[], None] = _nothing,
) -> List[Action]:
    """Do the actions of one concern as a whole: all of them hold afterwards, or none was done.

    `left` observes the host again and returns what is still to do. `remember` stores what else the run leaves behind,
    as a part of the whole. Returns what was done, with what came to a place after it was planned.
    Raises NearmetalError, with everything taken back, when a write fails or the
    kernel didn't take a value.
    """
    earlier = journal.entries()
    actions = [
        replace(action, before=completed(lever_of(action.what), host, action.where, action.before))
        for action in actions
    ]
    done: List[Action] = []
    written = {(action.what, action.where) for action in actions}
    places = _neighbours(host, actions)
    neighbours = [place for place in places if (place.what, place.where) not in written]
    try:
        if actions:
            journal.begin(actions, neighbours)
        for group in _groups(actions):
            done += group
            write_all(lever_of(group[0].what), host, {action.where: action.after for action in group})
        if actions:
            _demand_held(host, done, left())
            journal.settle(actions, neighbours)
            _settle_neighbours(host, journal)
        remember()
    except NearmetalError as error:
        trouble = roll_back(host, [*_disturbed(host, places, written), *done])
        if trouble:
            with suppress(NearmetalError):  # what was begun is on disk
                journal.keep(earlier)
            raise NearmetalError(
                f"{error}; and undoing it failed: {trouble}; the journal keeps the originals"
            ) from None
        with suppress(NearmetalError):  # an entry too many does no harm: its place is back at the original
            journal.reset(earlier)
        sentence = f"{error}; what this concern had changed was taken back"
        if isinstance(error, Declined):
            raise Declined(sentence, error.places, error.answer) from None
        raise NearmetalError(sentence) from None
    return [*_disturbed(host, places, written), *done]


def _neighbours(host: WritableHost, actions: Sequence[Action]) -> List[Action]:
    """The other places that these actions may change, as they are before; the reason names the lever that may."""
    found: Dict[Tuple[str, str], Action] = {}
    for action in actions:
        for what, where in disturbed_by(lever_of(action.what), host, action.where):
            now = lever_of(what).read(host, where)
            with suppress(NearmetalError):
                lever_of(what).check(where, now)
                place = Action(action.concern, what.rpartition(".")[2], what, now, now, action.what, "journal", where)
                found.setdefault((what, where), place)
    return list(found.values())


def _disturbed(host: WritableHost, places: Sequence[Action], written: AbstractSet[Tuple[str, str]]) -> List[Action]:
    """Those of the places that have changed; of one that was `written`, only the elements that it lost."""
    found = []
    for place in places:
        lever = lever_of(place.what)
        now = lever.read(host, place.where)
        present = lever.elements(now)
        lost = {name: None for name in lever.elements(place.before) if name not in present} if lever.partial else {}
        changed = {} if (place.what, place.where) in written or now == place.before else present
        if now is not None and (changed or lost):
            found.append(replace(place, after=lever.composed({**changed, **lost}, now)))
    return found


def _settle_neighbours(host: WritableHost, journal: Journal) -> None:
    """Take back what was changed only because another place was, which is back by now."""
    present = {(entry.concern, entry.what) for entry in journal.entries()}
    entries = [
        entry
        for entry in journal.entries()
        if entry.disturbed_by and (entry.concern, entry.disturbed_by) not in present
    ]
    if entries:
        back = plan_restore(host, entries, "set again by the restore of another value")
        apply(host, journal, back.plan.actions, tuple)
        journal.forget(back.forget)


def roll_back(host: WritableHost, done: Sequence[Action]) -> str:
    """Take actions back, the last one first; what couldn't be taken back, as a sentence.

    Of a table only the elements that an action changed.
    """
    trouble = []
    for group in _groups(way_back(done)):
        lever = lever_of(group[0].what)
        try:
            write_all(lever, host, {action.where: value for action, value in _not_back(host, group)})
        except NearmetalError:
            trouble += _each_alone(host, group)
        for action, value in _not_back(host, group):
            trouble.append(f"{action.what} {action.where} doesn't take {_shown(value)}")
    sentences = list(dict.fromkeys(trouble))
    return "; ".join(sentences[:2]) + (f"; and {len(sentences) - 2} more" if len(sentences) > 2 else "")


def _each_alone(host: WritableHost, group: Sequence[Action]) -> List[str]:
    """Take back element by element what isn't back yet, so that no failure stops the others; the failures."""
    trouble = []
    lever = lever_of(group[0].what)
    for action, value in _not_back(host, group):
        for name, part in lever.elements(value, seen(lever, host, action.where)).items():
            try:
                lever.write(host, action.where, lever.composed({name: part}, lever.read(host, action.where)))
            except NearmetalError as error:
                trouble.append(str(error))
    return trouble


def _not_back(host: WritableHost, group: Sequence[Action]) -> List[Tuple[Action, Value]]:
    """The actions of one lever whose place isn't yet as it was before them, and the value that brings it back."""
    found = []
    for action in group:
        lever = lever_of(action.what)
        present = seen(lever, host, action.where)
        before = lever.elements(action.before, lever.elements(action.after))
        after = lever.elements(action.after, before)
        back = {
            name: part
            for name, part in before.items()
            if name in after and after[name] != part and _missed(host, action, present, name, part)
        }
        if back:
            found.append((action, lever.composed(back, lever.read(host, action.where))))
    return found


def _missed(host: WritableHost, action: Action, present: Mapping[str, Value], name: str, part: Value) -> bool:
    """Whether an element isn't seen to be as it was before an action."""
    lever = lever_of(action.what)
    if name not in present:
        return may_return(lever, host, action.where, name)
    return not lever.alike(lever.remembered(present[name]), lever.remembered(part))


def _groups(actions: Sequence[Action]) -> List[List[Action]]:
    """The actions in groups that are written in one go: each alone, but those of a lever that takes several."""
    groups: List[List[Action]] = []
    for action in actions:
        if isinstance(lever_of(action.what), Batch) and groups and groups[-1][0].what == action.what:
            groups[-1].append(action)
        else:
            groups.append([action])
    return groups


def _demand_held(host: WritableHost, done: Sequence[Action], left: Sequence[Action]) -> None:
    """Raise NearmetalError unless each place has its value, and a new plan has nothing more to do."""
    again = {(action.what, action.where) for action in left}
    for action in done:
        now = lever_of(action.what).read(host, action.where)
        if not lever_of(action.what).same(now, action.after) or (action.what, action.where) in again:
            place = f"{action.what} {action.where}".strip()
            raise NearmetalError(
                f"{action.concern}.{action.knob}: the kernel did not take {_shown(action.after)} for {place}: it has"
                f" {_shown(now)}"
            )


def _shown(value: Value) -> str:
    return in_words(value, "nothing", LONGEST_VALUE)


def as_far_as_taken(outcome: Outcome, do: Callable[[Outcome], List[Action]]) -> Tuple[Outcome, List[Action]]:
    """Do an outcome, without what a driver refuses of a workload's values; what was done of it.

    No driver says beforehand which values it takes. What only a workload wants is then not applicable, and the
    rest of the concern is done. `do` takes everything back before it raises. Raises NearmetalError for what the
    user wants, and for every other error.
    """
    while True:
        try:
            return outcome, do(outcome)
        except Declined as refusal:
            outcome = _without_refused(outcome, refusal)


def still_wanted(outcome: Outcome, actions: Sequence[Action]) -> List[Action]:
    """The actions of a new plan but for those that a driver refused to this outcome."""
    left_out = {
        (finding.knob, finding.where) for finding in outcome.plan.findings if finding.status == "not_applicable"
    }
    return [action for action in actions if (action.knob, action.where) not in left_out]


def _without_refused(outcome: Outcome, refusal: Declined) -> Outcome:
    """The outcome without the workload's values that were refused. Raises NearmetalError if none of them is one."""
    refused = [action for action in outcome.plan.actions if (action.what, action.where) in refusal.places]
    dropped = [action for action in refused if action.wanted_by == "workload"]
    if not dropped:
        knobs = ", ".join(dict.fromkeys(f"{action.concern}.{action.knob}" for action in refused))
        raise NearmetalError(f"{knobs}: {refusal}" if knobs else str(refusal)) from None
    places = {(action.knob, action.where) for action in dropped}
    plan = replace(
        outcome.plan,
        actions=tuple(action for action in outcome.plan.actions if action not in dropped),
        findings=tuple(
            _not_applicable(finding, refusal)
            if finding.status == "would_change" and (finding.knob, finding.where) in places
            else finding
            for finding in outcome.plan.findings
        ),
    )
    return replace(outcome, plan=plan)


def _not_applicable(finding: Finding, refusal: Declined) -> Finding:
    return replace(finding, status="not_applicable", reason=refusal.answer, gain="")
