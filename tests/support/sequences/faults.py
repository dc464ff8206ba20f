# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that dies at one of its writes, or whose writes fail for a while."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, TypeVar

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers import unit
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.boot_arguments import swap

from tests.support.fake_kernel import FakeKernel

Result = TypeVar("Result")
# The modules of the engine that change files by themselves.
_WRITERS = (store, swap, unit)
_CHANGING = ("rename", "unlink", "link", "symlink", "mkdir", "rmdir", "fsync")


class Killed(BaseException):
    """SIGKILL, the OOM killer or a power cut: the run does nothing after it."""


class Writes:
    """Counts the writes to the host, and makes some of them fail."""

    def __init__(self, host: FakeKernel, fault: Optional[Mapping[str, Any]]) -> None:
        self._host = host
        self._fault = fault or {"kind": ""}
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """While this runs, all writes of the host are counted."""
        host, kind = self._host, type(self._host)
        orders = ("write_value", "set_driver", "command", "output")
        for name in orders:
            wrapper = self._command if name in ("command", "output") else self._order
            real = getattr(kind, name).__get__(host)
            setattr(host, name, partial(wrapper, real))
        for module in _WRITERS:
            vars(module)["os"] = _Os(self)
        try:
            yield
        finally:
            for module in _WRITERS:
                vars(module)["os"] = os
            for name in orders:
                delattr(host, name)

    def look(self, act: Callable[[], Result]) -> Result:
        """A file opened for reading: with `reads` it fails like the writes around it."""
        if self._fault.get("reads"):
            self._fail()
        return act()

    def step(self, act: Callable[[], Result]) -> Result:
        """One write."""
        self.count += 1
        fault = self._fault
        if fault["kind"] == "kill" and self.count == fault["at"]:
            if fault["after"]:
                act()
            raise Killed
        self._fail()
        return act()

    def _fail(self) -> None:
        fault = self._fault
        if fault["kind"].startswith("E") and fault["at"] <= self.count < fault["at"] + fault["length"]:
            raise OSError(getattr(errno, fault["kind"]), os.strerror(getattr(errno, fault["kind"])))

    def _order(self, real: Callable[..., None], *words: Any) -> None:
        self.step(partial(real, *words))

    def _command(self, real: Callable[..., Any], argv: Sequence[str], timeout: float = 60) -> Any:
        try:
            return self.step(partial(real, argv, timeout))
        except OSError as error:
            raise NearmetalError(f"{argv[0]} failed with code 1: {error.strerror}") from None


class _Os:
    """The module os, with its file-changing calls counted."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name in _CHANGING:
            return lambda *words, **named: self._writes.step(partial(real, *words, **named))
        if name == "open":
            return self._open
        return real

    def _open(self, path: str, flags: int, *words: Any, **named: Any) -> int:
        opened = partial(os.open, path, flags, *words, **named)
        if flags & os.O_CREAT:
            return self._writes.step(opened)
        return opened() if flags & os.O_DIRECTORY else self._writes.look(opened)
