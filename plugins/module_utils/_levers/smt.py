# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of SMT: the kernel's own control, and single CPUs where it has none. PRIVATE to the collection."""

from __future__ import annotations

import errno
import os
from typing import Dict, Iterable, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import smt
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import CPU
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import KernelValue, Table
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cpulist
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value


class SmtControl(KernelValue):
    """smt/control: the kernel takes every second thread off and on by itself."""

    def __init__(self, what: str) -> None:
        super().__init__(what, smt.CONTROL, r"on|off")

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        return smt.kernel_choice(host)


class OfflineCpus(Table):
    """The set of offline CPUs, one after the other through their `online` files; the value is a kernel list."""

    partial = False

    def check(self, where: str, value: Value) -> None:
        if where:
            raise NearmetalError(f"{self.what} has no place {where!r}")
        if not isinstance(value, str):
            raise NearmetalError(f"{self.what} can't be {value!r}")
        cpulist.parse(value)

    def read(self, host: WritableHost, where: str) -> Value:
        return smt.offline(host)

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        gone = {str(cpu) for cpu in cpulist.parse(str(value or ""))}
        return {cpu: "offline" if cpu in gone else "online" for cpu in gone.union(names)}

    def seen(self, host: WritableHost, where: str) -> Dict[str, Value]:
        now = smt.offline(host)
        present = cpulist.parse(host.line(f"{CPU}/present") or "")
        return self.elements(now, map(str, present)) if now is not None else {}

    def composed(self, elements: Mapping[str, Value], others: Value) -> Value:
        words = {**self.elements(others), **elements}
        return cpulist.render(int(cpu) for cpu, word in words.items() if word == "offline")

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        now, after = (set(cpulist.parse(str(text or ""))) for text in (smt.offline(host), value))
        for cpu in sorted(now ^ after):
            path = f"{CPU}/cpu{cpu}/online"
            try:
                host.write_value(path, "0\n" if cpu in after else "1\n")
            except OSError as error:
                name = errno.errorcode.get(error.errno or 0, "error")
                raise NearmetalError(
                    f"the kernel refused to take CPU {cpu} {'offline' if cpu in after else 'online'}"
                    f" ({name}: {os.strerror(error.errno or 0)})"
                ) from None

    def obstacle(self, host: WritableHost, where: str) -> str:
        if host.writable(f"{CPU}/cpu{max(cpulist.parse(smt.removable(host)) or (0,))}/online"):
            return ""
        return f"{CPU} can't be written here (a container, or a read-only /sys): run on the host itself"

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        return smt.kernel_offline(host)


LEVERS = (
    SmtControl("smt.control"),
    OfflineCpus("smt.offline"),
)
