# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a distribution's packages are installed and taken away: what is run, and what its answers mean. Pure. PRIVATE."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, FrozenSet, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import json_text
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]{0,127}(:[a-z0-9]{1,16})?", re.ASCII)
_NEW = re.compile(r"^Inst (\S+) \(", re.ASCII | re.MULTILINE)
_CHANGED = re.compile(r"^(?:Inst (\S+) \[|Remv (\S+))", re.ASCII | re.MULTILINE)
_MOST_PACKAGES = 500  # that one install brings

Argv = Tuple[str, ...]


class Manager(NamedTuple):
    """One way to install packages."""

    program: str
    ask: Argv  # what an install would do, with the packages behind it; empty: it isn't asked
    install: Argv  # with the packages behind it
    present: Argv  # the packages that are installed, a line each
    remove: Argv  # with the packages behind it; it fails rather than take away another package
    resolve: Argv  # the names of the packages that have those behind it; empty: they have their own names
    advice: str  # when it doesn't know a package


_RPM = ("rpm", "-qa", "--qf", "%{NAME} %{INSTALLTID}\\n")
_PROVIDERS = ("rpm", "-q", "--qf", "%{NAME}\\n", "--whatprovides")
APT = Manager(
    "apt-get",
    ("apt-get", "install", "--simulate", "--yes", "--no-install-recommends"),
    ("apt-get", "install", "--yes", "--no-install-recommends", "--no-remove", "-o", "DPkg::Lock::Timeout=60"),
    ("dpkg-query", "--show", "--showformat", "${binary:Package} ${db:Status-Status}\\n"),
    ("dpkg", "--purge"),
    (),
    "`apt-get update`",
)
MANAGERS = (
    APT,
    Manager(
        "dnf",
        (),
        ("dnf", "install", "--assumeyes", "--setopt=install_weak_deps=False"),
        _RPM,
        ("rpm", "--erase"),
        _PROVIDERS,
        "`dnf repolist`",
    ),
    Manager("yum", (), ("yum", "install", "--assumeyes"), _RPM, ("rpm", "--erase"), _PROVIDERS, "`yum repolist`"),
    Manager(
        "zypper",
        (),
        ("zypper", "--non-interactive", "install", "--no-recommends"),
        _RPM,
        ("rpm", "--erase"),
        _PROVIDERS,
        "`zypper refresh`",
    ),
)


class Brought(NamedTuple):
    """What a run installs, as it is kept on the host until it has been taken away."""

    manager: str
    packages: Tuple[str, ...]  # all that come; of an install by rpm that isn't complete: those that were asked for
    before: FrozenSet[str]  # what was installed before
    complete: bool  # whether the install came to its end


def manager_of(find_program: Callable[[str], Any]) -> Manager:
    """The first way to install packages that a host has. Raises NearmetalError."""
    for manager in MANAGERS:
        if find_program(manager.program):
            return manager
    names = ", ".join(manager.program for manager in MANAGERS)
    raise NearmetalError(f"benchmark.install is true, and the host has none of {names}: install the tools yourself")


def announced(answer: str) -> Tuple[str, ...]:
    """The packages that an install would bring. Raises NearmetalError if it would change or remove others."""
    changed = [name for pair in _CHANGED.findall(answer) for name in pair if name]
    if changed:
        others = plain(", ".join(changed[:3]))
        raise NearmetalError(
            f"the install would also change or remove {others}, which couldn't be taken back: bring the host's packages"
            " up to date first, or install the tools yourself"
        )
    return checked(_NEW.findall(answer))


def checked(names: Sequence[Any]) -> Tuple[str, ...]:
    """Names of packages. Raises NearmetalError for anything else, which a command could take for an option."""
    if len(names) > _MOST_PACKAGES or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        raise NearmetalError("some of the names aren't names of packages")
    return tuple(names)


def installed(manager: Manager, answer: str) -> Mapping[str, str]:
    """Each package that is installed → the id of the transaction that brought it; apt-get has none."""
    pairs = [line.split() for line in answer.splitlines()]
    if manager is APT:
        # Also one that is half installed, and one of which only its settings are left.
        return {pair[0]: "" for pair in pairs if len(pair) == 2 and pair[1] != "not-installed"}
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def brought_packages(brought: Brought, now: Mapping[str, str]) -> Tuple[str, ...]:
    """Which of the packages that are installed now a run brought.

    Raises NearmetalError if an install by rpm was interrupted: nobody knows any more what it brought.
    """
    new = [name for name in now if name not in brought.before]
    if brought.manager == APT.program:
        # What apt-get calls libc6, dpkg-query may call libc6:amd64.
        return tuple(sorted(name for name in new if {name, name.split(":")[0]} & {*brought.packages}))
    if not brought.complete:
        raise NearmetalError(f"the install of {', '.join(brought.packages)} was interrupted")
    return tuple(sorted(name for name in new if name in brought.packages))


def brought_by(before: Mapping[str, str], now: Mapping[str, str], names: Sequence[str]) -> Tuple[str, ...]:
    """The new packages of the transactions of rpm that brought these; what was there before was only updated."""
    new = {package: number for package, number in now.items() if package not in before}
    ids = {new[package] for package in names if package in new}
    return tuple(sorted(package for package, number in new.items() if number in ids))


def to_text(brought: Brought) -> str:
    """The text that is kept on the host."""
    kept = {**brought._asdict(), "before": sorted(brought.before)}
    return json.dumps({"format": FORMAT, **kept}, sort_keys=True) + "\n"


def from_text(text: str) -> Brought:
    """What `to_text` wrote. Raises NearmetalError for anything else."""
    try:
        record: Dict[str, Any] = json_text.parse(text)
        if record["format"] != FORMAT or record["manager"] not in [manager.program for manager in MANAGERS]:
            raise NearmetalError("its format is of another version")
        before = record["before"]
        if not all(isinstance(name, str) for name in before):
            raise NearmetalError("it names no packages")
        return Brought(record["manager"], checked(record["packages"]), frozenset(before), record["complete"] is True)
    except (ValueError, KeyError, TypeError):
        raise NearmetalError("it isn't what nearmetal wrote") from None
