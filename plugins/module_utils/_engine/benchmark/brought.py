# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that a run brings to a host, and takes away again, also if it was killed. PRIVATE to the collection.

The packages are recorded before they are installed, and removed at the run's end, or by the next run after a kill.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks import packages
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import Tool
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.packages import MANAGERS, Brought, Manager
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.benchmark import refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.benchmark.session import finished, program_path
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store, walk
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import counted, plain

RECORD = f"{store.DATA}/benchmark_packages"
LOCK = f"{store.RUN}/benchmark_lock"
_TRIES, _PAUSE = 12, 5.0  # of a removal while another program has the package manager; seconds between them


def missing(host: WritableHost, tools: Sequence[Tool]) -> Tuple[Tool, ...]:
    """The tools that aren't installed, and that a package of the distribution has."""
    family = refusals.family(host) or ""
    return tuple(tool for tool in tools if not refusals.program_of(tool) and family in tool.packages)


class Installation:
    """The packages that were installed for a run."""

    def __init__(self, packages: Tuple[str, ...] = ()) -> None:
        self.packages = packages
        self.not_removed = ""  # why some of it is still there after the run


@contextmanager
def installation(host: WritableHost, tools: Sequence[Tool], install: bool) -> Iterator[Installation]:
    """Have the tools' packages installed, if they may be, and yield what was installed.

    What an earlier run left is taken away first. Raises NearmetalError.
    """
    absent = missing(host, tools) if install else ()
    if not absent and not host.exists(RECORD):
        yield Installation()
        return
    with _lock(host) as lock:
        if lock is not None:
            _take_away(host, lock)
            absent = missing(host, tools) if install else ()
        elif absent:
            raise NearmetalError(
                "another benchmark on this host has installed packages and is still running: run again when it has"
                " ended"
            )
        if not absent or lock is None:
            yield Installation()
            return
        installation = Installation(_bring(host, absent, lock))
        try:
            yield installation
        finally:
            # What was measured counts more: the record stays, and the next run tries again.
            try:
                _take_away(host, lock)
            except NearmetalError as error:
                installation.not_removed = str(error)


class InstallPlan(NamedTuple):
    """What an install would bring."""

    manager: Manager
    tool_packages: Tuple[str, ...]  # the packages with the tools
    packages: Tuple[str, ...]  # all that would come; where the manager isn't asked, those with the tools
    before: Mapping[str, str]  # what is installed, as `packages.installed` has it


def demand(host: WritableHost, tools: Sequence[Tool], lock: Optional[int] = None) -> InstallPlan:
    """What an install of these tools would bring; changes nothing. Raises NearmetalError for what keeps it away."""
    family = refusals.family(host) or ""
    of_service = [tool.packages[family] for tool in tools if tool.of_service]
    if of_service:
        raise NearmetalError(
            f"benchmark.install doesn't install {of_service[0]}, because the package has a service, and removing the"
            f" package would delete the service's data: install {of_service[0]} yourself"
        )
    tool_packages = tuple(sorted({tool.packages[family] for tool in tools}))
    manager = packages.manager_of(program_path)
    before = packages.installed(manager, _run(manager.present, lock))
    try:
        new_packages = packages.announced(_run((*manager.ask, *tool_packages), lock)) if manager.ask else tool_packages
        _demand_new(new_packages, before)
    except NearmetalError as error:
        raise _not_installed(manager, tool_packages, error) from None
    return InstallPlan(manager, tool_packages, new_packages, before)


def _take_away(host: WritableHost, lock: int) -> None:
    """Remove what the record on the host names, and the record. Raises NearmetalError, and keeps the record."""
    data = store.read_file(host, RECORD)
    if data is None:
        return
    try:
        brought = packages.from_text(data.decode("utf-8", "replace"))
        (manager,) = (manager for manager in MANAGERS if manager.program == brought.manager)
        present = packages.brought_packages(brought, packages.installed(manager, _run(manager.present, lock)))
    except NearmetalError as error:
        raise NearmetalError(
            f"{RECORD} names packages that a benchmark installed, but {error}: remove the packages that you don't"
            " need, and then the file"
        ) from None
    if present:
        try:
            _remove(manager, present, lock)
        except NearmetalError as error:
            names = ", ".join(present[:5]) + (", …" if len(present) > 5 else "")
            raise NearmetalError(
                f"the host still has {counted(len(present), 'package')} of the benchmark ({names}), because {error};"
                " the next benchmark tries again to remove what is left"
            ) from None
    store.remove_file(host, RECORD)
    store.remove_empty_data(host)


def _remove(manager: Manager, names: Sequence[str], lock: int) -> None:
    """Remove packages, and wait for another program that uses the package manager."""
    for tries_left in reversed(range(_TRIES)):
        try:
            _run((*manager.remove, *names), lock)
            return
        except NearmetalError as error:
            if not tries_left or "lock" not in str(error):
                raise
        time.sleep(_PAUSE)


def _bring(host: WritableHost, tools: Sequence[Tool], lock: int) -> Tuple[str, ...]:
    manager, tool_packages, new_packages, before = demand(host, tools, lock)
    record = Brought(manager.program, new_packages, frozenset(before), complete=False)
    store.replace_file(host, RECORD, packages.to_text(record).encode(), 0o600, 0o700)
    try:
        _run((*manager.install, *new_packages), lock)
    except NearmetalError as error:
        with suppress(NearmetalError):  # the record stays
            _take_away(host, lock)
        raise _not_installed(manager, tool_packages, error) from None
    now = packages.installed(manager, _run(manager.present, lock))
    if manager.resolve:
        names = _run((*manager.resolve, *new_packages), lock).split()
        record = record._replace(packages=packages.brought_by(before, now, names))
    record = record._replace(complete=True)
    store.replace_file(host, RECORD, packages.to_text(record).encode(), 0o600, 0o700)
    return packages.brought_packages(record, now)


def _not_installed(manager: Manager, names: Sequence[str], error: NearmetalError) -> NearmetalError:
    return NearmetalError(f"{' and '.join(names)} can't be installed: {error}; look at {manager.advice}")


def _demand_new(new_packages: Sequence[str], before: Mapping[str, str]) -> None:
    """Raises NearmetalError for a package of which the host still has settings, which its removal would delete."""
    old = [name for name in new_packages if name in before]
    if old:
        raise NearmetalError(
            f"{old[0]} was installed on this host earlier, and its settings are still there; removing it after the"
            " benchmark would delete them: purge the package first, or install it yourself"
        )


@contextmanager
def _lock(host: WritableHost) -> Iterator[Optional[int]]:
    """The descriptor of the lock, which the package manager keeps with it; None while another run has it."""
    folder, name = os.path.split(LOCK)
    try:
        with store.directory(host, folder, create=0o755) as parent:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent)
    except OSError as error:
        raise walk.explain(LOCK, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock: Optional[int] = descriptor
    except OSError:
        lock = None
    try:
        yield lock
    finally:
        os.close(descriptor)


def _run(argv: Sequence[str], lock: Optional[int]) -> str:
    """Run a program of the package manager to its end: one that is killed half-way leaves a broken host.

    It goes on if this process is killed, and has the lock until its end.
    """
    program = finished(argv, {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}, lock)
    if program.returncode:
        raise NearmetalError(
            f"{' '.join(argv[:2])} failed with code {program.returncode}: {_reason(program.stderr, program.stdout)}"
        )
    return program.stdout.decode("utf-8", "replace")


def _reason(errors: bytes, output: bytes) -> str:
    lines: List[str] = []
    for stream in (errors, output):
        lines = lines or [line for line in stream.decode("utf-8", "replace").splitlines() if line.strip()]
    said: Optional[str] = next((line for line in lines if line.startswith("E: ")), lines[-1] if lines else None)
    return plain(said) if said else "no message"
