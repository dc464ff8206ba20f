# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An experiment on one host: it goes between untuned and tuned, and back to how it was. PRIVATE to the collection.

Only what runs is switched: no file, unit or stored wanted changes. What the two states
differ in is planned once, so that every measurement compares the same two. Originals go
through the journal, so `restore` works at any time. One file in /run says that an
experiment runs; the unit obeys it, and a reboot ends both. A timer on the host takes it
back when no step came for a while: the controller may be gone.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import ending
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore, set_elsewhere
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.json_data import json_data
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.switch import EXPERIMENT
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.entry import Entry
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import json_text
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import in_words

if TYPE_CHECKING:
    from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Ask
    from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome

NAME = "nearmetal-prove"
RUNNING = EXPERIMENT  # the file that says what runs
AGENT = "/run/nearmetal/prove.pyz"
TIMER = f"{NAME}.timer"
PATIENCE = 60  # seconds in which a step waits for one before it, such as that of a run that was interrupted
RETRY = 15  # seconds between two tries to take it back
UNTUNED, TUNED = "untuned", "tuned"
STATES = (UNTUNED, TUNED)
_PERSIST = "persist"  # the option that says where a value is kept, which nothing that runs notices
_LATER = ("needs_reboot", "needs_restart")


class NothingDiffers(NearmetalError):
    """There is nothing to compare."""


@dataclass(frozen=True)
class Experiment:
    """What is compared on this host, and how to take it back."""

    run: str  # the controller's name of the run
    boot_id: str
    concerns: Tuple[str, ...]
    knobs: Tuple[str, ...]  # `concern.option`; empty: all of the concerns
    difference: Tuple[Action, ...]  # from untuned to tuned
    earlier: Tuple[Action, ...]  # from untuned to what nearmetal had set before the experiment
    order: Tuple[Tuple[str, str], ...]  # the places of the journal, as they stood in it
    abandon_after: int  # seconds without a step; 0: no timer
    python: str

    def selects(self, concern: str, knob: str) -> bool:
        """Whether the knob takes part."""
        return concern in self.concerns and (not self.knobs or f"{concern}.{knob}" in self.knobs)


@dataclass(frozen=True)
class Begun:
    """A run that began: the experiment, and what it can't compare."""

    experiment: Experiment
    untested: Tuple[Finding, ...]
    platform: Dict[str, Any]


def begin(host: WritableHost, run_id: str, ask: Ask, knobs: Sequence[str], abandon_after: int) -> Begun:
    """Plan what `tune` would do, arm the timer, and leave the host untuned.

    The same run may begin again: a controller that was killed goes on. Raises NothingDiffers when the two states
    are the same, and NearmetalError when something stands in the way: the host is as it was then.
    """
    # Planning is imported here alone: a switch, some 50 times in a run, costs what it imports.
    from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run

    demand_possible(host, abandon_after)
    earlier = running(host)
    if earlier is not None and earlier.run != run_id:
        raise NearmetalError(
            f"another run of prove compares two states of this host: go on with prove_resume: {earlier.run}, or take"
            f" it back with the module prove and step: back"
        )
    if earlier is not None:
        back(host, earlier)
    looked = run(host, ask, check=True)
    concerns = tuple(outcome.name for outcome in looked.outcomes if _planned(outcome))
    errors = [f"{outcome.name}: {outcome.error}" for outcome in looked.outcomes if outcome.error]
    if errors:
        raise NearmetalError(f"tune could not do what is to be proven: {'; '.join(errors)}")
    experiment = Experiment(run_id, host.boot_id(), concerns, tuple(knobs), (), (), (), abandon_after, "")
    with store.lock(host, PATIENCE):
        unit = observe(host, ("unit",)).unit if abandon_after else None
        order = tuple(entry.key for entry in _journal(host).entries())
        earlier_values, python = _earlier(host, experiment), (unit and unit.python) or ""
        experiment = replace(experiment, earlier=earlier_values, order=order, python=python)
        _arm(host, experiment)
        try:
            _untune(host, experiment)
        except NearmetalError:
            _put_back(host, experiment)
            raise
    try:
        planned = run(host, ask, check=True)
        actions = tuple(action for outcome in planned.outcomes for action in outcome.plan.actions)
        difference = tuple(action for action in actions if _switchable(experiment, action))
        tested = {(action.concern, action.knob) for action in difference}
        untested = tuple(
            finding
            for outcome in planned.outcomes
            for finding in outcome.plan.findings
            if (finding.concern, finding.knob) not in tested and _waits(experiment, finding)
        )
        if not difference:
            raise NothingDiffers(_nothing(untested))
        experiment = replace(experiment, difference=difference)
        store.replace_file(host, RUNNING, _rendered(experiment), mode=0o600, folder_mode=0o755)
    except NearmetalError:
        back(host, experiment)
        raise
    return Begun(experiment, untested, json_data(planned.facts.platform))


def switch(host: WritableHost, run_id: str, state: str) -> Experiment:
    """Bring the host to one state by way of the other, so that every measurement has the same before it.

    It also gives the controller as long again until its next step.
    """
    with store.lock(host, PATIENCE):
        experiment = demand_running(host, run_id)
        _start_timer(host, experiment)
        for each in (UNTUNED, TUNED) if state == TUNED else (TUNED, UNTUNED):
            if each == TUNED:
                _tune(host, experiment)
            else:
                _untune(host, experiment)
    return experiment


def taken_back(host: WritableHost, experiment: Experiment, state: str) -> List[str]:
    """The places that aren't in this state, though the host was brought to it: somebody else has set them."""
    found = []
    for action in experiment.difference:
        lever, goal = lever_of(action.what), action.after if state == TUNED else action.before
        now = lever.read(host, action.where)
        if not lever.same(now, goal):
            place = f"{action.what} {action.where}".strip()
            found.append(f"{place} is {in_words(now, 'absent', 40)}, not {in_words(goal, 'absent', 40)}")
    return found


def back(host: WritableHost, experiment: Experiment) -> None:
    """Bring the host to how it was before the experiment, and end it."""
    with store.lock(host, PATIENCE):
        _put_back(host, experiment)


def end(host: WritableHost, run_id: str) -> bool:
    """Take back what this run left, if it still runs; any run when `run_id` is empty. Whether there was one."""
    experiment = running(host)
    if experiment is None or run_id not in ("", experiment.run):
        return False
    back(host, experiment)
    return True


def leave(host: WritableHost, run_id: str) -> Experiment:
    """End the experiment with the host tuned, so that `tune` may keep what is better."""
    experiment = switch(host, run_id, TUNED)
    with store.lock(host, PATIENCE):
        _disarm(host)
    return experiment


def fire(host: WritableHost) -> Optional[Experiment]:
    """What the timer runs: take back an experiment whose controller made no step. What was taken back."""
    with store.lock(host, PATIENCE), ending.whole():
        experiment = running(host)
        if experiment is None:
            _disarm(host)
            return None
        _put_back(host, experiment)
        return experiment


def demand_possible(host: WritableHost, abandon_after: int) -> None:
    """Raise NearmetalError unless this process may switch the host, and the timer can be armed where it is wanted."""
    if not host.is_root():
        raise NearmetalError("prove needs root on the host to switch it between its states: set become: true")
    unit = observe(host, ("unit",)).unit if abandon_after else None
    if abandon_after and (unit is None or unit.python is None or not host.booted()):
        raise NearmetalError(
            "prove_abandon_after needs systemd and a Python 3.8 on the host: set prove_abandon_after: 0 to go without"
            " it, and a host whose controller is killed stays in the state that it has then"
        )


def demand_running(host: WritableHost, run_id: str) -> Experiment:
    """The experiment of this run. Raises NearmetalError when the host was taken back meanwhile."""
    experiment = running(host)
    if experiment is None or experiment.run != run_id:
        raise NearmetalError(
            "the experiment ended on the host: its timer or a person took it back, or the host was rebooted"
        )
    return experiment


def running(host: WritableHost) -> Optional[Experiment]:
    """The experiment of this boot, checked like any input; None for none. Raises NearmetalError."""
    data = store.read_file(host, RUNNING)
    if data is None:
        return None
    try:
        raw = json_text.parse(data.decode("utf-8"))
        fields: Dict[str, Any] = {name: tuple(map(str, raw[name])) for name in ("concerns", "knobs")}
        fields.update({name: tuple(map(_action, raw[name])) for name in ("difference", "earlier")})
        fields.update({name: str(raw[name]) for name in ("run", "boot_id", "python")})
        fields["order"] = tuple((str(what), str(where)) for what, where in raw["order"])
        experiment = Experiment(abandon_after=int(raw["abandon_after"]), **fields)
        return experiment if experiment.boot_id == host.boot_id() else None
    except (ValueError, KeyError, TypeError, AttributeError, NearmetalError) as error:
        reason = (str(error).splitlines() or ["nothing in it"])[0][:200]
        raise NearmetalError(
            f"{RUNNING} isn't what prove wrote ({reason}): remove it, and run restore, which brings the originals back"
        ) from None


def _action(raw: Any) -> Action:
    action = Action(**raw)
    lever_of(action.what).check(action.where, action.after)
    return action


def _planned(outcome: Outcome) -> bool:
    return bool(outcome.plan.findings) and outcome.name != "unit"


def _switchable(experiment: Experiment, action: Action) -> bool:
    runtime = action.scope == "runtime" and action.reversible == "now"
    return runtime and experiment.selects(action.concern, action.knob)


def _waits(experiment: Experiment, finding: Finding) -> bool:
    """Whether `tune` would change it, and only a reboot or a restart shows what that brings."""
    later = finding.status in _LATER or finding.status == "would_change"
    return later and finding.knob != _PERSIST and experiment.selects(finding.concern, finding.knob)


def _nothing(untested: Sequence[Finding]) -> str:
    knobs = ", ".join(dict.fromkeys(f"{finding.concern}.{finding.knob}" for finding in untested))
    waits = f" without a reboot; these need one: {knobs}" if knobs else ""
    return f"untuned and tuned are the same on this host{waits}: there is nothing to compare"


def _journal(host: WritableHost) -> Journal:
    platform = observe(host, ("platform",)).platform
    return Journal(host, platform.instance_id if platform else None)


def _entries(journal: Journal, experiment: Experiment) -> List[Entry]:
    """What nearmetal has set of the knobs that take part, and the places that their writes changed too."""
    entries = [entry for entry in journal.entries() if lever_of(entry.what).scope == "runtime"]
    chosen = [entry for entry in entries if experiment.selects(entry.concern, entry.knob)]
    writers = {(entry.concern, entry.what) for entry in chosen}
    return [entry for entry in entries if entry in chosen or (entry.concern, entry.disturbed_by) in writers]


def _earlier(host: WritableHost, experiment: Experiment) -> Tuple[Action, ...]:
    """What brings an untuned host back to what nearmetal had set before."""
    found = []
    for entry in _entries(_journal(host), experiment):
        lever = lever_of(entry.what)
        now = lever.read(host, entry.where)
        lever.check(entry.where, now)
        reason = "as it was before the experiment"
        found.append(Action(entry.concern, entry.knob, entry.what, None, now, reason, "journal", entry.where))
    return tuple(found)


def _untune(host: WritableHost, experiment: Experiment) -> None:
    """Bring back the originals of the knobs that take part."""
    journal = _journal(host)
    entries = _entries(journal, experiment)
    elsewhere = [
        entry
        for concern in experiment.concerns
        for entry in set_elsewhere(host, journal.entries(concern))
        if experiment.selects(entry.concern, entry.knob)
    ]
    way_back = plan_restore(host, [*entries, *elsewhere], "untuned, to compare")
    apply(host, journal, way_back.plan.actions, tuple)
    if way_back.forget:
        journal.forget(way_back.forget)


def _tune(host: WritableHost, experiment: Experiment) -> None:
    """Set what `tune` would, one concern after the other."""
    _set(host, experiment.difference)


def _set(host: WritableHost, actions: Sequence[Action]) -> None:
    journal = _journal(host)
    for concern in dict.fromkeys(action.concern for action in actions):
        present = [
            replace(action, before=lever_of(action.what).read(host, action.where))
            for action in actions
            if action.concern == concern
        ]
        changes = [action for action in present if not lever_of(action.what).same(action.before, action.after)]
        apply(host, journal, changes, tuple)


def _put_back(host: WritableHost, experiment: Experiment) -> None:
    """As it was before; then nothing waits any more. The caller holds the lock."""
    _untune(host, experiment)
    _set(host, experiment.earlier)
    journal, places = _journal(host), experiment.order
    entries = journal.entries()
    ordered = sorted(entries, key=lambda entry: places.index(entry.key) if entry.key in places else len(places))
    if ordered != entries:
        journal.reset(ordered)
    _disarm(host)


def _arm(host: WritableHost, experiment: Experiment) -> None:
    """The timer first: an experiment that nobody takes back must not begin."""
    if experiment.abandon_after:
        store.replace_file(host, AGENT, bundle.build(VERSION), mode=0o600, folder_mode=0o755)
        try:
            _start_timer(host, experiment)
        except NearmetalError as error:
            with suppress(NearmetalError):
                _disarm(host)
            raise NearmetalError(f"no timer could be armed, so nothing was changed: {error}") from None
    store.replace_file(host, RUNNING, _rendered(experiment), mode=0o600, folder_mode=0o755)


def _start_timer(host: WritableHost, experiment: Experiment) -> None:
    """Count again until the host is taken back."""
    if not experiment.abandon_after:
        return
    with suppress(NearmetalError):
        host.command(("systemctl", "stop", TIMER))
    when = (f"--on-active={experiment.abandon_after}", f"--timer-property=OnUnitInactiveSec={RETRY}")
    timer = ("systemd-run", "--quiet", "--collect", f"--unit={NAME}", *when, "--timer-property=AccuracySec=1")
    host.command((*timer, experiment.python, "-I", AGENT, "abandoned"))


def _disarm(host: WritableHost) -> None:
    """The file decides, so it is removed first; the agent when nothing starts it any more."""
    armed = host.exists(AGENT)
    store.remove_file(host, RUNNING)
    if not armed:
        return
    with suppress(NearmetalError):
        host.command(("systemctl", "stop", TIMER))
    store.remove_file(host, AGENT)


def _rendered(experiment: Experiment) -> bytes:
    return json.dumps(asdict(experiment)).encode()
