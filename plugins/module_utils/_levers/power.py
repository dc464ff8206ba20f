# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers of idle states and frequencies. PRIVATE to the collection."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any, Dict, Iterable, List, Mapping

from .._facts import power, smt
from .._facts.topology import CPU
from .._host.host import WritableHost
from .._parse import cpulist
from .._plan import Value
from .base import Beside, Key, SetValues, TableOfFiles

_WORD = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)


def _is_offline(host: WritableHost, cpu: int) -> bool:
    return cpu in cpulist.parse(smt.offline(host) or "")


class IdleDisabled(SetValues, TableOfFiles):
    """State → the CPUs where it is disabled, as a kernel list. An element is state/CPU."""

    def elements(self, value: Value, names: Iterable[str] = ()) -> Dict[str, Value]:
        table: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        disabled: Dict[str, Value] = {name: "0" for name in names if name.partition("/")[0] in table}
        disabled.update((f"{state}/{cpu}", "1") for state, cpus in table.items() for cpu in cpulist.parse(cpus))
        return disabled

    def composed(self, elements: Mapping[str, Value], value: Value) -> Value:
        present = self.elements(value)
        states = [*(value if isinstance(value, Mapping) else ()), *(name.partition("/")[0] for name in elements)]
        cpus: Dict[str, List[int]] = {state: [] for state in states}
        for name, word in {**present, **elements}.items():
            state, _slash, cpu = name.partition("/")
            if word == "1":
                cpus[state].append(int(cpu))
        return {state: cpulist.render(numbers) for state, numbers in cpus.items()}

    def fits(self, where: str, value: Value) -> bool:
        if not isinstance(value, Mapping) or not 0 < len(value) <= 32:
            return False
        for state, cpus in value.items():
            if not power.STATE.fullmatch(state) or not isinstance(cpus, str):
                return False
            cpulist.parse(cpus)
        return True

    def paths(self) -> Dict[str, str]:
        switches = power.switches(self.host)
        return {f"{state}/{cpu}": f"{CPU}/cpu{cpu}/cpuidle/{state}/disable" for state, cpu, _off in switches}

    def read(self) -> Value:
        return power.disabled(self.host) or None

    def present_elements(self) -> Dict[str, Value]:
        return {
            f"{state}/{cpu}": "1" if off else "0" for state, cpu, off in power.switches(self.host) if off is not None
        }

    def may_return(self, element: str) -> bool:
        state, _slash, cpu = element.partition("/")
        return self.host.exists(f"{CPU}/cpu{cpu}/cpuidle/{state}") or _is_offline(self.host, self.cpu_of(element))

    def cpu_of(self, element: str) -> int:
        return int(element.partition("/")[2])

    def choice(self) -> Value:
        return power.kernel_choice(self.host)


class WordTable(TableOfFiles):
    """One word per CPU, frequency domain or package, in its file `name`."""

    pattern = power.DOMAIN  # of an element's name
    every = "policy*"  # in place of a name: all elements

    def __init__(self, what: str, name: str) -> None:
        super().__init__(what)
        self.name = name
        self.files = (self.file_of(self.every),)

    def file_of(self, element: str) -> str:
        """The file of an element."""
        return f"{power.folder(element)}/{self.name}"

    @abstractmethod
    def present(self) -> Dict[str, str]:
        """Element → word, of those that take one now."""

    def files_at(self, path: str) -> List[str]:
        return list(self.paths().values())

    def fits(self, where: str, value: Value) -> bool:
        if not isinstance(value, Mapping) or not 0 < len(value) <= 4096:
            return False
        return all(
            self.pattern.fullmatch(element) and isinstance(word, str) and _WORD.fullmatch(word)
            for element, word in value.items()
        )

    def paths(self) -> Dict[str, str]:
        return {element: self.file_of(element) for element in self.present()}

    def read(self) -> Value:
        return self.present() or None


class FrequencyTable(WordTable):
    """Domains go offline and online with their CPUs, and keep their word, of those that their file `offered` has."""

    def __init__(self, what: str, name: str, offered: str) -> None:
        super().__init__(what, name)
        self.offered = offered

    def fitting(self, original: Value, beside: Beside) -> Value:
        words = self.elements(original)
        offered = power.table(self.host, tuple(words), self.offered)  # without those that are offline
        return {
            name: word
            for name, word in words.items()
            if str(word).isdigit() or str(word) in offered.get(name, str(word)).split()
        }

    def present(self) -> Dict[str, str]:
        return power.table(self.host, power.frequency_domains(self.host), self.name)

    def may_return(self, element: str) -> bool:
        return self.host.exists(power.folder(element)) or _is_offline(self.host, self.cpu_of(element))

    def cpu_of(self, element: str) -> int:
        return int(re.sub(r"\D", "", element))


class Biases(WordTable):
    """The energy performance bias of each CPU, which the kernel keeps while the CPU is offline."""

    pattern = power.CPU_NAME
    every = "cpu*"

    def file_of(self, element: str) -> str:
        return f"{CPU}/{element}/power/{self.name}"

    def present(self) -> Dict[str, str]:
        return power.biases(self.host)

    def may_return(self, element: str) -> bool:
        return _is_offline(self.host, self.cpu_of(element))

    def cpu_of(self, element: str) -> int:
        return int(re.sub(r"\D", "", element))


class Uncore(WordTable):
    """The lowest frequency of each package's uncore: of its last cache, its memory controllers and its buses."""

    pattern = power.PACKAGE
    every = "*"

    def file_of(self, element: str) -> str:
        return f"{power.UNCORE}/{element}/{self.name}"

    def present(self) -> Dict[str, str]:
        return power.table(self.host, power.packages(self.host), self.name)

    def choice(self) -> Value:
        return power.table(self.host, power.packages(self.host), "initial_min_freq_khz") or None


class Governors(FrequencyTable):
    """The governors, of which performance fixes the energy preference of its domain."""

    disturbing = True

    def disturbs(self) -> Iterable[Key]:
        return (("power.preferences", ""),)


class Preferences(FrequencyTable):
    """The energy preferences, which the governor performance fixes."""

    def fitting(self, original: Value, beside: Beside) -> Value:
        governors = {
            **power.table(self.host, power.frequency_domains(self.host), "scaling_governor"),
            **self.elements(beside.after.get(("power.governors", ""))),
        }
        words = self.elements(super().fitting(original, beside))
        return {name: power.FIXING if governors.get(name) == power.FIXING else word for name, word in words.items()}


LEVERS = (
    IdleDisabled("power.idle_disabled"),
    Governors("power.governors", "scaling_governor", "scaling_available_governors"),
    Preferences("power.preferences", "energy_performance_preference", "energy_performance_available_preferences"),
    Biases("power.biases", "energy_perf_bias"),
    Uncore("power.uncore", "min_freq_khz"),
)
