# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Python of a simulated host reads when it starts: modules that run in it find that host's fake kernel.

The collection has no option for this and needs none: its modules call WritableHost() and
Host(), and here these are the files below NEARMETAL_SIMULATED.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, List, Optional, Sequence

import compiled_once

UTILS = "ansible_collections.nearmetal.ec2.plugins.module_utils"
# Where versions before this one have WritableHost.
PREVIOUS_HOST = f"{UTILS}._engine.host"
ROOT = os.environ["NEARMETAL_SIMULATED"]


class _Patched(Loader):
    """Loads a module as its own loader does, then puts the fake kernel in."""

    def __init__(self, inner: Any, name: str) -> None:
        self._own = inner
        self._name = name

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        created: Optional[ModuleType] = self._own.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        if self._name.endswith("._facts.host"):
            vars(module)["Host"].__init__.__defaults__ = (ROOT,)
        elif self._name.endswith("._host.installed"):
            vars(module)["opened"].__defaults__ = (ROOT,)
        else:
            vars(module)["WritableHost"].__new__ = _fake
        if self._name == PREVIOUS_HOST:
            sys.modules[f"{UTILS}._host"] = ModuleType(f"{UTILS}._host")
            sys.modules[f"{UTILS}._host.host"] = module


class _Finder(MetaPathFinder):
    _names = (f"{UTILS}._facts.host", f"{UTILS}._host.host", f"{UTILS}._host.installed", PREVIOUS_HOST)
    _busy = False

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Optional[ModuleSpec]:
        """Only for the modules that know hosts, and not while looking for them."""
        if name not in self._names or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is not None:
            spec.loader = _Patched(spec.loader, name)
        return spec


class _Before(List[Any]):
    """Finders of which the first stays the first, because Mitogen puts its own before all."""

    def insert(self, place: Any, finder: Any) -> None:
        """Insert a finder, but not as the first."""
        super().insert(max(place, 1), finder)


def _fake(kind: Any, *arguments: Any) -> Any:
    """WritableHost() without a root is the simulated host; with one it is the host at that root."""
    from tests.support.fake_kernel import FakeKernel

    if arguments or kind.__name__ != "WritableHost":
        return object.__new__(kind)

    class Simulated(FakeKernel):
        """The simulated host of this Python; its user is root, or has become root."""

        def __init__(self) -> None:
            super().__init__(Path(ROOT), {})
            user = os.environ.get("NEARMETAL_USER", "root" if os.geteuid() == 0 else "somebody")
            self.root_user = os.environ.get("NEARMETAL_BECAME", user) == "root"
            self.left = int(os.environ.get("NEARMETAL_DIES_AT", "0"))

        def write_value(self, path: str, text: str) -> None:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            super().write_value(path, text)

    return object.__new__(Simulated)


compiled_once.install()
sys.executable = os.environ["NEARMETAL_PYTHON"]  # an agent that a module runs finds the same host
sys.meta_path = _Before([_Finder(), *sys.meta_path])
