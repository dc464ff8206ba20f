# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module runs what lies compiled beside the agent only when that is the very code that Ansible sent."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Callable

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION

ROOT = Path(__file__).resolve().parents[3]
UTILS = "ansible_collections.nearmetal.ec2.plugins.module_utils"
FOLDER = "usr/local/lib/nearmetal"
# As a module does on a host: import the edge, then the rest. Meanwhile another run installs another agent.
RUN = f"""
import importlib.util, os, sys
payload, other, *roots = sys.argv[1:]
sys.path.insert(0, payload)
from {UTILS}._ansible import installed
print(*(installed.prefer(root) for root in roots))
if other:
    os.replace(other, f"{{roots[0]}}/{FOLDER}/{bundle.cache_name()}")
print(*(importlib.util.find_spec(f"{UTILS}.{{name}}").origin for name in ("_engine.run", "_planning.options")))
print(*(importlib.util.find_spec(f"{UTILS}.{{name}}").origin for name in ("_host.bundle", "_ansible.edge")))
from {UTILS}._engine.result import contract
from {UTILS}._host import bundle
print(contract([])["changed"], bundle.identity({VERSION!r}))
"""
# A module may send more than the agent holds, as `prove` does. These need no Ansible.
SENT = [
    ".".join((UTILS, *source.relative_to(ROOT / "plugins/module_utils").with_suffix("").parts))
    for source in sorted((ROOT / "plugins/module_utils").rglob("*.py"))
    if source.name != "__init__.py" and source.parent.name not in ("_ansible", "_cloud", "stops", "types")
]
IMPORT_ALL = f"""
import importlib, sys
payload, _other, root = sys.argv[1:]
sys.path.insert(0, payload)
from {UTILS}._ansible import installed
print(installed.prefer(root))
print(*(importlib.import_module(name).__file__ for name in {SENT!r}))
"""
BROKEN_DISK = """
import errno, os
def pread(*_words):
    raise OSError(errno.EIO, "Input/output error")
os.pread = pread
"""
WORKS = f"False {bundle.identity(VERSION)}"


@pytest.fixture(scope="module")
def payload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources in a zip file, as Ansible sends them."""
    path = tmp_path_factory.mktemp("sent") / "payload.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for length in range(1, len(bundle.UTILS)):
            archive.writestr("/".join((*bundle.UTILS[:length], "__init__.py")), "")
        for source in (ROOT / "plugins/module_utils").rglob("*.py"):
            archive.write(source, "/".join((*bundle.UTILS, *source.relative_to(ROOT / "plugins/module_utils").parts)))
    return path


def _lay_out(root: Path, cache: bytes) -> Path:
    folder = root / FOLDER
    folder.mkdir(parents=True)
    for path in (folder, *list(folder.parents)[:3]):
        path.chmod(0o755)
    path = folder / bundle.cache_name()
    path.write_bytes(cache)
    path.chmod(0o644)
    return path


def _run(payload: Path, other: str, *roots: Path, script: str = RUN) -> "list[list[str]]":
    argv = [sys.executable, "-I", "-c", script, str(payload), other, *map(str, roots)]
    out = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout
    return [line.split(" ") for line in out.splitlines()]


def test_the_code_that_was_sent_is_run_from_beside_the_agent_whatever_is_installed_meanwhile(
    tmp_path: Path, payload: Path
) -> None:
    _lay_out(tmp_path, bundle.compiled(VERSION))
    (tmp_path / "other.zip").write_bytes(b"of another version")
    preferred, later, before, works = _run(payload, str(tmp_path / "other.zip"), tmp_path)
    assert preferred == ["True"]
    assert all(origin.startswith("/proc/self/fd/") for origin in later)
    assert all(origin.startswith(str(payload)) for origin in before)
    assert " ".join(works) == WORKS


def test_what_is_not_beside_the_agent_is_imported_from_what_was_sent(tmp_path: Path, payload: Path) -> None:
    _lay_out(tmp_path, bundle.compiled(VERSION))
    preferred, origins = _run(payload, "", tmp_path, script=IMPORT_ALL)
    assert preferred == ["True"]
    found = dict(zip(SENT, origins))
    assert found[f"{UTILS}._engine.run"].startswith("/proc/self/fd/")
    assert found[f"{UTILS}._engine.experiment.load"].startswith(str(payload))


def test_code_beside_the_agent_that_cannot_be_read_is_not_run(tmp_path: Path, payload: Path) -> None:
    _lay_out(tmp_path, bundle.compiled(VERSION))
    preferred, later, _before, works = _run(payload, "", tmp_path, script=BROKEN_DISK + RUN)
    assert preferred == ["False"]
    assert all(origin.startswith(str(payload)) for origin in later)
    assert " ".join(works) == WORKS


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _mark(path: Path, old: str, new: str) -> None:
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode(), 1))


DIGEST = bundle.identity(VERSION).split(" ")[1]
OTHER: "dict[str, Callable[[Path], object]]" = {
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


def test_other_code_or_code_that_others_may_change_is_not_run(tmp_path: Path, payload: Path) -> None:
    cache = bundle.compiled(VERSION)
    for name, change in OTHER.items():
        change(_lay_out(tmp_path / name, cache))
    preferred, later, before, works = _run(payload, "", *(tmp_path / name for name in OTHER))
    assert dict(zip(OTHER, preferred)) == dict.fromkeys(OTHER, "False")
    assert all(origin.startswith(str(payload)) for origin in (*later, *before))
    assert " ".join(works) == WORKS
