# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An experiment whose host is rebooted between untuned and tuned, and back to the state before. PRIVATE.

*tuned* is what `tune` makes of the host: its files and kernel arguments, a reboot, and `tune` again for what runs.
*untuned* is everything restored, and a reboot. The host must not have been tuned before: what boots without nearmetal
is then the state to which every way back leads. A lasting timer takes the experiment back when no step comes for a
while, and reboots a host that runs with what was taken back.
"""

from __future__ import annotations

import time
from typing import Callable, List, Optional, Sequence, Set, Tuple

from ..._engine.lease import record
from ..._engine.lease.expiry import note_boot, restore_everything, take_back_everything
from ..._engine.lease.record import PATIENCE, REBOOTED, TUNED, UNTUNED, Lease, renew
from ..._engine.lease.taking_back import journal_of, require_none
from ..._engine.run import Run, plan_run, run_step
from ..._engine.session import Outcome
from ..._error import NearmetalError
from ..._facts import systemd
from ..._host import store
from ..._host.host import WritableHost
from ..._memory.stored import StoredWanted
from ..._plan import Action, Finding
from ..._planning.knob import BOOT
from ..._planning.unit import NAME as UNIT
from . import states
from .left_out import LATER, PERSIST, NothingDiffers, no_difference, require_felt, unfelt
from .running import Experiment, require_no_other, require_running, with_own
from .states import Tuning

_ARGUMENTS = "boot.arguments"


def begin(host: WritableHost, run_id: str, tuning: Tuning, abandon_after: int) -> Optional[states.Begun]:
    """Plan what `tune` would do, and arm the timer. None: the host must be rebooted first, and then begin again.

    Raises NothingDiffers when the two states are the same, and NearmetalError for an obstacle.
    """
    python = states.require_possible(host, abandon_after, reboots=True)
    with store.lock(host, PATIENCE):
        require_no_other(host, run_id)
        previous = record.present(host, REBOOTED)
        if previous is not None and take_back_everything(host, previous):
            return None
        _require_untuned(host)
        actions, findings = _compared(host, tuning)
        concerns = tuple(dict.fromkeys(action.concern for action in actions))
        experiment = Experiment(
            Lease(REBOOTED, run=run_id, abandon_after=abandon_after, python=python, concerns=concerns),
            places=tuple(_place(action) for action in actions if action.scope == "boot"),
            arguments=tuple(str(action.after) for action in actions if action.what == _ARGUMENTS and action.after),
        )
        record.arm(host, with_own(experiment))
    tested = _knobs(actions)
    return states.Begun(
        experiment=experiment._replace(difference=actions),
        tuned=tuple(
            finding for finding in findings if finding.status in LATER and (finding.concern, finding.knob) in tested
        ),
        untested=_untested(findings, tested),
        left_out=(),
    )


def preview(
    host: WritableHost, run_id: str, tuning: Tuning, abandon_after: int
) -> Tuple[Tuple[str, ...], Tuple[Finding, ...]]:
    """What `begin` would compare, as `concern.option`, and what it would leave out; nothing is changed."""
    states.require_possible(host, abandon_after, reboots=True)
    require_no_other(host, run_id)
    _require_untuned(host)
    actions, findings = _compared(host, tuning)
    tested = tuple(dict.fromkeys(f"{action.concern}.{action.knob}" for action in actions))
    return tested, _untested(findings, _knobs(actions))


def _compared(host: WritableHost, tuning: Tuning) -> Tuple[Tuple[Action, ...], List[Finding]]:
    """What leads from untuned to tuned, and all findings.

    Raises NothingDiffers when the two states are the same, and NearmetalError when no reboot is needed.
    """
    planned = plan_run(host, tuning.ask)
    errors = [f"{outcome.name}: {outcome.error}" for outcome in planned.outcomes if outcome.error]
    if errors:
        raise NearmetalError(f"tune could not do what is to be proven: {'; '.join(errors)}")
    actions = tuple(action for action in _actions(planned.outcomes) if action.knob != PERSIST)
    tested = _knobs(actions)
    findings = [finding for outcome in plan_run(host, tuning.whole).outcomes for finding in outcome.plan.findings]
    if not actions:
        require_felt(_untested(findings, tested), BOOT)
        raise NothingDiffers(no_difference((), findings))
    about = [finding for finding in findings if (finding.concern, finding.knob) in tested]
    if not any(finding.status == "needs_reboot" or unfelt(finding) for finding in about):
        raise NearmetalError(
            "no setting of this tuning needs a reboot: leave prove_reboot out, and the host is switched while it runs"
        )
    return actions, findings


def write_state(host: WritableHost, run_id: str, state: str, tuning: Tuning) -> List[str]:
    """Write what the host is to boot into, by `tune` or by a restore of all. Returns nearmetal's kernel arguments.

    The next step must come after a reboot.
    """
    with store.lock(host, PATIENCE):
        experiment = _stepped(host, run_id)
        if state == TUNED:
            _note(host, experiment, state)  # first: a run that is killed leaves a host that is to be taken back
            _tune(host, tuning)
            return list(experiment.arguments)
        restore_everything(host, f"prove {run_id}")
        _note(host, experiment, state)
        return []


def arrive(
    host: WritableHost, run_id: str, state: str, tuning: Tuning, timeout: float, booted: Callable[[], None]
) -> Experiment:
    """After the reboot into a state: wait up to `timeout` seconds for the end of the boot, and tune what runs.

    `booted` is called in between, when the host's own programs have started and nothing is tuned yet.
    Raises NearmetalError when the host has not booted into the state.
    """
    with store.lock(host, PATIENCE):
        lease = _stepped(host, run_id).lease
    if lease.state != state or lease.written_in == host.boot_id():
        raise NearmetalError(f"the host was not rebooted into the {state} state: its boot id is the same as before")
    _wait_for_boot(host, timeout)
    booted()
    with store.lock(host, PATIENCE):
        experiment = require_running(host, run_id, REBOOTED)
        if state == TUNED:
            refused = tuple(_refused(_tune(host, tuning).outcomes))
            if refused != experiment.refused:
                experiment = experiment._replace(refused=refused)
                record.write(host, with_own(experiment))
    return experiment


def _wait_for_boot(host: WritableHost, timeout: float) -> None:
    """Wait for the end of the boot: systemctl does it, but an old one only says how far the boot is."""
    asked = systemd.words_for(systemd.version(host), ("systemctl", "is-system-running", "--wait"))
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            host.command(asked, timeout)
            return
        except NearmetalError as error:  # also for a failed unit of the host's own
            if not str(error).endswith((": initializing", ": starting")):
                return
        time.sleep(1)


def not_in_force(host: WritableHost, experiment: Experiment, tuning: Tuning) -> List[str]:
    """What isn't as the state wants it: tuned has nothing left to do, untuned everything that is on disk."""
    outcomes = plan_run(host, tuning.ask).outcomes
    problems = [f"{outcome.name}: {outcome.error}" for outcome in outcomes if outcome.error]
    if experiment.lease.state == UNTUNED:
        waiting = {_place(action) for action in _actions(outcomes)}
        return problems + [f"{place} is tuned already" for place in experiment.places if place not in waiting]
    for outcome in outcomes:
        places = [_place(action) for action in _actions([outcome])]
        problems += [f"{place} isn't tuned any more" for place in places if place not in experiment.refused]
        for finding in outcome.plan.findings:
            if finding.status == "needs_reboot" and outcome.name in experiment.lease.concerns:
                problems.append(f"{finding.concern}.{finding.knob}: {finding.reason}")
    return problems


def take_back(host: WritableHost, run_id: str) -> Optional[Lease]:
    """Take the experiment of this run back, or of any run when `run_id` is empty.

    None: there is none. While it is still `ending` the host must be rebooted, and then `take_back` be called again.
    """
    with store.lock(host, PATIENCE):
        lease = record.read(host, REBOOTED)
        if lease is None or run_id not in ("", lease.run):
            return None
        return lease._replace(ending=take_back_everything(host, lease))


def keep(host: WritableHost, run_id: str, tuning: Tuning) -> Tuple[Run, bool]:
    """Keep the tuning, as `tune` does. True: the host must be rebooted, and then the tuning be kept again."""
    with store.lock(host, PATIENCE):
        experiment = _stepped(host, run_id)
        if experiment.lease.state == UNTUNED:
            experiment = _note(host, experiment, TUNED)
        done = _tune(host, tuning)
        waits = any(finding.status == "needs_reboot" for outcome in done.outcomes for finding in outcome.plan.findings)
        if waits and experiment.lease.booted_tuned != host.boot_id():
            return done, True
        record.release(host, REBOOTED)
    return done, False


def _stepped(host: WritableHost, run_id: str) -> Experiment:
    """The experiment of this run, whose timer starts to count again. Notes a boot that began tuned."""
    experiment = require_running(host, run_id, REBOOTED)
    renew(host, experiment.lease)
    lease = note_boot(experiment.lease, host.boot_id())
    if lease != experiment.lease:
        record.write(host, lease)
    return experiment._replace(lease=lease)


def _note(host: WritableHost, experiment: Experiment, state: str) -> Experiment:
    """Note what the files on disk hold."""
    experiment = experiment._replace(lease=experiment.lease._replace(state=state, written_in=host.boot_id()))
    record.write(host, with_own(experiment))
    return experiment


def _tune(host: WritableHost, tuning: Tuning) -> Run:
    """Do what `tune` does. Raises NearmetalError with all of it taken back when a part can't be done."""
    done = run_step(host, tuning.ask, tuning.conditions)
    require_none({outcome.name: outcome.error for outcome in done.outcomes if outcome.error})
    return done


def _actions(outcomes: Sequence[Outcome]) -> List[Action]:
    return [action for outcome in outcomes if outcome.name != UNIT for action in outcome.plan.actions]


def _refused(outcomes: Sequence[Outcome]) -> List[str]:
    """The places whose values a driver refused while they were set."""
    return [
        f"{finding.concern}.{finding.knob} {finding.where}".strip()
        for outcome in outcomes
        for finding in outcome.plan.findings
        if finding.status == "not_applicable"
    ]


def _place(action: Action) -> str:
    return f"{action.concern}.{action.knob} {action.where}".strip()


def _knobs(actions: Sequence[Action]) -> Set[Tuple[str, str]]:
    return {(action.concern, action.knob) for action in actions}


def _untested(findings: Sequence[Finding], tested: Set[Tuple[str, str]]) -> Tuple[Finding, ...]:
    """The findings of settings that `tune` would change, and that make no difference between the states."""
    return tuple(
        finding._replace(reason=unfelt(finding, BOOT) or finding.reason)
        for finding in findings
        if finding.status in LATER and finding.knob != PERSIST and (finding.concern, finding.knob) not in tested
    )


def _require_untuned(host: WritableHost) -> None:
    if journal_of(host).concerns() or StoredWanted(host).names():
        raise NearmetalError(
            "prove_reboot compares with the host as it boots without nearmetal, and this host is tuned: run"
            " nearmetal.ec2.restore, reboot it, and run prove again"
        )
