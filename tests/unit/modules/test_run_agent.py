# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task runs the agent of a host only if it is exactly the code that would be sent along, else that."""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.unit import AGENT
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, installed
from ansible_collections.nearmetal.ec2.plugins.module_utils._tasks.order import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.modules import run_agent, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
MARK = bundle.mark(VERSION)
NONE = {"changed": False, "answered": False}
WANTED = {"workload": ["web"], "concerns": {"smt": {"state": "kernel"}}}
# Stands in for the agent: returns its arguments.
ECHO = """import json, sys
order = json.load(sys.stdin)
del order["reader"]
print(json.dumps({"changed": True, "order": order, "words": sys.argv[1:]}))
"""


def _agent(script: str, mark: bytes = MARK) -> bytes:
    stream = io.BytesIO()
    stream.write(mark)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("__main__.py", script)
    return stream.getvalue()


def _lay_out(root: Path, code: bytes) -> Path:
    folder = root / os.path.dirname(AGENT).strip("/")
    folder.mkdir(parents=True)
    for path in (folder, *list(folder.parents)[:3]):
        path.chmod(0o755)
    for name, text in ((installed.AGENT, b"#!/usr/bin/python3 -I\n" + MARK), (installed.cache_name(), code)):
        (folder / name).write_bytes(text)
        (folder / name).chmod(0o644)
    return folder / installed.cache_name()


class Module:
    """Runs the module on the host at a folder."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = patch, capsys

    def __call__(
        self,
        root: Path,
        check: bool = False,
        after: "Optional[Callable[[], object]]" = None,
        agent: bytes = b"",
        **options: Any,
    ) -> Any:
        def opened(mark: str) -> "Optional[int]":
            descriptor = own(mark, str(root))
            if after is not None:
                after()
            return descriptor

        own = installed.opened
        arguments: Dict[str, Any] = {"task": "tune", "mark": MARK.decode(), "wanted": WANTED, **options}
        if agent:
            arguments["agent"] = base64.b64encode(agent).decode()
        with self._patch.context() as patch, patch_module_args({**arguments, "_ansible_check_mode": check}):
            patch.setattr(installed, "opened", opened)
            with pytest.raises(SystemExit):
                run_agent.main()
        result = json.loads(self._capsys.readouterr().out)
        invocation = result.pop("invocation")
        assert invocation == {"module_args": WANTED} or "order" not in result
        return result


@pytest.fixture(name="module")
def _module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    return Module(monkeypatch, capsys)


@pytest.mark.parametrize("check", [False, True])
def test_the_agent_gets_the_options_and_its_answer_is_the_result(tmp_path: Path, module: Module, check: bool) -> None:
    _lay_out(tmp_path, _agent(ECHO))
    order = {"module": "tune", "wanted": WANTED, "check": check, "more": {}}
    assert module(tmp_path, check) == {"changed": True, "order": order, "words": ["task"]}
    assert module(tmp_path, check, more={"drawn": True})["order"] == {**order, "more": {"drawn": True}}


def test_the_agent_of_the_task_runs_only_where_the_host_has_none(tmp_path: Path, module: Module) -> None:
    sent = _agent(ECHO.replace('"changed": True', '"changed": False'))
    assert module(tmp_path, agent=sent)["changed"] is False
    _lay_out(tmp_path, _agent(ECHO))
    assert module(tmp_path, agent=sent)["changed"] is True
    assert module(tmp_path, agent=sent, mark=None)["changed"] is False


FILE = "import json, os, sys; print(json.dumps({'changed': False, 'file': os.path.realpath(sys.argv[0])}))"


def test_the_agent_of_the_task_is_written_to_no_disk(tmp_path: Path, module: Module) -> None:
    assert module(tmp_path, check=True, agent=_agent(FILE))["file"].startswith("/memfd:")


def test_where_no_file_can_be_in_memory_ansible_removes_the_agent(
    tmp_path: Path, module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_name: str) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "memfd_create", refused)
    temporary = tmp_path / "ansible-tmp"
    temporary.mkdir()
    file = module(tmp_path, agent=_agent(FILE), _ansible_tmpdir=str(temporary))["file"]
    assert file.startswith(f"{temporary}/")


def test_the_checked_file_is_run_whatever_is_installed_meanwhile(tmp_path: Path, module: Module) -> None:
    path = _lay_out(tmp_path, _agent(ECHO))
    other = tmp_path / "other.zip"
    other.write_bytes(_agent("print('{\"changed\": false}')"))
    assert module(tmp_path, after=lambda: other.replace(path))["changed"] is True


def test_an_agent_that_cannot_be_read_is_not_run(
    tmp_path: Path, module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_words: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    _lay_out(tmp_path, _agent(ECHO))
    monkeypatch.setattr(os, "pread", broken)
    assert module(tmp_path) == NONE


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _mark(path: Path, old: str, new: str) -> None:
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode(), 1))


DIGEST = bundle.identity(VERSION).split(" ")[1]
OTHER: "Dict[str, Callable[[Path], object]]" = {
    "absent": lambda path: path.unlink(),
    "of another Python": lambda path: path.rename(path.with_name("nearmetal.cpython-36.zip")),
    "of another version": lambda path: _mark(path, VERSION, "9.9.9"),
    "of other sources": lambda path: _mark(path, DIGEST, DIGEST[::-1]),
    "empty": lambda path: path.write_bytes(b""),
    "writable by its group": lambda path: path.chmod(0o664),
    "in a folder that anybody may write to": lambda path: path.parent.chmod(0o777),
    "below a folder that anybody may write to": lambda path: path.parent.parent.chmod(0o777),
    "a symbolic link": _link,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("kind", OTHER)
def test_another_agent_or_one_that_others_may_change_is_not_run(tmp_path: Path, module: Module, kind: str) -> None:
    OTHER[kind](_lay_out(tmp_path, _agent(ECHO)))
    assert module(tmp_path) == NONE


@pytest.mark.parametrize(
    "change", [lambda path: path.unlink(), lambda path: path.chmod(0o666), lambda path: path.write_bytes(b"")]
)
def test_the_cache_of_another_agent_is_not_run(
    tmp_path: Path, module: Module, change: Callable[[Path], object]
) -> None:
    change(_lay_out(tmp_path, _agent(ECHO)).with_name(installed.AGENT))
    assert module(tmp_path) == NONE


ANSWERS = {
    'print(\'{"failed": true, "msg": "said", "errors": {}}\')': {"failed": True, "msg": "said", "errors": {}},
    "raise SystemExit('no memory')": {"failed": True, "msg": "the agent ended with status 1: no memory"},
    "import os; os.kill(os.getpid(), 9)": {"failed": True, "msg": "the agent ended with status -9: it said nothing"},
}


@pytest.mark.parametrize("script", ANSWERS)
def test_what_an_agent_that_failed_said_is_the_result(tmp_path: Path, module: Module, script: str) -> None:
    _lay_out(tmp_path, _agent(script))
    result = module(tmp_path)
    assert {name: result[name] for name in ANSWERS[script]} == ANSWERS[script]


READER = """import json, os, sys
reader = json.load(sys.stdin)["reader"]
print(json.dumps({"changed": False, "reader": os.readlink(f"/proc/self/fd/{reader}")}))
"""


def test_the_agent_gets_what_the_module_prints_to(tmp_path: Path, module: Module) -> None:
    assert module(tmp_path, agent=_agent(READER))["reader"] == os.readlink("/proc/self/fd/1")


def test_a_load_ends_when_nobody_reads_what_the_module_will_print(tmp_path: Path) -> None:
    agent = tmp_path / installed.AGENT
    agent.write_bytes(bundle.build(VERSION, measuring=True))
    gone, reader = os.pipe()
    os.close(gone)
    wanted = {"step": "load", "command": "sleep 60"}
    order = {"module": "prove", "wanted": wanted, "check": False, "more": {}, "reader": reader}
    command, given = [sys.executable, "-I", "-S", str(agent), "task"], json.dumps(order).encode()
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True, pass_fds=[reader])
    assert json.loads(done.stdout)["answer"]["load"]["end"] == "gone"


def ask(host: FakeKernel, check: bool = True, drawn: bool = True, **options: Any) -> Any:
    """What the agent answers to the module."""
    order = {"module": "tune", "wanted": options, "check": check, "more": {"drawn": drawn}}
    return json.loads(json.dumps(answer(order, host)))


def test_the_agent_answers_as_the_module_does(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    call(tune.main, host, workload=["web"])
    for options in (
        {"workload": ["cache"]},
        {"workload": ["nonsense"]},
        {"concerns": {"smt": {"x": "\n"}}},
        {"concerns": '{"smt": {}}'},
    ):
        result, answered = call(tune.main, host, check=True, **options), ask(host, **options)
        assert {**answered, "invocation": result["invocation"]} == result
    refused, answered = call(tune.main, host, check=True, prune="nonsense"), ask(host, prune="nonsense")
    # Of a wrong type Ansible's own check says only the sentence.
    assert {**answered, "invocation": refused["invocation"]} == {**refused, "mistake": True}
    assert ask(host, check=False, workload=["cache"])["changed"] is True
    assert call(tune.main, host, workload=["cache"])["changed"] is False


def test_options_that_are_wrong_are_shown_nowhere_but_in_the_message(tmp_path: Path) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    assert ask(host, prune="nonsense")["invocation"] == {"module_args": {}}


def test_only_a_run_that_a_report_draws_observes_disks_that_no_concern_plans(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    disks = call(tune.main, host, workload=["web"])["topology"]["disks"]
    assert [disk["name"] for disk in disks] == ["nvme0n1", "nvme1n1"]
    for drawn, expected in ((False, []), (True, disks)):
        assert ask(host, check=False, drawn=drawn, workload=["web"])["topology"]["disks"] == expected
