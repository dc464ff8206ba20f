# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as the shell commands that would do the same, for people to read. PRIVATE to the collection."""

from __future__ import annotations

from typing import List, Sequence

from .._engine import by_hand
from .._engine.session import Outcome
from .._host.host import WritableHost
from .._levers.registry import place_of
from .._planning.unit import NAME as UNIT
from .._words import sentence

_OF_UNIT = "# The unit that plans again at each boot and for new devices: only nearmetal itself installs it"
_NO_COMMAND = "# no command does this: only nearmetal itself writes it"


def script(host: WritableHost, outcomes: Sequence[Outcome]) -> List[str]:
    """The lines of a shell script for a plan that hasn't been carried out, each step below its reason.

    A concern with an error is left out, because a run doesn't start it.
    """
    lines: List[str] = []
    for outcome in outcomes:
        actions = () if outcome.error else outcome.plan.actions
        if actions and outcome.name == UNIT:
            lines.append(_OF_UNIT)
            continue
        for action in actions:
            name = " ".join(filter(None, (f"{action.concern}.{action.knob}", action.where)))
            lines.append(f"# {sentence(f'{name}: {action.reason}')}")
            commands = by_hand.commands(place_of(host, action.key), action.after)
            lines += [line for command in commands for line in command.splitlines()] or [_NO_COMMAND]
    return lines
