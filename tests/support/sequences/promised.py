# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode's word: what each run of a test promised before its first write, which is check mode's whole answer.

A run that was promised without an error doesn't fail, and does what was listed. What only writing can tell is the one
exception, so a kernel that a test has misbehave is left out.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Set, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import run as engine

from tests.support.fake_kernel import FakeKernel

# What a kernel refuses, and what a neighbour puts in the way in the middle of a run.
_ONLY_WRITING_TELLS = ("the kernel refused", "is a symbolic link", "File exists")
_REPLACEABLE = ("write_value", "set_driver", "command", "output", "_take", "_driver", "_route")


def _actions(run: engine.Run) -> Set[Tuple[str, str, str, str]]:
    actions = [action for outcome in run.outcomes for action in outcome.plan.actions]
    return {(action.knob, action.what, action.where, repr(action.after)) for action in actions}


def _errors(run: engine.Run) -> List[Tuple[str, str]]:
    return [(outcome.name, outcome.error) for outcome in run.outcomes if outcome.error]


def _obeys(host: Any) -> bool:
    """Whether the kernel does as kernels do: no test has it refuse, or replaces its calls."""
    if not isinstance(host, FakeKernel) or host.moods or host.read_only or host.nics.stubborn or host.memory.room:
        return False
    return all(
        getattr(getattr(host, name), "__func__", None) is getattr(FakeKernel, name, None) for name in _REPLACEABLE
    )


def compared() -> Iterator[None]:
    """Compare each run with its check while this lasts."""

    def carried_out(planned: engine.Planned, conditions: engine.Conditions) -> engine.Run:
        promise, obeyed = planned.run, _obeys(planned.session.host)
        done = carry_out(planned, conditions)
        refused = any(word in error for _name, error in _errors(done) for word in _ONLY_WRITING_TELLS)
        if obeyed and not refused and not conditions.roll_back_all:
            assert _errors(done) == _errors(promise), f"check mode didn't say that this fails: {_errors(done)}"
            assert _actions(done) == _actions(promise), "check mode listed other actions"
        return done

    carry_out = engine._carry_out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_carry_out", carried_out)
        yield
