# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task `tune` runs the agent of a host only if it is exactly the code that Ansible would send."""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.unit import AGENT
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, installed
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.modules import tune, tune_by_agent

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
MARK = bundle.mark(VERSION)
NONE = {"changed": False, "answered": False}
WANTED = {"workload": ["web"], "concerns": {"smt": {"state": "kernel"}}}
# Stands in for the agent: returns its arguments.
ECHO = "import json, sys; print(json.dumps({'changed': True, 'asked': json.load(sys.stdin), 'words': sys.argv[1:]}))"


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
    path = folder / installed.cache_name()
    path.write_bytes(code)
    path.chmod(0o644)
    return path


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
        arguments: Dict[str, Any] = {"mark": MARK.decode(), "wanted": WANTED, "_ansible_check_mode": check, **options}
        if agent:
            arguments["agent"] = base64.b64encode(agent).decode()
        with self._patch.context() as patch, patch_module_args(arguments):
            patch.setattr(installed, "opened", opened)
            with pytest.raises(SystemExit):
                tune_by_agent.main()
        result = json.loads(self._capsys.readouterr().out)
        del result["invocation"]
        return result


@pytest.fixture(name="module")
def _module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    return Module(monkeypatch, capsys)


@pytest.mark.parametrize("check", [False, True])
def test_the_agent_gets_the_options_and_its_answer_is_the_result(tmp_path: Path, module: Module, check: bool) -> None:
    _lay_out(tmp_path, _agent(ECHO))
    asked = {"options": WANTED, "check": check, "installed": True, "drawn": False}
    assert module(tmp_path, check) == {"changed": True, "asked": asked, "words": ["tune"]}
    assert module(tmp_path, check, drawn=True)["asked"] == {**asked, "drawn": True}


def test_the_agent_of_the_task_runs_only_where_the_host_has_none(tmp_path: Path, module: Module) -> None:
    sent = _agent(ECHO.replace("'changed': True", "'changed': False"))
    asked = {"options": WANTED, "check": True, "installed": False, "drawn": False}
    own = {"changed": True, "words": ["tune"]}
    assert module(tmp_path, check=True, agent=sent) == {**own, "changed": False, "asked": asked}
    _lay_out(tmp_path, _agent(ECHO))
    assert module(tmp_path, check=True, agent=sent) == {**own, "asked": {**asked, "installed": True}}


def test_the_agent_of_the_task_is_written_to_no_disk(tmp_path: Path, module: Module) -> None:
    sent = _agent("import json, os, sys; print(json.dumps({'changed': False, 'file': os.readlink(sys.argv[0])}))")
    assert module(tmp_path, check=True, agent=sent)["file"].startswith("/memfd:")


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


ANSWERS = {
    f"raise SystemExit({installed.UNSUITED})": NONE,
    'print(\'{"failed": true, "msg": "said", "errors": {}}\')': {"failed": True, "msg": "said", "errors": {}},
    "raise SystemExit('no memory')": {"failed": True, "msg": "the agent ended with status 1: no memory"},
    "import os; os.kill(os.getpid(), 9)": {"failed": True, "msg": "the agent ended with status -9: it said nothing"},
}


@pytest.mark.parametrize("script", ANSWERS)
def test_only_an_agent_that_did_nothing_leaves_the_run_to_the_module(
    tmp_path: Path, module: Module, script: str
) -> None:
    _lay_out(tmp_path, _agent(script))
    result = module(tmp_path)
    assert {name: result[name] for name in ANSWERS[script]} == ANSWERS[script]


class Asked:
    """Runs the command of an agent as the module does."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = patch, capsys

    def __call__(
        self, host: FakeKernel, check: bool = True, is_installed: bool = True, drawn: bool = True, **options: Any
    ) -> Any:
        """The answer; the status when there is none."""
        asked = {"options": options, "check": check, "installed": is_installed, "drawn": drawn}
        self._patch.setattr(sys, "stdin", io.StringIO(json.dumps(asked)))
        status = command.main(["tune"], host)
        return status or json.loads(self._capsys.readouterr().out)


@pytest.fixture(name="asked")
def _asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(monkeypatch, capsys)


def test_the_agent_answers_as_the_module_does(tmp_path: Path, call: Call, asked: Asked) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    call(tune.main, host, workload=["web"])
    for options in ({"workload": ["cache"]}, {"workload": ["nonsense"]}, {"concerns": {"smt": {"x": "\n"}}}):
        result = call(tune.main, host, check=True, **options)
        del result["invocation"]
        assert asked(host, **options) == result
    assert asked(host, check=False, workload=["cache"])["changed"] is True
    assert call(tune.main, host, workload=["cache"])["changed"] is False


def test_only_a_run_that_a_report_draws_observes_disks_that_no_concern_plans(
    tmp_path: Path, call: Call, asked: Asked
) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    disks = call(tune.main, host, workload=["web"])["topology"]["disks"]
    assert [disk["name"] for disk in disks] == ["nvme0n1", "nvme1n1"]
    for drawn, expected in ((False, []), (True, disks)):
        assert asked(host, check=False, drawn=drawn, workload=["web"])["topology"]["disks"] == expected


def test_an_agent_that_the_task_sends_along_plans_a_host_that_has_none(
    tmp_path: Path, call: Call, asked: Asked
) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    result = call(tune.main, host, check=True, workload=["web"])
    del result["invocation"]
    assert asked(host, is_installed=False, workload=["web"]) == result
    assert asked(host, is_installed=False, workload=["web"], prune="nonsense") == installed.UNSUITED


def test_options_that_are_wrong_and_an_agent_that_was_removed_are_left_to_the_module(
    tmp_path: Path, call: Call, asked: Asked
) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    call(tune.main, host, workload=["web"])
    assert asked(host, workload=["web"], prune="nonsense") == installed.UNSUITED
    assert asked(host, concerns='{"smt": {}}') == installed.UNSUITED
    (tmp_path / AGENT.strip("/")).unlink()
    assert asked(host, workload=["web"]) == installed.UNSUITED
