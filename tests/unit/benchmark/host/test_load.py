# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of a measurement ends with the process that runs it, whatever ends that process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import load
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import load_sample
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics import metrics

# Under nohup a program would ignore SIGHUP, as would what it starts.
RUNS = f"""
import signal
import sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.path[:0] = {sys.path!r}
from {load.__name__} import run
print(run(sys.argv[1], 60, lambda: True).code)
"""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_load_ends_with_the_process_that_runs_it(number: signal.Signals, tmp_path: Path) -> None:
    # Each process of the load holds the pipe open: it is read to its end when none of them is left.
    os.mkfifo(tmp_path / "alive")
    command = f"exec > {tmp_path}/alive; echo $$; sleep 600 & sleep 600"
    module = subprocess.Popen([sys.executable, "-c", RUNS, command], start_new_session=True)
    with open(tmp_path / "alive", encoding="ascii") as alive:
        group = int(alive.readline())
        try:
            module.send_signal(number)
            assert module.wait() == -number
            assert select.select([alive], [], [], 30)[0], "the load runs on"
            assert alive.read() == ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


# What a server does that saves itself by a fork and ends: the child of a session of its own works on without a parent.
FORKS = """
mkfifo saved
echo 'echo $$ >pid; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo >saved; read -r _ <saved' >saving
(setsid ./saver saving &)
read -r _ <saved
"""
OTHERS = f"""
import sys
sys.path[:0] = {sys.path!r}
from {load_sample.__name__} import Host, foreign, observe
from {load.__name__} import adopt_orphans, run
before = observe(Host(), ())
if sys.argv[2] == "adopt":
    adopt_orphans()
code = run(sys.argv[1], 60, lambda: True).code
print(code, "saver" in dict(foreign(before, observe(Host(), ()), ())))
"""


@pytest.mark.parametrize(("way", "counted"), [("adopt", False), ("leave", True)])
def test_a_child_that_outlives_its_server_is_no_other_program(way: str, counted: bool, tmp_path: Path) -> None:
    (tmp_path / "saver").symlink_to("/bin/sh")
    argv = [sys.executable, "-c", OTHERS, FORKS, way]
    try:
        ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True, start_new_session=True)
        assert ran.stdout.split() == ["0", str(counted)], ran.stderr
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_load_on_a_client_ends_when_nobody_reads_the_answer_any_more(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    code = RUNS.replace("import run", "import is_awaited, run").replace("lambda: True", "is_awaited")
    command = f"exec > {tmp_path}/alive; echo $$; sleep 600"
    module = subprocess.Popen([sys.executable, "-c", code, command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with open(tmp_path / "alive", encoding="ascii") as alive:
        group = int(alive.readline())
        try:
            assert module.stdout is not None
            module.stdout.close()
            assert select.select([alive], [], [], 30)[0], "the load runs on"
            assert alive.read() == ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
            module.wait()


def test_a_load_that_has_ended_is_not_killed_again() -> None:
    ran = load.run("echo ops 3; echo oh >&2; exit 4", 60, lambda: True)
    assert (ran.code, ran.output, ran.message, ran.end) == (4, "ops 3\n", "oh\n", "")


def test_an_output_that_is_too_long_is_known_to_be() -> None:
    ran = load.run("head -c 10000000 /dev/zero | tr '\\0' '\\n'; echo ops 3", 60, lambda: True)
    with pytest.raises(NearmetalError, match="the command printed more than 65536 bytes"):
        metrics.metrics_of(ran.output.encode())


def test_a_shell_leads_the_load_though_a_program_of_another_user_may_be_all_of_it() -> None:
    # Fields 4 and 6: the parent of the program is the leader of its session.
    ran = load.run("cut -d ' ' -f 4,6 /proc/self/stat", 60, lambda: True)
    parent, session = ran.output.split()
    assert parent == session


def test_a_process_that_may_not_be_killed_does_not_delay_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # A controller's load that runs as root by sudo: only the shell belongs to the controller's user.
    def refuses(group: int, number: int) -> None:
        os.kill(group, number)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(load.os, "killpg", refuses)
    assert load.run("sleep 5; true", 0.1, lambda: True).end == "time"
