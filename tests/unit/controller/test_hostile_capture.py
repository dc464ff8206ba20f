# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture comes from a stranger: whatever it holds, nothing outside the plan's own folder is written or read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.capture import capture
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.replay import lay_out
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

from tests.support.fresh_host import fresh

Plan = Callable[[Dict[str, Any]], Tuple[int, str]]
KERNEL = "/proc/sys/kernel/osrelease"
DEEP = "/".join(["", *["d"] * 39])

# What is laid over a whole capture; VICTIM is an existing folder of whoever plans.
ESCAPES: Dict[str, Dict[str, Dict[str, str]]] = {
    "below a link": {"links": {"/aa": "VICTIM", "/aa/evil": "host.json"}},
    "folders below a link": {"links": {"/aa": "VICTIM", "/aa/new/sub/evil": "/x"}},
    "the other way round": {"links": {"/aa/evil": "/x", "/aa": "VICTIM"}},
    "below the folder planned in": {"links": {"/aa": "/proc/self/cwd", "/aa/evil": "host.json"}},
    "up": {"links": {"/aa": "../" * 40 + "VICTIM", "/aa/evil": "/x"}},
    "a chain": {"links": {"/aa": "/bb", "/bb": "cc", "/cc": "VICTIM", "/aa/evil": "/x", "/bb/evil": "/x"}},
    "a chain of one link below another": {"links": {"/aa": "VICTIM", "/aa/b": "..", "/aa/b/evil": "/x"}},
    "another spelling of the link": {"links": {"/aa": "VICTIM", "/./aa/evil": "/x"}},
    "a file below a link": {"links": {"/aa": "VICTIM"}, "files": {"/aa/evil": "x"}},
    "a file below another spelling": {"links": {"/aa": "VICTIM"}, "files": {"/./aa/./evil": "x"}},
    "a file named like a link": {"links": {"/aa": "VICTIM/evil"}, "files": {"/aa": "x"}},
    "a folder that is a link": {"links": {"/sys": "VICTIM"}},
    "dots in a file's path": {"files": {"/../../evil": "x"}},
    "dots in a link's path": {"links": {"/../../evil": "/x"}},
    "dots at the end": {"links": {"/aa/..": "/x"}},
    "no absolute path": {"links": {"evil": "/x"}},
    "the root": {"links": {"/": "VICTIM"}},
    "two slashes": {"links": {"//evil": "/x"}},
    "a line's end": {"files": {"/evil\n": "x"}},
    "forty names deep, below a link": {"links": {DEEP: "VICTIM", f"{DEEP}/evil": "/x"}},
    "too deep": {"links": {f"{DEEP}/d/evil": "/x"}},
    "too long": {"links": {"/".join(["", *["n" * 255] * 20, "evil"]): "/x"}},
    "a link to nothing": {"links": {"/aa": ""}},
    "a link that none can be": {"links": {"/aa": "\ud800"}},
    "a link with a NUL": {"links": {"/aa": "VICTIM\0"}},
    "a link that is too long": {"links": {"/aa": "n" * 5000}},
}
# What no file system can help against, or has no name for.
REFUSED_BY_FORM = (
    "dots in a file's path",
    "dots in a link's path",
    "no absolute path",
    "a link with a NUL",
)


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that nothing may come into, or be read from; the plan is made in it."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "secret").write_text("hunter2\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def whole(tmp_path: Path) -> Dict[str, Any]:
    """A capture as its host makes it."""
    return capture(fresh(tmp_path / "root", "nitro"))


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Plan:
    """The exit code of a plan from a capture, and what it printed."""

    def run(captured: Dict[str, Any]) -> Tuple[int, str]:
        place = tmp_path / "host.json"
        place.write_text(json.dumps(captured))
        capsys.readouterr()
        code = command.main(["plan", "--from", str(place)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def state_of(folder: Path) -> Dict[str, str]:
    """Everything in a folder."""
    return {str(path): os.readlink(path) if path.is_symlink() else "" for path in folder.rglob("*")}


def escaping(name: str, whole: Dict[str, Any], victim: Path) -> Dict[str, Any]:
    changed = dict(whole)
    for part, entries in ESCAPES[name].items():
        made = {path: target.replace("VICTIM", str(victim)) for path, target in entries.items()}
        changed[part] = {**made, **whole[part]}
    return changed


@pytest.mark.parametrize("name", ESCAPES)
def test_a_capture_makes_nothing_outside_its_folder(
    name: str, whole: Dict[str, Any], victim: Path, tmp_path: Path, plan: Plan
) -> None:
    evil = escaping(name, whole, victim)
    before = state_of(tmp_path)
    code, said = plan(evil)
    assert (code, said.count("\n"), said[:11]) == (1, 1, "nearmetal: ")
    assert {**before, str(tmp_path / "host.json"): ""} == state_of(tmp_path)


@pytest.mark.parametrize("name", [name for name in ESCAPES if name not in REFUSED_BY_FORM])
def test_the_laying_out_alone_makes_nothing_through_a_link(
    name: str, whole: Dict[str, Any], victim: Path, tmp_path: Path
) -> None:
    """Where a file system takes two spellings for one name, no comparison of paths helps."""
    evil = escaping(name, whole, victim)
    folder = tmp_path / "laid out"
    folder.mkdir()
    with suppress(NearmetalError):
        lay_out(evil, str(folder))
    assert state_of(victim) == {str(victim / "secret"): ""}
    assert not list(tmp_path.glob("*evil*"))


@pytest.mark.parametrize("change", [{"drivers": {"ens5": {"03": "zz"}}}, {"drivers": {"ens5": 5}}, {"folders": [7]}])
def test_a_hostile_capture_ends_in_one_sentence(change: Dict[str, Any], whole: Dict[str, Any], plan: Plan) -> None:
    code, said = plan({**whole, **change, "machine": None})
    assert (code, said.count("\n"), said[:11]) == (1, 1, "nearmetal: ")
    assert plan({**whole, "machine": 5})[0] == 1


@pytest.mark.parametrize(
    "links",
    [
        {KERNEL: "VICTIM/secret"},
        {KERNEL: "../" * 40 + "VICTIM/secret"},
        {KERNEL: "/proc/self/cwd/secret"},
        {KERNEL: "/aa/secret", "/aa": "VICTIM"},
        # What follows a chain that is too long is looked up nowhere.
        {
            KERNEL: "/l1",
            **{f"/l{number}": f"/l{number + 1}" for number in range(1, 39)},
            "/l39": "/x/secret",
            "/x/secret": "VICTIM",
        },
    ],
)
def test_links_of_a_capture_lead_nowhere_else(
    links: Dict[str, str], whole: Dict[str, Any], victim: Path, plan: Plan
) -> None:
    whole["files"][KERNEL] = "6.1.of-the-capture"
    assert "6.1.of-the-capture" in plan(whole)[1]
    del whole["files"][KERNEL]
    whole["links"].update({path: target.replace("VICTIM", str(victim)) for path, target in links.items()})
    code, said = plan(whole)
    assert (code, "hunter2" in said) == (0, False)
    assert state_of(victim) == {str(victim / "secret"): ""}
