# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cpuidle and cpufreq files of a host: `idle` and `frequency` of tests/hosts/<name>.json, for each CPU."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

CPU = "/sys/devices/system/cpu"


def idle_files(cpus: int, driver: str, states: List[List[Any]]) -> Iterator[Tuple[str, str]]:
    """A state is its name and its exit latency in µs."""
    yield f"{CPU}/cpuidle/current_driver", f"{driver}\n"
    yield f"{CPU}/cpuidle/current_governor", "menu\n"
    for cpu in range(cpus):
        for number, (name, latency) in enumerate(states):
            folder = f"{CPU}/cpu{cpu}/cpuidle/state{number}"
            yield f"{folder}/name", f"{name}\n"
            yield f"{folder}/latency", f"{latency}\n"
            yield f"{folder}/disable", "0\n"


def frequency_files(
    cpus: int, driver: str, governors: List[str], turbo: str, preferences: List[str]
) -> Iterator[Tuple[str, str]]:
    """The first governor and preference are in force; `turbo` is the file below /sys/devices/system/cpu."""
    yield f"{CPU}/{turbo}", "0\n" if turbo.endswith("no_turbo") else "1\n"
    for cpu in range(cpus):
        folder = f"{CPU}/cpufreq/policy{cpu}"
        words: Dict[str, str] = {
            "affected_cpus": str(cpu),
            "related_cpus": str(cpu),
            "scaling_driver": driver,
            "scaling_governor": governors[0],
            "scaling_available_governors": " ".join(governors) + " ",
        }
        if preferences:
            words["energy_performance_preference"] = preferences[0]
            words["energy_performance_available_preferences"] = " ".join(preferences) + " "
        for name, word in words.items():
            yield f"{folder}/{name}", f"{word}\n"
