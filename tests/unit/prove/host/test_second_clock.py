# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the clock source is compared, a load is timed by a clock that isn't switched."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import second_clock

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.support.prove.experiments import Call, Steps, current, files

READ_AHEAD = {"concerns": {"block_storage": {"nomerges": 2, "method": "runtime"}}}


class Clocks(Host):
    """A real-time clock, and a kernel's clock that runs `rate` times as fast, in which programs sleep too."""

    def __init__(self, rate: float) -> None:
        super().__init__("/nowhere")
        self.passed, self.rate = 100.3, rate

    def number(self, path: str) -> Optional[int]:
        return int(self.passed) if path == second_clock.PATH and self.rate else 7

    def sleep(self, seconds: float) -> None:
        self.passed += seconds / (self.rate or 1)

    def monotonic(self) -> float:
        return self.passed * self.rate


@pytest.mark.parametrize("rate", [0.4, 1.0, 3.6])
def test_a_load_takes_as_long_whatever_the_clock_under_test_says(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Clocks(rate)
    monkeypatch.setattr(second_clock, "time", SimpleNamespace(sleep=host.sleep, monotonic=host.monotonic))
    first = second_clock.next_second(host)
    began = host.monotonic()
    host.passed += 2.47
    elapsed = host.monotonic() - began
    found = second_clock.seconds(elapsed, first, second_clock.next_second(host))
    assert elapsed == pytest.approx(2.47 * rate)
    assert found == pytest.approx(2.47, abs=0.01)


def test_a_clock_that_stands_still_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Clocks(0.0)
    monkeypatch.setattr(second_clock, "time", SimpleNamespace(sleep=host.sleep, monotonic=host.monotonic))
    with pytest.raises(NearmetalError, match="the host's real-time clock stands still at 7"):
        second_clock.next_second(host)


class Ticking(FakeKernel):
    """A host whose real-time clock is a second later each time somebody looks."""

    looks = 500

    def number(self, path: str) -> Optional[int]:
        if path != second_clock.PATH:
            return super().number(path)
        self.looks += 1
        return self.looks


def test_only_a_timed_load_under_a_clock_that_is_compared_is_timed_by_the_other(tmp_path: Path, call: Call) -> None:
    host = Ticking(tmp_path, files_of("xen_hvm"))
    steps = Steps(call, host)
    for options in ({"tune": READ_AHEAD, "timed": True}, {}):
        assert steps("begin", **options)["answer"]["tested"]
        assert steps("measure", **options)["answer"]["load"]["code"] == 0
        steps("back")
    assert host.looks == 500
    steps("begin", timed=True)
    looks = host.looks
    answer = steps("measure", timed=True)["answer"]
    assert (answer["before"]["host_seconds"], answer["after"]["host_seconds"]) == (looks + 2, looks + 4)
    assert answer["load"]["seconds"] > 0


def test_without_another_clock_nothing_begins(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    before, steps = files(host), Steps(call, host)
    refused: Any = steps("begin", timed=True)
    assert refused["failed"]
    assert "the very clock that is compared" in refused["msg"]
    assert "set prove_on: controller" in refused["msg"]
    assert (current(host), files(host)) == ("xen", before)
    assert steps("begin", timed=True, load_on="controller")["answer"]["tested"] == ["clocksource.source"]
