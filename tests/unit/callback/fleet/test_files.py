# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a report, where they can't be written, and where the run is cut off before it wrote them."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import subprocess

import pytest

from tests.support.fleet import GOOD_CLOCK, Fleet, finding, result_with
from tests.support.report.judged import checked, states, well


def test_report_directory_that_cannot_be_written(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK)}})
    fleet.reports.write_text("a file is in the way")
    done = fleet.run()
    assert done.returncode == 2, "before a host is asked: whoever reads the files would read old ones"
    elsewhere = (
        "name another directory with NEARMETAL_REPORT_DIRECTORY, or report_directory below [nearmetal] in ansible.cfg"
    )
    assert f"report_directory: can't write in {fleet.reports}: File exists; {elsewhere}" in done.stdout
    fleet.reports.unlink()
    assert fleet.run("-e", "audit_history=/proc/x").returncode == 2


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "ansible.builtin.default"])
def test_what_is_nearly_the_setting_of_the_report_directory_is_named(fleet: Fleet, callback: str) -> None:
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK)}})
    (fleet.folder / "ansible.cfg").write_text("[nearmetal]\nreport_dir = /tmp/x\n")
    given = ("-e", "report_dir=/tmp/x", "-e", "log_dir=/tmp/x", "-e", "junit_report_dir=/tmp/x")
    done = fleet.run(*given, callback=callback, NEARMETAL_REPORT_DIR="/tmp/x", NEARMETAL_HOSTS="/tmp/x")
    said = " ".join(done.stderr.split())
    for name in ("NEARMETAL_REPORT_DIR in the environment", "report_dir below [nearmetal]", "the variable report_dir"):
        assert f"{name}" in said
    assert said.count("has no effect: name another directory with NEARMETAL_REPORT_DIRECTORY") == 3


@pytest.mark.parametrize("playbook", ["audit", "tune"])
def test_a_report_for_which_there_is_no_room_fails_the_run_and_leaves_the_last_one(fleet: Fleet, playbook: str) -> None:
    much = (finding("memory", "ok", f"k{number}", reason=f"{number}" + 400 * "x") for number in range(100))
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK, *much)}})
    well(fleet.run())
    before = {path.name: path.read_bytes() for path in fleet.reports.iterdir()}
    # As on a disk with room for what is tried before hosts are asked, and not for the page.
    limits, room = resource.getrlimit(resource.RLIMIT_FSIZE), 65536
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    done = fleet.run(playbook=f"nearmetal.ec2.{playbook}")
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert done.returncode == 2, done.stdout
    assert done.stdout.count("✗ report_directory: can't write") == 1
    assert {path.name: path.read_bytes() for path in fleet.reports.iterdir()} == before


def test_an_interrupted_run_says_what_became_of_its_report(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    os.mkfifo(gate)
    reached = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
    fleet.inventory({"h1": {"fate": "waits", "gate": str(gate)}, "h2": {"module_result": result_with(GOOD_CLOCK)}})
    process = subprocess.Popen(
        fleet.command(),
        cwd=fleet.folder,
        env=fleet.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert select.select([reached, process.stdout], [], [])[0] == [reached]
    os.killpg(process.pid, signal.SIGINT)
    shown = process.communicate()[0]
    os.close(reached)
    assert re.search(r"No report written: the run was interrupted after \d of 2 hosts; the report of an earlier", shown)
    assert not (fleet.reports / "report.json").exists()


def test_a_link_in_the_way_is_replaced_not_followed(fleet: Fleet) -> None:
    fleet.inventory({"h1": {"module_result": result_with(GOOD_CLOCK)}})
    precious = fleet.folder / "precious"
    precious.write_text("mine")
    fleet.reports.mkdir(mode=0o700)
    (fleet.reports / "report.json").symlink_to(precious)
    well(fleet.run())
    assert precious.read_text() == "mine"
    assert states(checked(fleet)) == {"h1": "reported"}


@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "default"])
def test_a_run_in_which_no_host_reports_keeps_the_last_report_with_hosts(fleet: Fleet, callback: str) -> None:
    good = {"module_result": result_with(GOOD_CLOCK)}
    kept = fleet.reports / "last_good"
    for hosts, folder in (({"h1": good}, False), ({"h1": {"fate": "dies"}}, True), ({"h2": {"fate": "dies"}}, True)):
        fleet.inventory(hosts)
        shown = well(fleet.run(callback=callback))
        assert kept.exists() == (" last_good" in shown) == folder
    assert states(fleet.report()) == {"h2": "failed"}
    assert '"state": "reported"' in (kept / "report.json").read_text()
    assert (kept / "report.html").exists()
