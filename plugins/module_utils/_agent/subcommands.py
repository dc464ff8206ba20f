# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each command of `nearmetal` does, and what it prints. PRIVATE to the collection."""

from __future__ import annotations

import json
import os
import sys
from typing import Callable, List, Optional, Sequence, Tuple

from .._engine import ending
from .._engine.lease import confirmation, expiry
from .._engine.planning import Tune
from .._engine.requests import restore_requests, stored_requests
from .._engine.result import contract, described
from .._engine.run import Conditions, Run, plan_run, run
from .._engine.session import Known, Origin, Outcome, UnitSession
from .._facts.unit import AGENT
from .._host.host import WritableHost
from .._words import LONGEST_VALUE, counted, in_words
from .output import print_error, print_line

# The status of what a way back leaves to somebody, or to the next boot.
_LEFT = ("advice", "needs_reboot", "needs_restart")
WAITS_FOR_BOOT = 3  # the exit code of a restore after which the next boot gives back what it couldn't
OF_UNIT = Conditions(kind=UnitSession, lenient=True)
BY_HAND = Origin("nearmetal on the host")


def status(host: WritableHost, as_json: bool) -> int:
    """Print what is tuned; 0 when everything is as wanted."""
    from . import report

    state = report.collect(host)
    if as_json:
        print_line(json.dumps(state, indent=1, sort_keys=True))
    else:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print_line(report.render(state, color))
    return int(not report.as_wanted(state))


def plan(host: WritableHost, as_json: bool, as_commands: bool) -> int:
    """Print what `reapply` would change, as sentences, as JSON or as shell commands."""
    planned = plan_run(host, stored_requests, conditions=OF_UNIT)
    if as_commands:
        return print_commands(host, planned.outcomes)
    if not as_json:
        return _print_outcomes(planned.outcomes)
    print_line(json.dumps(described(planned.facts, planned.outcomes), indent=1, sort_keys=True))
    return int(any(outcome.error for outcome in planned.outcomes))


def replan(host: WritableHost, names: Sequence[str] = ()) -> Tuple[str, ...]:
    """Plan these concerns again (all of them when none is named), and do it; returns the names of those that failed."""
    for sentence in confirmation.warnings(host):
        print_line(f"<4>{sentence}")
    installed = host.exists(AGENT)

    def ask(known: Known) -> List[Tune]:
        if installed and not host.exists(AGENT):
            raise SystemExit(0)  # a restore removed the unit meanwhile, and the modules that this run would import
        return [request for request in stored_requests(known) if not names or request.name in names]

    outcomes = run(host, ask, conditions=OF_UNIT).outcomes
    _print_outcomes(outcomes)
    return tuple(outcome.name for outcome in outcomes if outcome.error)


def restore(host: WritableHost, names: Optional[List[str]], begin: Callable[..., Run] = run) -> int:
    """Take back the concerns named, or all of them; 1 when one failed, WAITS_FOR_BOOT when a value waits for a boot."""
    conditions = Conditions(BY_HAND, restores_all=names is None)
    done = begin(host, lambda known: restore_requests(names, known), conditions=conditions)
    failed = _print_outcomes(done.outcomes)
    waiting = contract(done.outcomes)["reboot_reasons"]
    if waiting:
        print_line(f"{counted(len(waiting), 'setting')} {'waits' if len(waiting) == 1 else 'wait'} for a reboot")
    return failed or (WAITS_FOR_BOOT if waiting else 0)


def preview_restore(host: WritableHost, names: Optional[List[str]]) -> int:
    """Say what `restore` would do; its exit code."""
    code = restore(host, names, begin=plan_run)
    print_line("nothing was changed: this is what restore would do")
    return code


def capture(host: WritableHost) -> int:
    """Print the capture."""
    from . import capture as agent_capture

    print_line(json.dumps(agent_capture.capture(host), indent=1))
    return 0


def confirm(host: WritableHost) -> int:
    """Disarm the dead-man timer."""
    print_line("confirmed" if confirmation.confirm(host) else "nothing waits to be confirmed")
    return 0


def expire(host: WritableHost, timer: str, stopped: bool = False) -> int:
    """Take back what a timer waited for, or with `stopped` what prove switches, if somebody stopped its timer."""
    with ending.at_signals():
        sentences = expiry.expire(host, timer, stopped)
    for sentence in sentences:
        print_line(f"<4>{sentence}")
    return 0


def _print_outcomes(outcomes: Sequence[Outcome]) -> int:
    """One line per concern, and what its way back left as it is; 1 when one failed."""
    failed = [outcome for outcome in outcomes if outcome.error]
    for outcome in outcomes:
        result = contract([outcome])
        print_line(_level(outcome) + result["msg"])
        for finding in result["findings"]:
            if finding["reference"] == "journal" and finding["status"] in _LEFT:
                place = " ".join(filter(None, (f"{finding['concern']}.{finding['knob']}", finding["where"])))
                if finding["status"] == "needs_reboot" and finding["now"] is not None:
                    place += f" is {in_words(finding['now'], 'absent', LONGEST_VALUE)}"
                print_line(f"  {place}: {finding['reason']}")
    if not outcomes:
        print_line("nothing to do: nearmetal has no record of having tuned this")
    return int(bool(failed))


def print_commands(host: WritableHost, outcomes: Sequence[Outcome]) -> int:
    """The plan as a shell script; errors of concerns, which are not in it, on standard error."""
    from .._engine.by_hand import script

    for outcome in outcomes:
        if outcome.error:
            print_error(f"{outcome.name}: {outcome.error}")
    print_line("\n".join(script(host, outcomes)) or "# nothing to do")
    return int(any(outcome.error for outcome in outcomes))


def _level(outcome: Outcome) -> str:
    """The mark by which the systemd journal knows an error (sd-daemon(3)); nothing for people."""
    return "<3>" if outcome.error and "JOURNAL_STREAM" in os.environ else ""
