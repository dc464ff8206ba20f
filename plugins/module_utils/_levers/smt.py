# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of SMT: the kernel's own control, and single CPUs where it has none. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from typing import AbstractSet, Dict, Iterable, Mapping

from .._error import NearmetalError
from .._facts import smt, sys_files
from .._facts.topology import CPU
from .._host import store
from .._host.host import WritableHost
from .._parse import cpulist
from .._plan import Value
from .base import SetValues, TableOfFiles, put, refused, unwritable
from .sys_files import OneWord


class SmtControl(OneWord):
    """smt/control, by which the kernel takes all second threads offline or online.

    Up to Linux 6.16 `on` brings every CPU online, also a first thread that somebody took offline by hand
    (cpuhp_smt_enable() in kernel/cpu.c). Later kernels leave its whole core offline. Here each CPU comes online that
    `off` had taken offline, and no other.
    """

    disruptive = True
    hides = (("smt.offline", ""),)

    def write(self, value: Value) -> None:
        if value != "on":
            super().write(value)
            return
        before = smt.offline(self.host) or ""
        with suppress(NearmetalError):  # a full /run must not keep SMT off, and only a kill makes the file necessary
            store.replace_file(self.host, store.SMT_ON, f"{before}\n".encode(), mode=0o600, folder_mode=0o700)
        try:
            super().write(value)
        except NearmetalError:
            store.remove_file(self.host, store.SMT_ON)
            raise
        _complete(self.host, before)

    def choice(self) -> Value:
        return smt.kernel_choice(self.host)

    def hidden(self, value: Value) -> AbstractSet[str]:
        return {"second threads"} if value == "off" else set()


def complete_killed(host: WritableHost) -> None:
    """Complete what a run was doing that was killed while it switched SMT on."""
    try:
        _complete(host, host.line(store.SMT_ON) or "")
    except NearmetalError:  # the file waits for the next run; this one may have more important things to do
        return


def _complete(host: WritableHost, before: str) -> None:
    """Take CPUs offline again that were `before` SMT was switched on, and that aren't second threads."""
    earlier = set(cpulist.parse(before))
    if sys_files.SMT.read(host) == "on":
        for cpu in sorted(earlier.intersection(cpulist.parse(smt.offline(host) or ""))):
            _switch(host, cpu, online=True)  # only beside its siblings does it show whether it is the first of them
    back = sorted(earlier.difference(cpulist.parse(smt.offline(host) or "")))
    for cpu in [cpu for cpu in back if cpu == _first_of_core(host, cpu)]:
        _switch(host, cpu, online=False)
    store.remove_file(host, store.SMT_ON)


def _switch(host: WritableHost, cpu: int, online: bool) -> None:
    put(
        host, f"{CPU}/cpu{cpu}/online", "1" if online else "0", f"to take CPU {cpu} {'online' if online else 'offline'}"
    )


def _first_of_core(host: WritableHost, cpu: int) -> int:
    """The first online thread of the CPU's core; -1 where the kernel lists none."""
    return min(cpulist.parse(host.line(f"{CPU}/cpu{cpu}/topology/thread_siblings_list") or ""), default=-1)


class OfflineCpus(SetValues, TableOfFiles):
    """The set of offline CPUs."""

    disruptive = True

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        offline = {str(cpu) for cpu in cpulist.parse(str(value or ""))}
        return {cpu: "offline" if cpu in offline else "online" for cpu in offline.union(names)}

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        words = {**self.elements(value), **elements}
        return cpulist.render(int(cpu) for cpu, word in words.items() if word == "offline")

    def fits(self, where: str, value: Value) -> bool:
        return isinstance(value, str) and cpulist.parse(value) is not None

    def read(self) -> Value:
        return smt.offline(self.host)

    def present_elements(self) -> Dict[str, Value]:
        offline = smt.offline(self.host)
        present = cpulist.parse(self.host.line(f"{CPU}/present") or "")
        return self.elements(offline, map(str, present)) if offline is not None else {}

    def paths(self) -> Dict[str, str]:
        return {str(cpu): f"{CPU}/cpu{cpu}/online" for cpu in cpulist.parse(smt.removable(self.host))}

    def word(self, part: Value) -> str:
        return "0" if part == "offline" else "1"

    def refusal(self, error: OSError, name: str, part: Value, path: str) -> NearmetalError:
        return refused(error, f"to take CPU {name} {part}")

    def obstacle(self) -> str:
        return unwritable(self.host, f"{CPU}/cpu{max(cpulist.parse(smt.removable(self.host)) or (0,))}/online")

    def choice(self) -> Value:
        return smt.kernel_offline(self.host)

    def hidden(self, value: Value) -> AbstractSet[str]:
        return self.elements(value).keys()


LEVERS = (
    SmtControl(sys_files.SMT),
    OfflineCpus("smt.offline"),
)
