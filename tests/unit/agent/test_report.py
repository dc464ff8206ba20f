# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal status` for people and, with --json, for programs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.report import render
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, tune
from hypothesis import given
from hypothesis import strategies as st

from tests.support.boot_trees import debian
from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("nitro", {CURRENT: "acpi_pm\n"}))


@pytest.fixture
def status(host: FakeKernel, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The output of the command; its exit code is checked against `code`."""

    def run(*options: str, code: int = 0) -> str:
        capsys.readouterr()
        assert command(["status", *options], host) == code
        return re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", "2026-01-02 03:04 UTC", capsys.readouterr().out)

    return run


def test_a_host_that_was_never_tuned(status: Callable[..., str]) -> None:
    assert (
        status()
        == f"""\
nearmetal {VERSION} · m5.2xlarge · kernel 6.1.112-122.189.amzn2023.x86_64
Nothing is tuned on this host, and nothing is left to take back.

Unit    absent: nothing is left to plan at boot
"""
    )


def test_a_tuned_host(host: FakeKernel, call: Call, status: Callable[..., str]) -> None:
    call(tune.main, host, workload="base")
    command(["reapply"], host)
    assert (
        status()
        == f"""\
nearmetal {VERSION} · m5.2xlarge · kernel 6.1.112-122.189.amzn2023.x86_64
Everything is as wanted (1 concern).

clocksource                           tune, workload base · 2026-01-02 03:04 UTC
  ok              source       tsc   (before nearmetal: acpi_pm)
  ok              persist      nearmetal.service

Unit    planned 2026-01-02 03:04 UTC; log: journalctl -u nearmetal
Off     mkdir -p /etc/nearmetal && touch /etc/nearmetal/disabled
Undo    nearmetal restore clocksource, or all: nearmetal restore
"""
    )


def test_a_failed_concern_is_reported_until_it_is_done_or_restored(
    host: FakeKernel, call: Call, status: Callable[..., str]
) -> None:
    """The concern was taken back, so all values that are still wanted hold."""
    call(tune.main, host, concerns={"clocksource": {"source": "auto"}})
    host.moods["/proc/sys/net/core/somaxconn"] = "EIO"
    network = {"network_stack": {"somaxconn": 8192}}
    assert call(tune.main, host, concerns=network)["failed"]
    command(["reapply"], host)  # a concern other than the failed one
    shown = status(code=1)
    assert "\nFailed in its last run: network_stack\n" in shown
    assert "Failed  network_stack at 2026-01-02 03:04 UTC (tune): the kernel refused" in shown
    assert "Fix that and run it again, or give it up: nearmetal restore network_stack" in " ".join(shown.split())
    [failure] = json.loads(status("--json", code=1))["failed"]
    assert failure["concern"] == "network_stack"
    host.moods.clear()
    assert call(tune.main, host, concerns=network)["changed"]
    assert "Everything is as wanted (2 concerns)." in status()
    host.moods["/proc/sys/net/core/somaxconn"] = "EIO"
    assert call(tune.main, host, concerns={"network_stack": {"somaxconn": 4096}})["failed"]
    host.moods.clear()
    command(["restore", "network_stack"], host)
    assert "Everything is as wanted (1 concern)." in status()


def test_a_failure_is_forgotten_when_everything_is_restored(host: FakeKernel, call: Call) -> None:
    host.moods[CURRENT] = "EIO"
    assert call(tune.main, host, concerns={"clocksource": {"source": "auto"}})["failed"]
    assert command(["status"], host) == 1
    assert command(["restore"], host) == 0
    assert not (Path(host.root) / "var/lib/nearmetal").exists()
    assert not (Path(host.root) / "run/nearmetal/failed.json").exists()


def test_a_table_reads_as_in_a_report_and_a_long_run_keeps_its_date(
    host: FakeKernel, call: Call, status: Callable[..., str]
) -> None:
    call(tune.main, host, workload=["web", "cache", "in_memory_database", "low_latency"])
    shown = status()
    assert "{" not in shown
    assert "(before nearmetal: 32768 60999)" in " ".join(shown.split())
    heads = [line for line in shown.splitlines() if line.startswith("network_irq ")]
    assert [head.endswith("… · 2026-01-02 03:04 UTC") and len(head) <= 80 for head in heads] == [True]


def test_a_host_that_somebody_else_changed(host: FakeKernel, call: Call, status: Callable[..., str]) -> None:
    call(clocksource.main, host, source="tsc")
    host.write_value(CURRENT, "acpi_pm\n")
    assert (
        status(code=1)
        == f"""\
nearmetal {VERSION} · m5.2xlarge · kernel 6.1.112-122.189.amzn2023.x86_64
Not as wanted any more: clocksource.source

clocksource                            module clocksource · 2026-01-02 03:04 UTC
  would change    source       acpi_pm, wanted tsc   (before nearmetal: acpi_pm)
  ok              persist      /etc/tmpfiles.d/nearmetal-clocksource.conf

Unit    absent: nothing is left to plan at boot
Again   nearmetal reapply
Undo    nearmetal restore clocksource, or all: nearmetal restore
Command nearmetal isn't installed here, because the unit is absent: in its place run
        python3 -m ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command
"""
    )
    assert command(["reapply"], host) == 0
    assert "Everything is as wanted" in status()


def test_an_image_of_a_host_on_which_a_value_had_no_effect(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    # One node: nothing to decide. Its copy has two, and the unit writes no files.
    baker, copy = FakeKernel(tmp_path / "baker", files_of("nitro")), FakeKernel(tmp_path / "copy", files_of("metal"))
    call(tune.main, baker, bake=True, concerns={"numa": {"balancing": "disabled"}})
    shutil.copytree(Path(baker.root, "var/lib/nearmetal"), Path(copy.root, "var/lib/nearmetal"))
    assert command(["reapply"], copy) == 0
    capsys.readouterr()
    assert command(["status"], copy) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "ok balancing kernel.numa_balancing 0 (before nearmetal: 1)" in screen
    assert (
        "advice persist: nearmetal.service sets it at each boot; the next run of tune writes /etc/sysctl.d/" in screen
    )
    written = call(tune.main, copy, concerns={"numa": {"balancing": "disabled"}})
    assert [action["where"] for action in written["actions"]][:1] == ["/etc/sysctl.d/99-nearmetal-numa.conf"]
    Path(copy.root, "etc/sysctl.d/99-nearmetal-numa.conf").unlink()
    assert command(["status"], copy) == 1, "a file that is gone is missed"


def test_a_concern_that_cannot_be_planned_is_not_as_wanted(
    host: FakeKernel, call: Call, status: Callable[..., str]
) -> None:
    call(tune.main, host, concerns={"clocksource": {"source": "tsc"}, "network_stack": {"somaxconn": 8192}})
    Path(host.root, f"{CLOCK}/available_clocksource".lstrip("/")).write_text("kvm-clock acpi_pm\n")
    shown = status(code=1)
    assert "Can't be planned: clocksource" in shown
    assert "this kernel doesn't offer tsc" in shown


def test_a_value_that_waits_for_a_boot_is_not_yet_as_wanted(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = debian(tmp_path)
    wanted = {"clocksource": {"tsc_reliable": "enabled"}}
    assert call(tune.main, host, concerns=wanted)["reboot_required"]
    capsys.readouterr()
    assert command(["status"], host) == 1
    assert "clocksource.tsc_reliable needs a reboot" in capsys.readouterr().out
    Path(host.root, "proc/cmdline").write_text("root=/dev/vda1 ro tsc=reliable\n")
    assert command(["status"], host) == 0


def test_the_switch_works_as_it_is_printed(host: FakeKernel, call: Call, status: Callable[..., str]) -> None:
    call(tune.main, host, workload="base")
    assert not Path(host.root, "etc/nearmetal").exists()
    (line,) = [line for line in status().splitlines() if line.startswith("Off ")]
    subprocess.run(["sh", "-ec", line[8:].replace("/etc/", f"{host.root}/etc/")], check=True, timeout=10)
    shown = status()
    assert "Unit    switched off by /etc/nearmetal/disabled" in shown
    assert "\nOff " not in shown


def test_looking_changes_nothing(host: FakeKernel, call: Call, status: Callable[..., str]) -> None:
    call(tune.main, host, workload="base")
    before = {path: path.lstat().st_mtime_ns for path in Path(host.root).rglob("*")}
    status()
    status("--json")
    assert {path: path.lstat().st_mtime_ns for path in Path(host.root).rglob("*")} == before


def test_as_json(host: FakeKernel, call: Call, status: Callable[..., str]) -> None:
    call(tune.main, host, workload="base")
    found = json.loads(status("--json"))
    assert found["drift"] == []
    assert found["platform"]["instance_type"] == "m5.2xlarge"
    assert found["unit"]["enabled"] is True
    (concern,) = found["concerns"]
    assert (concern["name"], concern["run"], concern["options"]["source"]) == (
        "clocksource",
        "tune, workload base",
        "auto",
    )
    source = concern["knobs"][0]
    assert (source["now"], source["before_nearmetal"], source["status"]) == ("tsc", "acpi_pm", "ok")


def test_a_concern_that_only_the_journal_knows_is_shown(
    host: FakeKernel, call: Call, status: Callable[..., str]
) -> None:
    call(clocksource.main, host, source="tsc")
    (Path(host.root) / "var/lib/nearmetal/wanted.json").unlink()
    shown = status(code=1)
    assert "by an earlier run" in shown
    assert "nothing is stored of what is wanted: only restore can take it back" in " ".join(shown.split())


def test_a_broken_file_is_reported_in_one_sentence(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    call(clocksource.main, host, source="tsc")
    (Path(host.root) / "var/lib/nearmetal/wanted.json").write_text("{")
    assert command(["status"], host) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "Damaged /var/lib/nearmetal/wanted.json isn't what nearmetal stored" in shown


def test_status_before_a_reboot_and_with_the_unit_switched_off(
    host: FakeKernel, call: Call, status: Callable[..., str]
) -> None:
    call(tune.main, host, workload="base")
    host.reboot("99999999-0000-0000-0000-000000000000")
    host.write_value(CURRENT, "acpi_pm\n")
    assert "Unit    hasn't planned since boot;" in status(code=1)
    (Path(host.root) / "etc/nearmetal").mkdir()
    (Path(host.root) / "etc/nearmetal/disabled").touch()
    assert "Unit    switched off by /etc/nearmetal/disabled" in status(code=1)


texts = st.text(max_size=120)
knobs = st.fixed_dictionaries(
    {
        "knob": texts,
        "where": texts,
        "status": st.sampled_from(["ok", "would_change", "refused", "advice", "needs_reboot", "else"]),
        "now": st.none() | texts,
        "wanted": st.none() | texts,
        "before_nearmetal": st.none() | texts,
        "changed_by_us": st.booleans(),
        "reason": texts,
    }
)
concerns = st.fixed_dictionaries(
    {
        "name": texts,
        "run": st.none() | texts,
        "version": st.none(),
        "at": st.none() | texts,
        "options": st.none(),
        "error": texts,
        "knobs": st.lists(knobs, max_size=3),
    }
)


@given(st.lists(concerns, max_size=3), texts)
def test_no_value_breaks_the_picture(found: Any, name: str) -> None:
    """80 columns, and nothing that moves the cursor or sets colors, whatever a host reports."""
    shown = render(
        {
            "nearmetal": VERSION,
            "host": name,
            "platform": None,
            "concerns": found,
            "drift": [name] * 3,
            "needs_reboot": [],
            "failed": [{"concern": name, "run": name, "at": name, "error": name}],
            "damaged": [name],
            "others": [name],
            "unit": {"agent": "x", "enabled": True, "switched_off": name, "planned": None},
        }
    )
    for line in shown.split("\n"):
        assert len(line) <= 80
        assert line == "" or line.isprintable()
