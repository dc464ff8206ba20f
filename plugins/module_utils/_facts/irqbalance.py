# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about irqbalance: whether it runs, with which arguments, and where it reads them. PRIVATE.

Its own unit names the file and the variable in it: they differ between distributions,
and a word in the wrong one is silently ignored.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

from .._parse import environment_file
from . import irqbalance_process
from .host import Host
from .irqbalance_process import PROGRAMS, UNIT
from .systemd import UNIT_FOLDERS

FILES = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance", "/etc/conf.d/irqbalance")
OPTIONS = ("banmod", "policyscript")


class IrqbalanceFacts(NamedTuple):
    """The daemon that moves interrupts. The only key of the tables is the file that its unit reads."""

    running: Optional[Tuple[str, ...]]  # the arguments of the process; None: it doesn't run
    options: Tuple[str, ...]  # those of OPTIONS that this version knows
    file: Optional[str]  # with the arguments that the unit reads; None: there is none that could be changed
    variable: Optional[str]
    arguments: Mapping[str, str]  # file → the variable's text, with its quotes; empty when the file doesn't set it
    inherited: str  # the variable's text in an earlier file
    in_force: Mapping[str, str]  # file → the variable's text, when the process was started with it
    confined: bool  # SELinux keeps it from starting a script


def observe(host: Host) -> IrqbalanceFacts:
    """Read the unit, the file that it reads, and the process."""
    process = irqbalance_process.arguments(host)
    file, variable, default = source(host)
    text = environment_file.assignment(host.text(file, 65536) or "", variable) if file and variable else None
    raw = default if text is None else text
    plain = words(raw or "")
    loaded = process is not None and plain is not None and set(plain) <= set(process)
    return IrqbalanceFacts(
        running=process,
        options=_options(host),
        file=file,
        variable=variable,
        arguments={file: text} if file and text is not None else {},
        inherited=default or "",
        in_force={file: raw or ""} if file and loaded else {},
        confined=host.line("/sys/fs/selinux/enforce") == "1",
    )


def source(host: Host) -> Tuple[Optional[str], Optional[str], Optional[str]]:
    """The file below /etc and the variable that its unit reads, and the text that an earlier file gives it."""
    text = next((unit for folder in UNIT_FOLDERS for unit in [host.text(f"{folder}/{UNIT}", 65536)] if unit), "")
    for folder in reversed(UNIT_FOLDERS):
        for name in host.names(f"{folder}/{UNIT}.d"):
            text += "\n" + (host.text(f"{folder}/{UNIT}.d/{name}", 65536) or "")
    files, variable = environment_file.reads(text)
    editable = [path for path in files if path in FILES]
    if not editable or variable is None or files[-1] != editable[-1]:
        return None, None, None
    earlier = [environment_file.assignment(host.text(path, 65536) or "", variable) for path in files[:-1]]
    return editable[-1], variable, next((raw for raw in reversed(earlier) if raw is not None), None)


# The words of a variable's text, and the text with one more, for planners, which import no parser.
words, extended = environment_file.words, environment_file.extended


def _options(host: Host) -> Tuple[str, ...]:
    """The options that the program contains: it wouldn't start with an unknown one."""
    program = next((content for path in PROGRAMS for content in [host.raw(path)] if content), b"")
    return tuple(option for option in OPTIONS if option.encode() in program)
