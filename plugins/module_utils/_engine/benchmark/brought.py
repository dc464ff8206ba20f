# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that a run brings to a host, and takes away again, also if it was killed. PRIVATE to the collection.

What comes is written down before it comes. The run's end takes it away; after a run that was killed, the next does.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from contextlib import contextmanager
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks import packages
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import Tool
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.packages import APT, MANAGERS, Brought, Manager
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.benchmark import refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.benchmark.session import PATH, found
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store, walk
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

RECORD = f"{store.DATA}/benchmark_packages"
LOCK = f"{store.RUN}/benchmark_lock"
_SERVICES = "/run/systemd/system"  # of this boot alone
_RELOAD = ("systemctl", "daemon-reload")


def missing(host: WritableHost, tools: Sequence[Tool]) -> Tuple[Tool, ...]:
    """The tools that aren't installed, and that a package of the distribution has."""
    family = refusals.family(host) or ""
    return tuple(tool for tool in tools if not refusals.program_of(tool) and family in tool.packages)


@contextmanager
def during(host: WritableHost, tools: Sequence[Tool], install: bool) -> Iterator[Tuple[str, ...]]:
    """Have the tools' packages installed, if they may be, and yield the names of those that came.

    What an earlier run left is taken away first. Raises NearmetalError.
    """
    absent = missing(host, tools) if install else ()
    if not absent and not host.exists(RECORD):
        yield ()
        return
    with _lock(host) as alone:
        if alone:
            take_away(host)
            absent = missing(host, tools) if install else ()
        elif absent:
            raise NearmetalError(
                "another benchmark on this host has installed packages and is still running: run again when it has"
                " ended"
            )
        if not absent:
            yield ()
            return
        try:
            yield _bring(host, absent)
        finally:
            take_away(host)


def take_away(host: WritableHost) -> None:
    """Remove what the record on the host names, and the record. Raises NearmetalError, and keeps the record."""
    data = store.read_file(host, RECORD)
    if data is None:
        return
    try:
        brought = packages.from_text(data.decode("utf-8", "replace"))
    except NearmetalError as error:
        raise NearmetalError(
            f"{RECORD} names packages that a benchmark installed, but {error}: take away what you don't need, and"
            " remove the file"
        ) from None
    (manager,) = (manager for manager in MANAGERS if manager.program == brought.manager)
    left = packages.ours(brought, packages.installed(manager, _run(manager.present)))
    if left:
        try:
            _run((*manager.remove, *left))
        except NearmetalError as error:
            raise NearmetalError(
                f"{len(left)} packages of the benchmark are left on the host ({', '.join(left[:5])}), because {error};"
                " the next benchmark tries again"
            ) from None
    if brought.masked and host.booted():
        for service in brought.masked:
            store.remove_file(host, f"{_SERVICES}/{service}.service")
        _run(_RELOAD)
    store.remove_file(host, RECORD)
    store.remove_empty_data(host)


def _bring(host: WritableHost, tools: Sequence[Tool]) -> Tuple[str, ...]:
    family = refusals.family(host) or ""
    wanted = sorted({tool.packages[family] for tool in tools})
    manager = packages.manager_of(found)
    before = packages.installed(manager, _run(manager.present))
    try:
        coming = packages.announced(_run((*manager.ask, *wanted))) if manager.ask else tuple(wanted)
        _demand_new(coming, before)
        masked = _masked(host, manager, tools)
        record = Brought(manager.program, coming, frozenset(before), masked)
        store.replace_file(host, RECORD, packages.to_text(record).encode(), 0o600, 0o700)
        _mask(host, masked)
        _run((*manager.install, *coming))
    except NearmetalError as error:
        raise NearmetalError(f"{' and '.join(wanted)} can't be installed: {error}; look at {manager.advice}") from None
    return packages.ours(record, packages.installed(manager, _run(manager.present)))


def _demand_new(coming: Sequence[str], before: Mapping[str, str]) -> None:
    """Raises NearmetalError for a package that couldn't be taken away without more of the host's own."""
    old = [name for name in coming if name in before]
    if old:
        raise NearmetalError(
            f"{old[0]} was on the host earlier, and its settings still are, which would go with it: purge it first, or"
            " install it yourself"
        )


def _masked(host: WritableHost, manager: Manager, tools: Sequence[Tool]) -> Tuple[str, ...]:
    """The services that Debian's packages would start: a server of theirs takes a port, and CPU time from the load."""
    if manager is not APT or not host.booted():
        return ()
    services = sorted({tool.service for tool in tools if tool.service})
    links = {service: host.real(f"{_SERVICES}/{service}.service") for service in services}
    return tuple(service for service, link in links.items() if not os.path.lexists(link))


def _mask(host: WritableHost, services: Sequence[str]) -> None:
    """What `systemctl mask --runtime` does, which refuses a service that isn't installed yet."""
    if not services:
        return
    try:
        with store.directory(host, _SERVICES) as folder:
            for service in services:
                os.symlink("/dev/null", f"{service}.service", dir_fd=folder)
    except OSError as error:
        raise walk.explain(_SERVICES, error) from None
    _run(_RELOAD)


@contextmanager
def _lock(host: WritableHost) -> Iterator[bool]:
    """Whether no other run that installs packages is alive, while this one holds the lock."""
    folder, name = os.path.split(LOCK)
    try:
        with store.directory(host, folder, create=0o755) as parent:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent)
    except OSError as error:
        raise walk.explain(LOCK, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except OSError:
        alone = False
    try:
        yield alone
    finally:
        os.close(descriptor)


def _run(argv: Sequence[str]) -> str:
    """Run a program of the package manager to its end: one that is killed half-way leaves a broken host."""
    settings = {"PATH": PATH, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}
    done = subprocess.run(
        list(argv),
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        check=False,
    )
    if done.returncode:
        raise NearmetalError(f"{' '.join(argv[:2])} failed with code {done.returncode}: {_reason(done)}")
    return done.stdout.decode("utf-8", "replace")


def _reason(done: "subprocess.CompletedProcess[bytes]") -> str:
    lines: List[str] = []
    for stream in (done.stderr, done.stdout):
        lines = lines or [line for line in stream.decode("utf-8", "replace").splitlines() if line.strip()]
    said: Optional[str] = next((line for line in lines if line.startswith("E: ")), lines[-1] if lines else None)
    return plain(said) if said else "no message"
