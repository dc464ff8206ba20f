# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of idle states and frequencies. PRIVATE to the collection."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import power, smt
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import CPU
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import (
    ElementSet,
    Lever,
    Table,
    demand_no_place,
    echo,
    echo_each,
    impossible,
    put,
    unwritable,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.capabilities import Disturbing, NamedByPath, Place
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cpulist
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value

_WORD = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)


def _is_offline(host: WritableHost, cpu: int) -> bool:
    return cpu in cpulist.parse(smt.offline(host) or "")


class _Placeless(Lever):
    """A lever with one value for the host, in a file of the CPUs' directories."""

    def check(self, where: str, value: Value) -> None:
        demand_no_place(self, where)
        if not self._fits(value):
            raise impossible(self, value)

    @abstractmethod
    def _fits(self, value: Value) -> bool:
        """Whether the lever can set such a value."""

    @abstractmethod
    def _sample_path(self, host: WritableHost) -> str:
        """A file that has to be writable."""

    def obstacle(self, host: WritableHost, where: str) -> str:
        return unwritable(host, self._sample_path(host))


class IdleDisabled(_Placeless, ElementSet):
    """The idle states that are disabled, and on which CPUs: state → kernel list. An element is state/CPU."""

    def _fits(self, value: Value) -> bool:
        if not isinstance(value, Mapping) or not 0 < len(value) <= 32:
            return False
        for state, cpus in value.items():
            if not power.STATE.fullmatch(state) or not isinstance(cpus, str):
                return False
            cpulist.parse(cpus)
        return True

    def _sample_path(self, host: WritableHost) -> str:
        return f"{CPU}/cpu{(power.idle_cpus(host) or [0])[0]}/cpuidle/state0/disable"

    def read(self, host: WritableHost, where: str) -> Value:
        return power.disabled(host) or None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        wanted: Dict[str, str] = dict(value) if isinstance(value, Mapping) else {}
        present = power.disabled(host)
        for state, text in wanted.items():
            before, after = set(cpulist.parse(present.get(state, ""))), set(cpulist.parse(text))
            for cpu in sorted(before ^ after):
                put(host, f"{CPU}/cpu{cpu}/cpuidle/{state}/disable", "1" if cpu in after else "0")

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        present, lines = power.disabled(host), []
        for state, text in (value if isinstance(value, Mapping) else {}).items():
            before, after = set(cpulist.parse(present.get(state, ""))), set(cpulist.parse(text))
            words = {"1": sorted(after - before), "0": sorted(before - after)}
            path = f"{CPU}/cpu$cpu/cpuidle/{state}/disable"
            lines += [echo_each(digit, "cpu", cpus, path) for digit, cpus in words.items() if cpus]
        return lines

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        table: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        found: Dict[str, Value] = {name: "0" for name in names if name.partition("/")[0] in table}
        found.update((f"{state}/{cpu}", "1") for state, cpus in table.items() for cpu in cpulist.parse(cpus))
        return found

    def present_elements(self, host: WritableHost, where: str) -> Dict[str, Value]:
        return {f"{state}/{cpu}": "1" if off else "0" for state, cpu, off in power.switches(host) if off is not None}

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        present = self.elements(value)
        states = [*(value if isinstance(value, Mapping) else ()), *(name.partition("/")[0] for name in elements)]
        cpus: Dict[str, List[int]] = {state: [] for state in states}
        for name, word in {**present, **elements}.items():
            state, _slash, cpu = name.partition("/")
            if word == "1":
                cpus[state].append(int(cpu))
        return {state: cpulist.render(found) for state, found in cpus.items()}

    def may_return(self, host: WritableHost, where: str, element: str) -> bool:
        state, _slash, cpu = element.partition("/")
        return host.exists(f"{CPU}/cpu{cpu}/cpuidle/{state}") or _is_offline(host, self.cpu_of(element))

    def cpu_of(self, element: str) -> int:
        return int(element.partition("/")[2])

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        return power.kernel_choice(host)


class FrequencyTable(_Placeless, Table, NamedByPath):
    """One word per frequency domain, in its file `name`.

    Domains go offline and online with their CPUs, and keep their word.
    """

    def __init__(self, what: str, name: str) -> None:
        super().__init__(what)
        self.name = name
        self.paths = (f"{power.CPUFREQ}/policy*/{name}",)

    def files(self, host: WritableHost, path: str) -> List[str]:
        return [f"{power.folder(domain)}/{self.name}" for domain in power.frequency_domains(host)]

    def _fits(self, value: Value) -> bool:
        if not isinstance(value, Mapping) or not 0 < len(value) <= 4096:
            return False
        return all(
            power.DOMAIN.fullmatch(domain) and isinstance(word, str) and _WORD.fullmatch(word)
            for domain, word in value.items()
        )

    def _sample_path(self, host: WritableHost) -> str:
        return f"{power.folder((power.frequency_domains(host) or ('policy0',))[0])}/{self.name}"

    def read(self, host: WritableHost, where: str) -> Value:
        return power.table(host, power.frequency_domains(host), self.name) or None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        present = power.table(host, power.frequency_domains(host), self.name)
        for domain, word in self.elements(value).items():
            if present.get(domain, word) != word:
                put(host, f"{power.folder(domain)}/{self.name}", str(word))

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        present = power.table(host, power.frequency_domains(host), self.name)
        domains: Dict[Value, List[str]] = {}
        for domain, word in self.elements(value).items():
            if present.get(domain, word) != word:
                domains.setdefault(word, []).append(domain)
        return [
            echo_each(word, "domain", names, f"{power.folder(names[0]).replace(names[0], '$domain')}/{self.name}")
            for word, names in domains.items()
        ]

    def may_return(self, host: WritableHost, where: str, element: str) -> bool:
        return host.exists(power.folder(element)) or _is_offline(host, self.cpu_of(element))

    def cpu_of(self, element: str) -> int:
        return int(re.sub(r"\D", "", element))


class Governors(FrequencyTable, Disturbing):
    """The governors, of which performance fixes the energy preference of its domain."""

    def disturbs(self, host: WritableHost, where: str) -> Iterable[Place]:
        return (("power.preferences", ""),)


class Turbo(_Placeless, NamedByPath):
    """Turbo: enabled or disabled. intel_pstate has the file no_turbo, other drivers boost, which is the inverse."""

    paths = (power.NO_TURBO, power.BOOST)

    def _fits(self, value: Value) -> bool:
        return value in ("enabled", "disabled")

    def _sample_path(self, host: WritableHost) -> str:
        return power.NO_TURBO if host.exists(power.NO_TURBO) else power.BOOST

    def read(self, host: WritableHost, where: str) -> Value:
        return power.turbo(host)

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        put(host, *self._order(host, value))

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        return [echo(*self._order(host, value))]

    def _order(self, host: WritableHost, value: Value) -> Tuple[str, str]:
        """The file, and what is written to it."""
        path = self._sample_path(host)
        return path, "1" if (path == power.NO_TURBO) == (value == "disabled") else "0"

    def kernel_choice(self, host: WritableHost, where: str) -> Value:
        return "enabled"


LEVERS = (
    IdleDisabled("power.idle_disabled"),
    Governors("power.governors", "scaling_governor"),
    FrequencyTable("power.preferences", "energy_performance_preference"),
    Turbo("power.turbo"),
)
