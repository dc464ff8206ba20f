# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of SMT: the kernel's own control, and single CPUs where it has none. PRIVATE to the collection."""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, List, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import smt
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import CPU
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import (
    SetValues,
    demand_no_place,
    echo_each,
    impossible,
    put,
    unwritable,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.capabilities import (
    Choosing,
    ElementSet,
    Hiding,
    KernelValue,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cpulist
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value


class SmtControl(KernelValue, Hiding, Choosing):
    """smt/control, by which the kernel takes all second threads offline or online."""

    disruptive = True

    def __init__(self, what: str) -> None:
        super().__init__(what, smt.CONTROL, r"on|off")

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        return smt.kernel_choice(host)

    def hidden(self, value: Value) -> AbstractSet[str]:
        return {"second threads"} if value == "off" else set()


class OfflineValues(SetValues):
    """A set of offline CPUs, as a kernel list."""

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        offline = {str(cpu) for cpu in cpulist.parse(str(value or ""))}
        return {cpu: "offline" if cpu in offline else "online" for cpu in offline.union(names)}

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        words = {**self.elements(value), **elements}
        return cpulist.render(int(cpu) for cpu, word in words.items() if word == "offline")


class OfflineCpus(ElementSet, Hiding, Choosing):
    """The set of offline CPUs; written CPU by CPU through the files `online`."""

    values = OfflineValues()

    disruptive = True

    def check(self, where: str, value: Value) -> None:
        demand_no_place(self, where)
        if not isinstance(value, str):
            raise impossible(self, value)
        cpulist.parse(value)

    def read(self, host: WritableHost, where: str) -> Value:
        return smt.offline(host)

    def present_elements(self, host: WritableHost, where: str) -> Dict[str, Value]:
        offline = smt.offline(host)
        present = cpulist.parse(host.line(f"{CPU}/present") or "")
        return self.values.elements(offline, map(str, present)) if offline is not None else {}

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        before, after = (set(cpulist.parse(str(text or ""))) for text in (smt.offline(host), value))
        for cpu in sorted(before ^ after):
            digit, word = ("0", "offline") if cpu in after else ("1", "online")
            put(host, f"{CPU}/cpu{cpu}/online", digit, f"to take CPU {cpu} {word}")

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        before, after = (set(cpulist.parse(str(text or ""))) for text in (smt.offline(host), value))
        words = {"0": sorted(after - before), "1": sorted(before - after)}
        return [echo_each(digit, "cpu", cpus, f"{CPU}/cpu$cpu/online") for digit, cpus in words.items() if cpus]

    def obstacle(self, host: WritableHost, where: str) -> str:
        return unwritable(host, f"{CPU}/cpu{max(cpulist.parse(smt.removable(host)) or (0,))}/online")

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        return smt.kernel_offline(host)

    def hidden(self, value: Value) -> AbstractSet[str]:
        return self.values.elements(value).keys()


LEVERS = (
    SmtControl("smt.control"),
    OfflineCpus("smt.offline"),
)
