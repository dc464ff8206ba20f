# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An experiment on one host: it switches between untuned and tuned, and back to the state before. PRIVATE.

Only runtime values are switched: no file, unit or stored wanted changes. The difference of
the two states is planned once, so that every measurement compares the same two. Originals
go through the journal, so `restore` works at any time. One file in /run says that an
experiment runs; the unit obeys it, and a reboot ends both. A timer on the host takes the
experiment back when no step comes for a while, because the controller may be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..._error import NearmetalError
from ..._facts.json_data import json_data
from ..._facts.switch import EXPERIMENT
from ..._host import store
from ..._host.agent_timer import python_of
from ..._host.host import WritableHost
from ..._memory import stored
from ..._plan import Action, Finding
from .. import ending
from . import switching, timer
from .lasting import TUNED, UNTUNED, lasting
from .left_out import (
    NothingDiffers,
    accepted_outcomes,
    demand_felt,
    no_difference,
    resting_places,
    unfelt,
    untested_findings,
)
from .running import Experiment, demand_running, running, write
from .two_tunings import Comparison, compare

if TYPE_CHECKING:
    from ..planning import Request
    from ..run import Ask
    from ..session import Known, Outcome

PATIENCE = 60  # seconds that a step waits for an earlier one, such as that of an interrupted run
STATES = (UNTUNED, TUNED)


class Proposal(NamedTuple):
    """What `tune` would do on the host as it is."""

    outcomes: Sequence[Outcome]
    left_alone: Set[str]  # concerns that it would not touch

    def taking_part(self) -> List[Outcome]:
        """The concerns that it is about."""
        return [outcome for outcome in self.outcomes if outcome.plan.findings and outcome.name not in self.left_alone]


class Begun(NamedTuple):
    """A run that began: the experiment, and what it can't compare."""

    experiment: Experiment
    tuned: Tuple[Finding, ...]  # the findings of the settings that differ, with what the tuning wants
    untested: Tuple[Finding, ...]  # what `tune` would change too
    left_out: Tuple[Finding, ...]  # what it doesn't write
    platform: Dict[str, Any]


def begin(host: WritableHost, run_id: str, asks: Sequence[Ask], knobs: Sequence[str], abandon_after: int) -> Begun:
    """Plan what `tune` would do, arm the timer, and leave the host untuned.

    Of two `asks` the second is another tuning, with which the first is compared in place of the untuned host.
    The same run may begin again after its controller was killed. Raises NothingDiffers when the two states are the
    same, and NearmetalError for an obstacle: the host is as it was then.
    """
    python = demand_possible(host, abandon_after)
    with store.lock(host, PATIENCE):
        previous = _demand_no_other(host, run_id)
        if previous is not None:
            switching.put_back(host, previous)
        proposals = [_proposal(host, ask) for ask in asks]
        unarmed = _unarmed(host, run_id, proposals, knobs, abandon_after)
        tested, left_out, _findings = _foreseen(host, unarmed, proposals)
        if not tested:
            demand_felt(left_out)
        experiment = _armed(host, unarmed, python)
        try:
            return _planned(host, experiment, asks, switching.untune(host, experiment))
        except NearmetalError:
            switching.put_back(host, experiment)
            raise


def preview(
    host: WritableHost, run_id: str, asks: Sequence[Ask], knobs: Sequence[str], abandon_after: int
) -> Tuple[Tuple[str, ...], Tuple[Finding, ...]]:
    """What `begin` would compare and what it would leave out, as `concern.option`; nothing is changed.

    What only a switch shows is unknown: the values that a driver refuses. Raises NothingDiffers, and NearmetalError
    for an obstacle.
    """
    demand_possible(host, abandon_after)
    _demand_no_other(host, run_id)
    proposals = [_proposal(host, ask) for ask in asks]
    experiment = _unarmed(host, run_id, proposals, knobs, abandon_after)
    tested, left_out, findings = _foreseen(host, experiment, proposals)
    if not tested:
        demand_felt(left_out)
        raise NothingDiffers(no_difference(left_out, findings))
    return tested, left_out


def _foreseen(
    host: WritableHost, experiment: Experiment, proposals: Sequence[Proposal]
) -> Tuple[Tuple[str, ...], Tuple[Finding, ...], List[Finding]]:
    """What would be compared, as `concern.option`; what would be left out; and all findings."""
    outcomes = [proposal.outcomes for proposal in proposals]
    findings = [finding for tuning in outcomes for outcome in tuning for finding in outcome.plan.findings]
    actions = [[action for outcome in tuning for action in outcome.plan.actions] for tuning in outcomes]
    resting = {place: reason for of_tuning in actions for place, reason in resting_places(of_tuning).items()}
    tuned, *another = (
        [
            action
            for action in of_tuning
            if _switchable(experiment, action) and switching.setting_of(action) not in resting
        ]
        for of_tuning in actions
    )
    compared = compare(another[0], tuned) if another else Comparison((), tuple(tuned))
    differing = list(compared.difference)
    if not another:
        # What nearmetal has set already is wanted by no action, and differs from the untuned host.
        wanted = {(finding.concern, finding.knob) for finding in findings if finding.wanted is not None}
        set_before = switching.earlier_actions(host, experiment)
        differing += [action for action in set_before if (action.concern, action.knob) in wanted]
    tested = tuple(dict.fromkeys(f"{action.concern}.{action.knob}" for action in differing))
    in_force = {(action.concern, action.knob) for action in (*differing, *compared.shared)}
    return tested, tuple(untested_findings(experiment, findings, in_force, resting)), findings


def _demand_no_other(host: WritableHost, run_id: str) -> Optional[Experiment]:
    """The experiment of this run, if the host has one already. Raises NearmetalError for that of another run."""
    previous, across = running(host), lasting(host)
    if across is not None:
        raise another_run(across.run)
    if previous is not None and previous.run != run_id:
        raise another_run(previous.run)
    return previous


def another_run(name: str) -> NearmetalError:
    """The error for a host on which another run compares something."""
    return NearmetalError(
        f"another run of prove compares two states of this host: go on where that run began, with prove_resume:"
        f" nearmetal-report/prove/{name}.jsonl, or take it back with the module prove and step: back"
    )


def _unarmed(
    host: WritableHost, run_id: str, proposals: Sequence[Proposal], knobs: Sequence[str], abandon_after: int
) -> Experiment:
    """The experiment with the concerns and knobs that take part, before anything is changed."""
    taking_part = [outcome for proposal in proposals for outcome in proposal.taking_part()]
    concerns = dict.fromkeys(outcome.name for outcome in taking_part)
    findings = [finding for outcome in taking_part for finding in outcome.plan.findings]
    owned = tuple(f"{finding.concern}.{finding.knob}" for finding in findings if finding.status == "refused")
    held = tuple(dict.fromkeys(f"{finding.concern}.{finding.knob}" for finding in findings if unfelt(finding)))
    return Experiment(run_id, host.boot_id(), tuple(concerns), tuple(knobs), abandon_after, owned=owned, unfelt=held)


def _proposal(host: WritableHost, ask: Ask) -> Proposal:
    """What `tune` would do now. Raises NearmetalError for what it couldn't."""
    # Imported late, because a switch, of which a run has some 50, costs mostly its imports.
    from ..planning import Leave
    from ..run import plan_run

    left_alone: Set[str] = {"unit"}

    def ask_and_note(known: Known) -> Sequence[Request]:
        requests = ask(known)
        left_alone.update(request.name for request in requests if isinstance(request, Leave))
        return requests

    planned = plan_run(host, ask_and_note)
    errors = [f"{outcome.name}: {outcome.error}" for outcome in planned.outcomes if outcome.error]
    if errors:
        raise NearmetalError(f"tune could not do what is to be proven: {'; '.join(errors)}")
    return Proposal(planned.outcomes, left_alone)


def _armed(host: WritableHost, experiment: Experiment, python: str) -> Experiment:
    """The experiment with its way back, which the timer takes from now on."""
    from . import lasting_timer

    if lasting_timer.is_present(host):  # of a run with reboots that was killed while it began or ended
        lasting_timer.disarm(host)
    order = tuple(entry.key for entry in switching.journal_of(host).entries())
    experiment = experiment._replace(earlier=switching.earlier_actions(host, experiment), order=order, python=python)
    timer.arm(host, experiment)
    return experiment


def _planned(host: WritableHost, experiment: Experiment, asks: Sequence[Ask], still_tuned: Sequence[Finding]) -> Begun:
    """Plan what `tune` would do on the untuned host, without places that are `still_tuned`.

    Raises NothingDiffers when that is nothing.
    """
    from ..run import plan_run

    planned = [plan_run(host, ask) for ask in asks]
    accepted = [accepted_outcomes(host, experiment, tuning.outcomes) for tuning in planned]
    actions = [[action for outcome in outcomes for action in outcome.plan.actions] for outcomes, _refused in accepted]
    findings = [[said for outcome in outcomes for said in outcome.plan.findings] for outcomes, _refused in accepted]
    waiting = {switching.setting_of(finding) for finding in still_tuned if finding.status == "needs_reboot"}
    resting = {place: reason for of_tuning in actions for place, reason in resting_places(of_tuning).items()}
    tuned, *another = (
        tuple(
            action
            for action in of_tuning
            if _switchable(experiment, action) and not {switching.setting_of(action)} & {*waiting, *resting}
        )
        for of_tuning in actions
    )
    compared = compare(another[0], tuned) if another else Comparison((), tuned)
    tested = {(action.concern, action.knob) for action in (*compared.difference, *compared.shared)}
    own, *of_another = (untested_findings(experiment, of_tuning, tested, resting) for of_tuning in findings)
    untested = (*(finding for finding in still_tuned if (finding.concern, finding.knob) not in tested), *own)
    names = tuple(dict.fromkeys(f"{finding.concern}.{finding.knob}" for finding in untested))
    left_out = [finding for _outcomes, refused in accepted for finding in refused]
    left_out += (
        finding._replace(reason=f"{finding.reason}; only the other tuning sets it")
        for finding in (of_another[0] if of_another else ())
        if f"{finding.concern}.{finding.knob}" not in names
    )
    if not compared.difference:
        raise NothingDiffers(no_difference((*untested, *left_out), [said for group in findings for said in group]))
    against = len(asks) > 1
    experiment = experiment._replace(
        difference=compared.difference,
        shared=compared.shared,
        against=against,
        untested=names,
    )
    write(host, experiment)
    differing = {(action.concern, action.knob) for action in compared.difference}
    wanted = tuple(finding for finding in findings[0] if (finding.concern, finding.knob) in differing)
    return Begun(experiment, wanted, untested, tuple(left_out), json_data(planned[0].facts.platform))


def switch(host: WritableHost, run_id: str, state: str, without: str = "") -> Experiment:
    """Bring the host to one state by way of the other, so that every measurement has the same history.

    The untuned state `without` one concern is tuned in all others. The timer starts to count again.
    """
    with store.lock(host, PATIENCE):
        experiment = demand_running(host, run_id)
        timer.restart(host, experiment)
        for goal in (UNTUNED, TUNED) if state == TUNED else (TUNED, UNTUNED):
            if goal == TUNED:
                switching.tune(host, experiment)
            else:
                switching.untune(host, experiment, without)
    return experiment


def take_back(host: WritableHost, experiment: Experiment) -> None:
    """Bring the host to how it was before the experiment, and end it."""
    with store.lock(host, PATIENCE):
        if host.exists(EXPERIMENT):  # nobody has ended it meanwhile, such as by a restore
            switching.put_back(host, experiment)


def end(host: WritableHost, run_id: str) -> Optional[Experiment]:
    """Take the experiment of this run back, or of any run when `run_id` is empty. Returns it; None: none."""
    with store.lock(host, PATIENCE):
        experiment = running(host)
        if experiment is None or run_id not in ("", experiment.run):
            return None
        switching.put_back(host, experiment)
        return experiment


def leave(host: WritableHost, run_id: str) -> Experiment:
    """Tune the host, so that `tune` may keep what is better; until `done` the timer would still take all of it back."""
    switch(host, run_id, TUNED)
    with store.lock(host, PATIENCE):
        experiment = demand_running(host, run_id)
        earlier = (*experiment.earlier, *switching.on_disk(host))
        experiment = experiment._replace(earlier=earlier, wanted=stored.text(host))
        write(host, experiment)
    return experiment


def done(host: WritableHost, run_id: str) -> None:
    """The tuning is kept, so the experiment ends. Raises NearmetalError when it was taken back meanwhile."""
    with store.lock(host, PATIENCE):
        demand_running(host, run_id)
        timer.disarm(host)


def fire(host: WritableHost, stopped: bool = False) -> Optional[Experiment]:
    """Take back an experiment whose controller made no step, as the timer does. Returns it; None when there is none.

    With `stopped` only an experiment whose timer is stopped.
    """
    with store.lock(host, PATIENCE), ending.uninterrupted():
        experiment = running(host)
        if stopped and (experiment is None or timer.TIMER.waits(host)):
            return None
        if experiment is None:
            timer.disarm(host)
            return None
        switching.put_back(host, experiment)
        return experiment


def fire_without_timer(host: WritableHost) -> Optional[Experiment]:
    """Take back an experiment whose timer somebody stopped, as the unit does. Returns it; None when there is none."""
    experiment = running(host)
    if experiment is None or not experiment.abandon_after or timer.TIMER.waits(host):
        return None
    return fire(host, stopped=True)


def demand_possible(host: WritableHost, abandon_after: int, reboots: bool = False) -> str:
    """The Python of the timer, empty where none is wanted.

    Raises NearmetalError unless this process may switch the host, and the timer can be armed where it is wanted.
    """
    if not host.is_root():
        raise NearmetalError("prove needs root on the host to switch it between its states: set become: true")
    if not abandon_after:
        return ""
    python = python_of(host)
    if not python:
        needed = "needs systemd and a Python 3.7 on the host"
        if reboots:
            raise NearmetalError(f"prove_reboot {needed}, for the timer that takes it back when its controller is lost")
        raise NearmetalError(
            f"prove_abandon_after {needed}: set prove_abandon_after: 0 to go without it; a host whose controller is"
            " killed then stays in the state that it has"
        )
    return python


def _switchable(experiment: Experiment, action: Action) -> bool:
    runtime = action.scope == "runtime" and action.reversible == "now"
    return runtime and experiment.selects(action.concern, action.knob)
