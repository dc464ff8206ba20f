# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a module's real main() in this process, against a fake kernel."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from dev.running import memory
from tests.support import simulated
from tests.support.fake_kernel import FakeKernel
from tests.support.sequences import promised

Main = Callable[[FakeKernel], None]

if "TMPDIR" not in os.environ:
    os.environ.update(memory.variables())
    tempfile.tempdir = None  # pytest has asked for it already


class Modules:
    """Calls main() with arguments and returns what it printed, as Ansible would read it."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, main: Main, host: FakeKernel, check: bool = False, **options: Any) -> Dict[str, Any]:
        # Tests for managed hosts share this file: they run where ansible-core isn't installed.
        from ansible.module_utils import _internal
        from ansible.module_utils.common import warnings
        from ansible.module_utils.testing import patch_module_args

        self._capsys.readouterr()  # earlier output of a command of the host
        arguments = patch_module_args({**options, "_ansible_check_mode": check})
        with pytest.MonkeyPatch.context() as patch:
            # As on a host, where a module's warnings are in its result, also after a test has loaded the controller.
            patch.setattr(_internal, "is_controller", False)
            patch.setattr(
                warnings, "_global_warnings", {}
            )  # each module on a host has a process, and so warnings, of its own
            with arguments, pytest.raises(SystemExit):
                main(host)
        result: Dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return result


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Modules:
    """Call a module's main()."""
    return Modules(capsys)


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty root, removed at once after the test; in memory where there is room for the largest recording."""
    folder = tempfile.mkdtemp(prefix="nearmetal-", dir=memory.variables(256 << 20).get("TMPDIR"))
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
def host_of(root: Path) -> Callable[[Mapping[str, str]], Host]:
    """Writes files by absolute path, "-> target" for a symbolic link, and gives the host that has them."""

    def build(files: Mapping[str, str]) -> Host:
        for name, content in files.items():
            path = root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith("-> "):
                path.symlink_to(content[3:])
            else:
                path.write_bytes(content.encode("utf-8", "surrogateescape"))
        return Host(str(root))

    return build


@pytest.fixture(scope="session", autouse=True)
def shared_payloads() -> None:
    """The simulated hosts of a session compile the agent once. Tests that are kept elsewhere name this fixture."""
    simulated.COMPILED.mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="session", autouse=True)
def check_mode_keeps_its_word() -> Iterator[None]:
    """Compare every run of these tests with its check."""
    yield from promised.compared()


@pytest.fixture
def fleet(tmp_path: Path) -> Any:
    """Hosts that are only variables."""
    # Needs Ansible, as above.
    from tests.support.fleet import Fleet

    return Fleet(tmp_path)
