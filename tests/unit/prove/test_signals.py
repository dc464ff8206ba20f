# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is printed after Ctrl-C, when Ansible itself may have ended."""

from __future__ import annotations

import signal
import subprocess
from typing import Callable, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import signals


def test_lines_reach_the_terminal_of_ansible_though_it_has_ended() -> None:
    with subprocess.Popen(["sleep", "60"], stderr=subprocess.PIPE) as ansible:
        with signals.stderr_of(ansible.pid) as write:
            write("restoring")
            ansible.kill()
            ansible.wait()
            write("restored")
        assert ansible.stderr is not None
        assert ansible.stderr.read() == b"restoring\nrestored\n"


def test_a_reader_that_does_not_read_or_has_gone_stops_no_restore() -> None:
    with subprocess.Popen(["sleep", "60"], stderr=subprocess.PIPE) as ansible:
        with signals.stderr_of(ansible.pid) as write:
            for _line in range(20):
                write("x" * 10_000)  # a pipe holds 64 KiB
            assert ansible.stderr is not None
            ansible.stderr.close()
            write("restored")
        ansible.kill()
    with signals.stderr_of(ansible.pid) as write:
        write("restored")


Arrives = Callable[[signals.Interrupts, int], None]
# A blocked signal waits, or another thread of the process takes it; then Python runs the handler at once.
WAYS = [
    pytest.param(lambda _interrupts, number: signal.raise_signal(number), id="waits"),
    pytest.param(lambda interrupts, number: interrupts.handle(number, None), id="taken by another thread"),
]


@pytest.mark.parametrize("arrives", WAYS)
def test_of_two_signals_that_were_held_the_second_does_not_interrupt_the_restore(arrives: Arrives) -> None:
    said = []
    with signals.first_interrupts() as interrupts:
        try:
            with interrupts.postponed():
                arrives(interrupts, signal.SIGINT)
                arrives(interrupts, signal.SIGTERM)
                said.append("completed")
        except signals.Interrupted as interrupted:
            said.append(str(interrupted))
            arrives(interrupts, signal.SIGINT)
            said.append("restored")
    assert said == ["completed", "the run was interrupted by SIGINT", "restored"]


@pytest.mark.parametrize("arrives", WAYS)
def test_a_signal_that_comes_too_late_is_known_to_have_come(arrives: Arrives) -> None:
    with signals.first_interrupts() as interrupts:
        interrupts.block()
        assert not interrupts.received
        arrives(interrupts, signal.SIGTERM)
        assert interrupts.received


def test_after_the_block_signals_are_handled_as_before_and_those_that_waited_are_gone() -> None:
    def handling() -> Tuple[object, ...]:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), blocked, signal.sigpending()

    before = handling()
    with signals.first_interrupts() as interrupts:
        interrupts.block()
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.received
        assert handling() != before
    assert handling() == before
