# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An experiment on one host: it switches between untuned and tuned, and back to the state before. PRIVATE.

Only runtime values are switched: no file, unit or stored wanted changes. The difference of
the two states is planned once, so that every measurement compares the same two. Originals
go through the journal, so `restore` works at any time. One file in /run says that an
experiment runs; the unit obeys it, and a reboot ends both. A timer on the host takes the
experiment back when no step comes for a while, because the controller may be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..._engine.lease import record
from ..._engine.lease.record import PATIENCE, REBOOTED, SWITCHED, TUNED, UNTUNED, Lease, renew
from ..._engine.lease.taking_back import journal_of, put_back, setting_of
from ..._error import NearmetalError
from ..._host import store
from ..._host.agent_timer import python_of
from ..._host.host import WritableHost
from ..._memory.stored import CHOICE, StoredWanted
from ..._plan import Action, Finding
from ..._planning.knob import RESTART
from ..._planning.unit import NAME as UNIT
from .left_out import (
    NothingDiffers,
    accepted_outcomes,
    no_difference,
    require_felt,
    resting_places,
    unfelt,
    untested_findings,
)
from .running import (
    Comparison,
    Experiment,
    another_run,
    compare,
    earlier_actions,
    on_disk,
    require_no_other,
    require_running,
    running,
    tune,
    untune,
    with_own,
)

if TYPE_CHECKING:
    from ..._engine.planning import Request
    from ..._engine.run import Ask, Conditions, Run
    from ..._engine.session import Known, Outcome

STATES = (UNTUNED, TUNED)


class Tuning(NamedTuple):
    """What is proven: how a run asks for it, and how that run is done."""

    ask: Ask
    conditions: Conditions
    whole: Ask  # with what is left out because no load right after a boot may show it


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


def begin(
    host: WritableHost,
    run_id: str,
    asks: Sequence[Ask],
    knobs: Sequence[str],
    abandon_after: int,
    restarts: bool = False,
) -> Begun:
    """Plan what `tune` would do, arm the timer, and leave the host untuned.

    With `restarts` what serves the load starts anew after each switch. Of two `asks` the second
    is another tuning, with which the first is compared in place of the untuned host.
    The same run may begin again after its controller was killed. Raises NothingDiffers when the two states are the
    same, and NearmetalError for an obstacle: the host is as it was then.
    """
    python = require_possible(host, abandon_after)
    with store.lock(host, PATIENCE):
        require_no_other(host, run_id)
        if host.exists(REBOOTED.path):
            raise another_run(run_id)
        previous = record.present(host, SWITCHED)
        if previous is not None:
            put_back(host, previous)
        proposals = [_proposal(host, ask) for ask in asks]
        unarmed = _unarmed(host, run_id, proposals, knobs, abandon_after, restarts)
        tested, left_out, _findings = _foreseen(host, unarmed, proposals)
        if not tested:
            require_felt(left_out, RESTART if restarts else "")
        experiment = _armed(host, unarmed, python)
        try:
            return _planned(host, experiment, asks, untune(host, experiment))
        except NearmetalError:
            put_back(host, experiment.lease)
            raise


def preview(
    host: WritableHost,
    run_id: str,
    asks: Sequence[Ask],
    knobs: Sequence[str],
    abandon_after: int,
    restarts: bool = False,
) -> Tuple[Tuple[str, ...], Tuple[Finding, ...]]:
    """What `begin` would compare and what it would leave out, as `concern.option`; nothing is changed.

    What only a switch shows is unknown: the values that a driver refuses. Raises NothingDiffers, and NearmetalError
    for an obstacle.
    """
    require_possible(host, abandon_after)
    require_no_other(host, run_id)
    proposals = [_proposal(host, ask) for ask in asks]
    experiment = _unarmed(host, run_id, proposals, knobs, abandon_after, restarts)
    tested, left_out, findings = _foreseen(host, experiment, proposals)
    if not tested:
        require_felt(left_out, RESTART if restarts else "")
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
        [action for action in of_tuning if _switchable(experiment, action) and setting_of(action) not in resting]
        for of_tuning in actions
    )
    compared = compare(another[0], tuned) if another else Comparison((), tuple(tuned))
    differing = list(compared.difference)
    if not another:
        # What nearmetal has set already is wanted by no action, and differs from the untuned host.
        wanted = {(finding.concern, finding.knob) for finding in findings if finding.wanted is not None}
        set_before = earlier_actions(host, experiment.lease)
        differing += [action for action in set_before if (action.concern, action.knob) in wanted]
    tested = tuple(dict.fromkeys(f"{action.concern}.{action.knob}" for action in differing))
    in_force = {(action.concern, action.knob) for action in (*differing, *compared.shared)}
    return tested, tuple(untested_findings(experiment, findings, in_force, resting)), findings


def _unarmed(
    host: WritableHost,
    run_id: str,
    proposals: Sequence[Proposal],
    knobs: Sequence[str],
    abandon_after: int,
    restarts: bool,
) -> Experiment:
    """The experiment with the concerns and knobs that take part, before anything is changed."""
    taking_part = [outcome for proposal in proposals for outcome in proposal.taking_part()]
    concerns = dict.fromkeys(outcome.name for outcome in taking_part)
    findings = [finding for outcome in taking_part for finding in outcome.plan.findings]
    owned = tuple(f"{finding.concern}.{finding.knob}" for finding in findings if finding.status == "refused")
    after = RESTART if restarts else ""
    held = tuple(dict.fromkeys(f"{finding.concern}.{finding.knob}" for finding in findings if unfelt(finding, after)))
    return Experiment(
        Lease(
            SWITCHED,
            run=run_id,
            boot_id=host.boot_id(),
            abandon_after=abandon_after,
            concerns=tuple(concerns),
            knobs=tuple(knobs),
            owned=owned,
            unfelt=held,
        ),
        restarts=restarts,
    )


def _proposal(host: WritableHost, ask: Ask) -> Proposal:
    """What `tune` would do now. Raises NearmetalError for what it couldn't."""
    # Imported late, because a switch, of which a run has some 50, costs mostly its imports.
    from ..._engine.planning import Leave
    from ..._engine.run import plan_run

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
    if REBOOTED.is_present(host):  # of a run with reboots that was killed while it began or ended
        record.release(host, REBOOTED)
    lease = experiment.lease._replace(
        earlier=earlier_actions(host, experiment.lease),
        order=tuple(entry.key for entry in journal_of(host).entries()),
        python=python,
    )
    experiment = experiment._replace(lease=lease)
    record.arm(host, with_own(experiment))
    return experiment


def _planned(host: WritableHost, experiment: Experiment, asks: Sequence[Ask], still_tuned: Sequence[Finding]) -> Begun:
    """Plan what `tune` would do on the untuned host, without places that are `still_tuned`.

    Raises NothingDiffers when that is nothing.
    """
    from ..._engine.run import plan_run

    planned = [plan_run(host, ask) for ask in asks]
    accepted = [accepted_outcomes(host, experiment, tuning.outcomes) for tuning in planned]
    actions = [[action for outcome in outcomes for action in outcome.plan.actions] for outcomes, _refused in accepted]
    findings = [[said for outcome in outcomes for said in outcome.plan.findings] for outcomes, _refused in accepted]
    waiting = {setting_of(finding) for finding in still_tuned if finding.status == "needs_reboot"}
    resting = {place: reason for of_tuning in actions for place, reason in resting_places(of_tuning).items()}
    tuned, *another = (
        tuple(
            action
            for action in of_tuning
            if _switchable(experiment, action) and not {setting_of(action)} & {*waiting, *resting}
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
    record.write(host, with_own(experiment))
    differing = {(action.concern, action.knob) for action in compared.difference}
    wanted = tuple(finding for finding in findings[0] if (finding.concern, finding.knob) in differing)
    return Begun(experiment, wanted, untested, tuple(left_out))


def switch(host: WritableHost, run_id: str, state: str, without: str = "") -> Experiment:
    """Bring the host to one state by way of the other, so that every measurement has the same history.

    The untuned state `without` one concern is tuned in all others. The timer starts to count again.
    """
    with store.lock(host, PATIENCE):
        return _brought(host, run_id, (UNTUNED, TUNED) if state == TUNED else (TUNED, UNTUNED), without)


def stay(host: WritableHost, run_id: str, state: str, without: str = "") -> Experiment:
    """Leave the host in the state in which it is, or bring it there if its run was interrupted meanwhile."""
    with store.lock(host, PATIENCE):
        return _brought(host, run_id, (state,), without)


def _brought(host: WritableHost, run_id: str, states: Sequence[str], without: str) -> Experiment:
    """Bring the host to each of the states in turn."""
    experiment = require_running(host, run_id)
    renew(host, experiment.lease)
    for goal in states:
        if goal == TUNED:
            tune(host, experiment)
        else:
            untune(host, experiment, without)
    return experiment


def end(host: WritableHost, run_id: str) -> Optional[Experiment]:
    """Take the experiment of this run back, or of any run when `run_id` is empty. Returns it; None: none."""
    with store.lock(host, PATIENCE):
        experiment = running(host)
        if experiment is None or run_id not in ("", experiment.lease.run):
            return None
        put_back(host, experiment.lease)
        return experiment


def keep(host: WritableHost, run_id: str, tuning: Tuning) -> Run:
    """Do what `tune` does, from the tuned state, and end the experiment: until then its timer takes all of it back.

    Raises NearmetalError with the host as before the experiment, or with it tuned where the unit alone isn't in place.
    """
    from ..._engine.run import run_step

    with store.lock(host, PATIENCE):
        experiment = _brought(host, run_id, (UNTUNED, TUNED), "")
        earlier = (*experiment.lease.earlier, *on_disk(host))
        wanted = {CHOICE: None, **{name: of for name, of in StoredWanted(host).everything().items() if not of.damage}}
        experiment = experiment._replace(lease=experiment.lease._replace(earlier=earlier, wanted=wanted))
        record.write(host, with_own(experiment))
        try:
            done = run_step(host, tuning.ask, tuning.conditions)
            errors = "; ".join(f"{outcome.name}: {outcome.error}" for outcome in done.outcomes if outcome.error)
            tuned = any(outcome.done and outcome.name != UNIT for outcome in done.outcomes)
            if errors and not tuned:
                raise NearmetalError(errors)
        except NearmetalError:
            put_back(host, experiment.lease)
            raise
        record.release(host, SWITCHED)
    if errors:
        raise NearmetalError(f"the host is tuned, but its unit isn't in place: {errors}")
    return done


def require_possible(host: WritableHost, abandon_after: int, reboots: bool = False) -> str:
    """The Python of the timer, empty where none is wanted.

    Raises NearmetalError unless this process may switch the host, and the timer can be armed where it is wanted.
    """
    if not host.is_root():
        raise NearmetalError(
            "prove needs root on the host to switch it between its states: set become: true, become_user: root"
        )
    if not abandon_after:
        return ""
    python = python_of(host)
    if not python:
        needed = "needs systemd and Python 3.7 or later on the host"
        if reboots:
            raise NearmetalError(f"prove_reboot {needed}, for the timer that takes it back when its controller is lost")
        raise NearmetalError(
            f"prove_abandon_after {needed}: set prove_abandon_after: 0 to go without it; a host whose controller is"
            " killed then stays in the state that it has"
        )
    return python


def _switchable(experiment: Experiment, action: Action) -> bool:
    runtime = action.scope == "runtime" and action.reversible == "now"
    return runtime and experiment.lease.selects(action.concern, action.knob)
