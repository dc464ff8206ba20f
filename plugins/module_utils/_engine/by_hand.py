# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shell commands that set what levers set, or do what a plan does, for people to read. PRIVATE."""

from __future__ import annotations

import os
import shlex
from functools import singledispatch
from typing import Dict, List, Optional, Sequence, Tuple

from .._facts import boot, boot_shell, ethtool, hugetlbfs, irqbalance_process, nic, routes
from .._facts.native_files import PROGRAMS
from .._host.host import WritableHost
from .._levers.base import KernelFile, Lever, TableOfFiles
from .._levers.block import Scheduler
from .._levers.boot_arguments.lever import BootArguments
from .._levers.files import NativeFile, read_again
from .._levers.hugepages import Mount
from .._levers.irqbalance import IrqbalanceArguments, changed_text
from .._levers.nic_settings import DriverField, Queues, Sysfs
from .._levers.power import IdleDisabled, WordTable
from .._levers.registry import place_of
from .._levers.routing import Paths
from .._levers.smt import OfflineCpus
from .._levers.sys_files import DirtyLimit, StartsKhugepaged, Sysctl, writes
from .._plan import Value
from .._planning.unit import NAME as UNIT
from .._words import sentence
from .session import Outcome

# The option of the tool ethtool for the fields of a driver's table, and the fields that it sets by on and off.
_OPTIONS = {"network.rings": "-G", "network.coalesce": "-C", "network.offloads": "-K"}
_SWITCHES = ("adaptive_rx", "adaptive_tx", *ethtool.OFFLOADS)
_OF_UNIT = "# The unit that plans again at each boot and for new devices: only nearmetal itself installs it"
_NO_COMMAND = "# no command does this: only nearmetal itself writes it"


@singledispatch
def commands(place: Lever, value: Value) -> List[str]:
    """The commands that set the value there; empty where only nearmetal itself can set it."""
    return []


@commands.register(KernelFile)
def _kernel_file(place: KernelFile, value: Value) -> List[str]:
    return [_echo(place.path(), place.word(value))]


@commands.register(Sysctl)
def _sysctl(place: Sysctl, value: Value) -> List[str]:
    return [f"sysctl -w {place.where}={_quoted(value)}"]


@commands.register(DirtyLimit)
def _dirty_limit(place: DirtyLimit, value: Value) -> List[str]:
    return [f"sysctl -w {key}={number}" for key, number in writes(place.where, value)]


@commands.register(Scheduler)
def _scheduler(place: Scheduler, value: Value) -> List[str]:
    kept = place.requests_set()
    return [*_kernel_file(place, value), *(_kernel_file(place.requests(), kept) if kept is not None else ())]


@commands.register(StartsKhugepaged)
def _starts_khugepaged(place: StartsKhugepaged, value: Value) -> List[str]:
    kept = place.min_free().read() if value == "never" else None
    return [*_kernel_file(place, value), *(_sysctl(place.min_free(), kept) if kept is not None else ())]


@commands.register(TableOfFiles)
def _table_of_files(place: TableOfFiles, value: Value) -> List[str]:
    """A command for each word; of CPUs and domains it goes through all that get it."""
    paths = place.paths()
    loops: Dict[Tuple[str, str, str], List[object]] = {}
    for element, part in place.changes(paths, value).items():
        variable, path, item = "", paths[element], element
        if isinstance(place, (IdleDisabled, OfflineCpus)):
            variable, item = "cpu", element.rpartition("/")[2]
            path = path.replace(f"/cpu{item}/", "/cpu$cpu/")
        elif isinstance(place, WordTable):
            variable, path = "domain", path.replace(f"/{element}/", "/$domain/")
        loops.setdefault((place.word(part), variable, path), []).append(int(item) if variable == "cpu" else item)
    return [
        _echo_each(word, variable, items, path) if variable else _echo(path, word)
        for (word, variable, path), items in loops.items()
    ]


@commands.register(Sysfs)
def _sysfs(place: Sysfs, value: Value) -> List[str]:
    return [_echo(f"{place.require_nic().folder}/{place.file}", value)]


@commands.register(Queues)
def _queues(place: Queues, value: Value) -> List[str]:
    interface = place.require_nic()
    present = ethtool.channels(place.host, interface.name) or {}
    sides = f"combined {value}" if present.get("combined_max") else f"rx {value} tx {value}"
    return [f"ethtool -L {_quoted(interface.name)} {sides}"]


@commands.register(DriverField)
def _driver_field(place: DriverField, value: Value) -> List[str]:
    field = place.where.rpartition("/")[2]
    word = ("on" if value else "off") if field in _SWITCHES else value
    name = field.replace("_", "-") if field in ethtool.COALESCE else field
    return [f"ethtool {_OPTIONS[place.what]} {_quoted(place.require_nic().name)} {name} {word}"]


@commands.register(Paths)
def _paths(place: Paths, value: Value) -> List[str]:
    index, text = routes.looked_up(place.host, place.where)
    device, family, number = place.where.partition("/")[0], routes.family_of(text), routes.table(index)
    tool = "ip -6" if family == routes.IPV6 else "ip"
    if value == routes.MAIN:
        return [f"{tool} rule del from {text} priority {routes.PRIORITY}"]
    name = _quoted(nic.name_at(place.host, device) or device)
    rule = f"{tool} rule add from {text} lookup {number} priority {routes.PRIORITY} protocol kernel"
    parts = str(value).split(", ") if value != routes.NO_ROUTES else []
    return [rule, *(f"{tool} route replace {part} dev {name} table {number} proto kernel" for part in parts)]


@commands.register(BootArguments)
def _boot_arguments(place: BootArguments, value: Value) -> List[str]:
    provider = boot.observe(place.host).provider
    before = boot.read_record(place.host).arguments.get(place.where, "")
    after = str(place.remembered(value) or "")
    if provider == "bls":
        removed = [f"grubby --update-kernel=ALL --remove-args={_quoted(before)}"] if before else []
        return [*removed, f"grubby --update-kernel=ALL --args={_quoted(after)}"] if after else removed
    if provider not in boot_shell.SHELL or before or not after:
        return []  # of nearmetal's own text, which a reader can't edit by one command
    shell = boot_shell.SHELL[provider]
    line = _quoted(boot_shell.append((after,)).strip())
    made = f"{shell.maker} -o {boot.config_path(place.host, provider)}"
    return [f"mkdir -p {os.path.dirname(shell.by_hand)}", f"echo {line} >> {shell.by_hand}", made]


@commands.register(NativeFile)
def _native_file(place: NativeFile, value: Value) -> List[str]:
    text = None if value is None else str(value)
    again = read_again(place.where)
    made = _file(place.where, text, "755" if text is not None and place.where in PROGRAMS else "")
    return [*made, " ".join(again)] if again else made


@commands.register(IrqbalanceArguments)
def _irqbalance(place: IrqbalanceArguments, value: Value) -> List[str]:
    text = changed_text(place, None if value is None else str(value))
    if text is None:
        return []
    restart = [f"systemctl restart {irqbalance_process.UNIT}"] if place.restart else []
    return [*_file(place.where, text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")), *restart]


@commands.register(Mount)
def _mount(place: Mount, value: Value) -> List[str]:
    name = hugetlbfs.unit_of(place.where)
    unit = f"{hugetlbfs.FOLDER}/{name}"
    if value is None:
        return [f"systemctl disable --now {_quoted(name)}", f"rm -f {_quoted(unit)}", "systemctl daemon-reload"]
    options = str(place.remembered(value))
    made = _file(unit, hugetlbfs.unit_text(place.where, options, made=not place.host.exists(place.where)))
    return [*made, "systemctl daemon-reload", f"systemctl enable --now {_quoted(name)}"]


def _quoted(text: object) -> str:
    """A text as one word of the shell."""
    return shlex.quote(str(text))


def _echo(path: str, text: object) -> str:
    """The command that writes a value to a kernel file."""
    return f"echo {_quoted(text)} > {_quoted(path)}"


def _echo_each(text: object, variable: str, words: Sequence[object], path: str) -> str:
    """The command that writes one value to several kernel files; `path` names the variable of the loop."""
    if len(words) == 1:
        return _echo(path.replace(f"${variable}", str(words[0])), text)
    return f"for {variable} in {_listed(words)}; do echo {_quoted(text)} > {path}; done"


def _listed(words: Sequence[object]) -> str:
    """The words of a loop; many numbers in a row by their first and last."""
    if len(words) > 4 and isinstance(words[0], int) and list(words) == list(range(words[0], words[0] + len(words))):
        return f"$(seq {words[0]} {words[-1]})"
    return " ".join(map(str, words))


def _file(path: str, text: Optional[str], mode: str = "") -> List[str]:
    """The commands that write a file with this text, or remove it."""
    if text is None:
        return [f"rm -f {_quoted(path)}"]
    mark = "EOF"
    while mark in text.splitlines():
        mark += "_"
    end = "" if text.endswith("\n") else "\n"
    made = [
        f"mkdir -p {_quoted(os.path.dirname(path))}",
        f"cat > {_quoted(path)} <<'{mark}'\n{text}{end}{mark}",
    ]
    return [*made, f"chmod {mode} {_quoted(path)}"] if mode else made


def script(host: WritableHost, outcomes: Sequence[Outcome]) -> List[str]:
    """The lines of a shell script for a plan that hasn't been carried out, each step below its reason.

    A concern with an error is left out, because a run doesn't start it.
    """
    lines: List[str] = []
    for outcome in outcomes:
        actions = () if outcome.error else outcome.plan.actions
        if actions and outcome.name == UNIT:
            lines.append(_OF_UNIT)
            continue
        for action in actions:
            name = " ".join(filter(None, (f"{action.concern}.{action.knob}", action.where)))
            lines.append(f"# {sentence(f'{name}: {action.reason}')}")
            ways = commands(place_of(host, action.key), action.after)
            lines += [line for command in ways for line in command.splitlines()] or [_NO_COMMAND]
    return lines
