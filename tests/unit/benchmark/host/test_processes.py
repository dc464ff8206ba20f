# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No process and no file of a benchmark outlives its run, whatever ends it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import List, TextIO

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import processes
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host.processes import Session
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

RUNS = f"""
import sys, time
sys.path[:0] = {sys.path!r}
from {processes.__name__} import Session
with Session(sys.argv[1], 256) as started:
    started.complete(sys.argv[2:], time.monotonic() + 600, lambda: True, as_root=True)
"""
# One sleep has lost its parent, and the last program has a process group of its own.
APART = "import os, time; os.setpgid(0, 0); print('begun', flush=True); time.sleep(30)"
MANY = f'exec > {{pipe}}; touch file; sleep 600 & (sleep 600 &); python3 -c "{APART}"'


def complete(parent: Path, *argv: str, seconds: float = 60, memory_mib: int = 256, goes_on: bool = True) -> str:
    with Session(str(parent), memory_mib) as started:
        return started.complete(argv, time.monotonic() + seconds, lambda: goes_on, as_root=False)


def listen(folder: Path) -> TextIO:
    """The reading end of the pipe `alive`."""
    os.mkfifo(folder / "alive")
    (folder / "runs").mkdir()
    return open(os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK), encoding="ascii")


def await_line(pipe: TextIO) -> str:
    assert select.select([pipe], [], [], 30)[0], "nothing came, and the benchmark runs on"
    return pipe.readline()


def await_empty(folder: Path) -> None:
    script = 'while [ "$(ls -A "$1")" ]; do sleep 0.02; done'
    subprocess.run(["timeout", "30", "sh", "-c", script, "sh", str(folder)], check=True)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_run_that_is_killed(number: signal.Signals, tmp_path: Path) -> None:
    # Each process of the run holds the pipe open: it is read to its end when none of them is left.
    with listen(tmp_path) as alive:
        # Who starts these tests with nohup, or in the background of a script, has SIGHUP or SIGINT ignored.
        command = ["env", "--default-signal", sys.executable, "-c", RUNS, str(tmp_path / "runs")]
        command += ["sh", "-c", MANY.format(pipe=tmp_path / "alive")]
        module = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        assert await_line(alive) == "begun\n"
        module.send_signal(number)
        module.wait(30)
        await_empty(tmp_path / "runs")  # the guard's last act
        assert select.select([alive], [], [], 0)[0], "a process runs on"
        assert alive.readline() == ""


def test_nothing_is_left_if_the_guard_was_killed(tmp_path: Path) -> None:
    with listen(tmp_path) as alive:
        with Session(str(tmp_path / "runs"), 256) as started:
            leaves = ["sh", "-c", f"exec > {tmp_path}/alive; echo begun; sleep 600 & touch file"]
            started.complete(leaves, time.monotonic() + 60, lambda: True, as_root=True)
            guard = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()[0]
            os.kill(int(guard), signal.SIGKILL)
        assert (await_line(alive), await_line(alive)) == ("begun\n", "")
    await_empty(tmp_path / "runs")


def test_a_program_runs_as_nobody_in_an_empty_folder_of_its_own(tmp_path: Path) -> None:
    said = complete(tmp_path, "sh", "-c", "id -u; ls -A; touch file && pwd").split()
    assert said[0] == str(processes.NOBODY if os.geteuid() == 0 else os.geteuid())
    assert said[1].startswith(f"{tmp_path}/nearmetal-benchmark-")
    assert list(tmp_path.iterdir()) == []


def test_root_works_in_a_folder_in_which_no_other_user_can_put_a_link(tmp_path: Path) -> None:
    writes = "umask 077; printf written > result; stat -c %a,%u .. . ../programs"
    with Session(str(tmp_path), 256) as started:
        started.write("given", "text")
        until, own = time.monotonic() + 60, os.geteuid()
        modes = started.complete(["sh", "-c", writes], until, lambda: True, True).split("\n")
        assert modes[:3] == [f"711,{own}", f"700,{own}", f"700,{own or processes.NOBODY}"]
        assert started.complete(["true"], until, lambda: True, True, "result") == "written"
        # Another daemon of the same user can't reach the folder in which root opens files.
        planted = started.complete(
            ["sh", "-c", "ln -s /etc/passwd ../root/planted; cat given"], until, lambda: True, False
        )
        assert planted == "text"
        if own == 0:
            assert not os.path.lexists(os.path.join(os.path.dirname(started.folder), "root/planted"))


@pytest.mark.parametrize("left", ["a link", "nothing"])
def test_a_result_that_is_no_file_of_root_is_refused(left: str, tmp_path: Path) -> None:
    leaves = ["sh", "-c", "ln -s /etc/passwd result" if left == "a link" else "true"]
    with Session(str(tmp_path), 256) as started, pytest.raises(NearmetalError, match=r"^sh wrote no result: "):
        started.complete(leaves, time.monotonic() + 60, lambda: True, True, "result")


def test_a_folder_that_can_t_be_removed_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # It fails as on a file system that became read-only: with exit status 1 and a line about the folder.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rm").write_text('#!/bin/sh\nexec rmdir "$3"\n')
    (tmp_path / "bin/rm").chmod(0o755)
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(NearmetalError) as raised:
        complete(tmp_path / "runs", "sh", "-c", "echo no disk >&2; exit 1")
    (folder,) = (tmp_path / "runs").iterdir()
    assert str(raised.value).startswith(f"sh failed with code 1: no disk; the benchmark may have left {folder} on the")
    assert str(raised.value).count("Directory not empty") == 1


def test_a_process_that_never_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Like a process that waits for a disk that doesn't answer: it has a number, and no signal ends it.
    number = 1 << 23
    proc = tmp_path / f"proc/{number}"
    proc.mkdir(parents=True)
    monkeypatch.setattr(processes, "_PROC", str(tmp_path / "proc"))
    monkeypatch.setattr(processes, "_LOOKS", 2)

    def leave() -> None:
        with Session(str(tmp_path), 256) as started:
            leader = started.complete(["sh", "-c", "echo $PPID"], time.monotonic() + 60, lambda: True, True).strip()
            (proc / "stat").write_text(f"{number} (fio) D 1 {leader} {leader} 0\n")

    with pytest.raises(NearmetalError, match=rf"remove it \(processes that don't end: {number}\)$"):
        leave()
    assert [path.name for path in tmp_path.iterdir()] == ["proc"]


@pytest.mark.parametrize(
    ("argv", "limits", "words"),
    [
        (["sh", "-c", "echo first; echo no such device >&2; exit 3"], {}, "sh failed with code 3: no such device"),
        (["sh", "-c", 'printf "{\\n \\"error\\": \\"refused\\"\\n}\\n"; exit 1'], {}, "sh failed with code 1: refused"),
        # As iperf3 3.12 does, whose last words aren't the reason.
        (
            ["sh", "-c", 'echo "{\\"error\\": \\"no address\\"}"; echo sh: exiting >&2; exit 1'],
            {},
            "sh failed with code 1: no address",
        ),
        (["sh", "-c", "kill -TERM $$"], {}, "sh failed with code 143: "),
        (["sleep", "600"], {"seconds": 0.1}, "sleep didn't end within its time: it was stopped"),
        (["sleep", "600"], {"goes_on": False}, "sleep was stopped, because the run had ended"),
        (["python3", "-c", "bytearray(500 << 20)"], {"memory_mib": 100}, "python3 failed with code 1: MemoryError"),
        (["python3", "-c", "print('x' * (2 << 20))"], {}, "the benchmark printed more than 1048576 bytes"),
    ],
)
def test_a_program_that_fails_or_exceeds_a_limit_is_named_in_one_sentence(
    argv: List[str], limits: "dict[str, float]", words: str, tmp_path: Path
) -> None:
    with pytest.raises(NearmetalError) as raised:
        complete(tmp_path, *argv, **limits)
    assert str(raised.value).startswith(words)
    assert list(tmp_path.iterdir()) == []


def test_a_server_listens_before_the_load_begins_and_ends_with_the_run(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    listen = f"import socket, signal; s = socket.create_server(('127.0.0.1', {port})); signal.pause()"
    with Session(str(tmp_path), 256) as started:
        started.serve(["python3", "-c", listen], port)
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('connected')"
        assert started.complete(["python3", "-c", connect], time.monotonic() + 60, lambda: True, False) == "connected\n"
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port)) != 0
    assert started.used.user_seconds > 0


def test_a_server_of_somebody_else_on_the_port_is_not_taken_for_the_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_STARTS", 0)
    with socket.create_server(("127.0.0.1", 0)) as other, Session(str(tmp_path), 256) as started:
        port = other.getsockname()[1]
        with pytest.raises(NearmetalError, match=f"sleep didn't listen on port {port} within"):
            started.serve(["sleep", "600"], port)


def test_a_server_that_ends_at_once_is_named_with_its_last_words(tmp_path: Path) -> None:
    with Session(str(tmp_path), 256) as started, pytest.raises(NearmetalError, match="sh ended at once: bad option"):
        started.serve(["sh", "-c", "echo bad option; exit 1"], 1)


def test_a_folder_that_can_t_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        NearmetalError, match=r"no folder for the benchmark can be made in .*: No such file or directory"
    ):
        complete(tmp_path / "absent", "true")
