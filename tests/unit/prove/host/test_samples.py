# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counters around a load have the timers of systemd, except our own."""

from __future__ import annotations

from pathlib import Path
from typing import List, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import load_sample

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of

SHOW = "systemctl show --property=Id --property=LastTriggerUSecMonotonic *.timer"
CRON = "/proc/300/stat"


class Timed(FakeKernel):
    """A host whose systemd has timers."""

    last = "1h"

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        super().command(argv, timeout)
        if " ".join(argv) != SHOW:
            return ""
        names = ("apt-daily", "nearmetal", "nearmetal-prove")
        return "\n".join(f"Id={name}.timer\nLastTriggerUSecMonotonic={self.last}\n" for name in names)


def scheduler(pid: int, name: str, parent: int, faults: int, began: int) -> str:
    return f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 0 7 {faults} 0 0 5 5 0 0 20 0 1 0 {began} 0 0\n"


@pytest.fixture
def host(tmp_path: Path) -> Timed:
    found = Timed(tmp_path, files_of("xen_hvm"))
    for path, text in (("/run/systemd/system/units", ""), (CRON, scheduler(300, "cron", 1, 40, 100))):
        put(found, path, text)
    return found


def put(host: FakeKernel, path: str, text: str) -> None:
    place = Path(host.root) / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_the_timers_of_systemd_and_the_jobs_of_cron(host: Timed) -> None:
    before = load_sample.before_load(host, ())
    assert before.counters.jobs == {"apt-daily.timer": "1h", "cron": "40", "cron (still running)": ""}
    host.last = "2h"
    put(host, "/proc/401/stat", scheduler(401, "cron", 300, 0, 9))
    put(host, "/proc/402/stat", scheduler(402, "cron", 300, 0, 700))
    put(host, CRON, scheduler(300, "cron", 1, 41, 100))
    after = load_sample.after_load(host, ())
    assert after.counters.jobs == {"apt-daily.timer": "2h", "cron": "41", "cron (still running)": "700"}
    assert after.as_dict(None)["jobs"] == after.counters.jobs


@pytest.mark.parametrize("when", ["before_load", "after_load"])
def test_systemd_is_asked_outside_of_what_is_counted(when: str, host: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    order: List[str] = []
    command, observe = Timed.command, load_sample.observe

    def asked(kernel: Timed, argv: Sequence[str], timeout: float = 60) -> str:
        order.append("systemd")
        return command(kernel, argv, timeout)

    def counted(kernel: Timed, programs: Sequence[str]) -> object:
        order.append("counters")
        return observe(kernel, programs)

    monkeypatch.setattr(Timed, "command", asked)
    monkeypatch.setattr(load_sample, "observe", counted)
    getattr(load_sample, when)(host, ())
    assert order == (["systemd", "counters"] if when == "before_load" else ["counters", "systemd"])


def test_a_host_without_systemd_or_whose_systemd_is_silent_has_no_timers(tmp_path: Path, host: Timed) -> None:
    assert load_sample.before_load(fresh(tmp_path / "silent", "nitro_big"), ()).counters.jobs == {}
    host.moods[SHOW] = "Connection timed out"
    assert "apt-daily.timer" not in load_sample.before_load(host, ()).counters.jobs
    files = {path: text for path, text in files_of("xen_hvm").items() if not path.startswith("/run/systemd")}
    other = FakeKernel(tmp_path / "other", files)
    assert load_sample.after_load(other, ()).counters.jobs == {}
    assert other.commands == []
