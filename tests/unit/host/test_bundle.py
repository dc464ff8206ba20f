# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent, one zip application: its content, and that it runs by itself."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Set

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, installed
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import _FILES
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
ROOT = Path(__file__).resolve().parents[3]


def test_the_agent_is_small_and_always_the_same(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    call(clocksource.main, host, source="auto")
    agent = tmp_path / "usr/local/lib/nearmetal/nearmetal.pyz"
    assert agent.stat().st_size <= 600 * 1024, "each knob adds to what is packed and read at boot"
    assert stat.S_IMODE(agent.stat().st_mode) == 0o644
    with zipfile.ZipFile(agent) as archive:
        assert archive.namelist() == sorted(archive.namelist())
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    first = agent.read_bytes()
    call(restore.main, host)
    bundle.build.cache_clear()
    call(tune.main, host, workload="base")
    assert agent.read_bytes() == first


def test_the_agent_runs_by_itself_and_is_made_of_what_it_holds(tmp_path: Path) -> None:
    agent = tmp_path / "nearmetal.pyz"
    agent.write_bytes(bundle.build(VERSION))
    shown = subprocess.run([sys.executable, "-I", agent, "--version"], stdout=subprocess.PIPE, check=True, text=True)
    assert shown.stdout == f"nearmetal.ec2 {VERSION}\n"
    # It would install itself unchanged, from its sources and from its cache.
    cache = tmp_path / installed.cache_name()
    cache.write_bytes(bundle.compiled(VERSION))
    for place in (agent, cache):
        code = (
            f"import sys, zipimport; __loader__ = zipimport.zipimporter({str(agent)!r})\n"
            f"sys.path.insert(0, {str(place)!r})\n"
            "from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle\n"
            f"print(bundle.__file__, bundle.identity({VERSION!r}), len(bundle.build({VERSION!r})))\n"
        )
        out = subprocess.run([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, check=True, text=True).stdout
        file, embedded = out.strip().split(" ", 1)
        assert file.startswith(str(place))
        assert embedded == f"{bundle.identity(VERSION)} {agent.stat().st_size}"


READ_BY_ANSIBLE = f"""
import sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader()
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
before = set(sys.modules)
bundle.build({VERSION!r})
print(sorted(name for name in set(sys.modules) - before if name.startswith("ansible_collections.")))
"""


def test_the_controller_reads_the_sources_and_runs_none() -> None:
    """Each task on a host begins with it; to run more than 100 modules of the agent took most of its time there."""
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible/collections")}
    command = [sys.executable, "-c", READ_BY_ANSIBLE]
    assert subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout == "[]\n"


def test_the_cache_is_used_and_may_be_missing_or_of_another_python(tmp_path: Path) -> None:
    agent = tmp_path / "nearmetal.pyz"
    agent.write_bytes(bundle.build(VERSION))
    (tmp_path / "nearmetal.cpython-36.zip").write_bytes(b"of another time")
    show = [sys.executable, "-I", "-v", agent, "--version"]
    cold = subprocess.run(show, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True)
    (tmp_path / installed.cache_name()).write_bytes(bundle.compiled(VERSION))
    warm = subprocess.run(show, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True)
    assert cold.stdout == warm.stdout
    assert f"_agent.command' # <zipimporter object \"{agent}/" in cold.stderr
    assert f"_agent.command' # <zipimporter object \"{tmp_path / installed.cache_name()}/" in warm.stderr


# What a task does on a tuned host: the cache runs from its open descriptor.
BUILT_BY_CACHE = f"""
import sys, zipimport
from hashlib import sha256
__loader__ = zipimport.zipimporter(sys.argv[1])
sys.path.insert(0, sys.argv[1])
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
try:
    print(sha256(bundle.agent_of(sys.argv[2], {VERSION!r})).hexdigest())
except NearmetalError as error:
    print(error)
"""


def _built_by_cache(folder: Path) -> str:
    with open(folder / installed.cache_name(), "rb") as cache:
        command = [
            sys.executable,
            "-I",
            "-c",
            BUILT_BY_CACHE,
            f"/proc/self/fd/{cache.fileno()}",
            str(folder.parents[3]),
        ]
        passed = {"pass_fds": [cache.fileno()]}
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, **passed).stdout.strip()


def test_the_cache_gives_the_agent_to_a_timer_as_it_is_installed(tmp_path: Path) -> None:
    """A network change of a tuned host arms the dead-man timer, which starts a copy of the agent."""
    folder = tmp_path / installed.FOLDER.strip("/")
    folder.mkdir(parents=True)
    for path in (folder, *list(folder.parents)[:3]):
        path.chmod(0o755)
    (folder / installed.cache_name()).write_bytes(bundle.compiled(VERSION))
    gone = "the agent was removed or replaced while it ran: run again"
    assert _built_by_cache(folder) == gone
    agent = folder / "nearmetal.pyz"
    agent.write_bytes(bundle.build(VERSION))
    agent.chmod(0o644)
    assert _built_by_cache(folder) == hashlib.sha256(agent.read_bytes()).hexdigest()
    agent.chmod(0o666)
    assert _built_by_cache(folder) == gone
    agent.chmod(0o644)
    agent.write_bytes(bundle.build(VERSION).replace(b" agent ", b" agent 9", 1))
    assert _built_by_cache(folder) == gone


@pytest.mark.parametrize(
    ("room", "registered", "others"),
    [
        ("_concerns", CONCERNS, {"__init__", "registry"}),
        ("_workloads", WORKLOADS, {"__init__", "registry", "common", "workload"}),
        ("_programs", _FILES, {"__init__", "registry", "program", "without_wishes"}),
    ],
)
def test_what_is_loaded_by_its_name_is_registered(room: str, registered: Mapping[str, Any], others: Set[str]) -> None:
    present = {path.stem for path in (ROOT / "plugins/module_utils" / room).iterdir() if path.name != "__pycache__"}
    assert present == {*registered, *others}


def _absent(sources: Mapping[str, bytes]) -> Iterator[str]:
    """What files of an archive import that isn't in it."""
    for name, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.level:
                place = Path(name).parents[node.level - 1].joinpath(*(node.module or "").split("."))
                for alias in node.names:
                    # From a package without code only modules can be imported.
                    needed = place if sources.get(f"{place}/__init__.py") else place / alias.name
                    if not {f"{place}.py", f"{needed}.py", f"{needed}/__init__.py"} & sources.keys():
                        yield f"{name}: {needed}"


@pytest.mark.parametrize("measuring", [False, True])
def test_an_agent_has_all_that_it_imports(measuring: bool) -> None:
    with zipfile.ZipFile(io.BytesIO(bundle.build(VERSION, measuring))) as archive:
        assert list(_absent({name: archive.read(name) for name in archive.namelist()})) == []


# What prove does on a host that gets the agent from it.
INSTALLED_BY_PROVE = f"""
import sys, zipimport
__loader__ = zipimport.zipimporter(sys.argv[1])
sys.path.insert(0, sys.argv[1])
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
sys.stdout.buffer.write(bundle.build({VERSION!r}))
"""


def test_what_measures_is_sent_and_never_installed(tmp_path: Path) -> None:
    installed_agent, sent = bundle.build(VERSION), bundle.build(VERSION, measuring=True)
    (tmp_path / "sent.pyz").write_bytes(sent)
    command = [sys.executable, "-I", "-c", INSTALLED_BY_PROVE, tmp_path / "sent.pyz"]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == installed_agent
    added = set(_entries(sent)) - set(_entries(installed_agent))
    assert {name.split("/")[5] for name in added} == {"_benchmark", "_profile", "_prove", "_rollout"}
    assert not any("_cloud" in name for name in _entries(sent))


def _entries(agent: bytes) -> List[str]:
    with zipfile.ZipFile(io.BytesIO(agent)) as archive:
        return archive.namelist()


def test_the_version_is_galaxys() -> None:
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == VERSION
