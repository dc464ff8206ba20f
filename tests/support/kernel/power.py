# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpuidle and cpufreq of the fake kernel, after the kernel's admin-guide/pm and sysfs-devices-system-cpu."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import AbstractSet

from tests.support.kernel.cpus import numbers

CPU = "/sys/devices/system/cpu"
PERFORMANCE = "performance"


class Power:
    """The power files below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def parked(self, path: str, online: AbstractSet[int]) -> bool:
        """Whether it is a file of a policy whose CPUs are all offline: the directory stays.

        Since 5.19 show() and store() of drivers/cpufreq/cpufreq.c answer EBUSY there.
        """
        bias = re.fullmatch(rf"{CPU}/cpu(\d+)/power/energy_perf_bias", path)
        if bias is not None:  # the kernel takes it away with the CPU, and keeps its value
            return int(bias[1]) not in online
        policy = re.match(rf"{CPU}/cpufreq/policy\d+/", path) if "/cpufreq/" in path else None
        if policy is None:
            return False
        return not online.intersection(numbers((self._root / policy[0].lstrip("/") / "related_cpus").read_text()))

    def take(self, path: str, text: str) -> bool:
        """Carry out a write; whether the file belongs to this fake. Raises OSError as the kernel would."""
        file, word = self._root / path.lstrip("/"), text.strip()
        if re.fullmatch(rf"{CPU}/(cpu\d+/cpuidle/state\d+/disable|cpufreq/boost|intel_pstate/no_turbo)", path):
            self._require(word in ("0", "1"), errno.EINVAL, path)
        elif re.fullmatch(rf"{CPU}/cpufreq/policy\d+/scaling_governor", path):
            self._require(word in (file.parent / "scaling_available_governors").read_text().split(), errno.EINVAL, path)
        elif re.fullmatch(rf"{CPU}/cpufreq/policy\d+/energy_performance_preference", path):
            offered = file.parent / "energy_performance_available_preferences"
            self._require(word in offered.read_text().split(), errno.EINVAL, path)
            governed = (file.parent / "scaling_governor").read_text().strip() == PERFORMANCE
            self._require(not governed or word == PERFORMANCE, errno.EBUSY, path)
        elif re.fullmatch(rf"{CPU}/cpu\d+/power/energy_perf_bias", path):
            self._require(word.isdigit() and int(word) < 16, errno.EINVAL, path)
        elif re.fullmatch(rf"{CPU}/intel_uncore_frequency/\w+/min_freq_khz", path):
            self._require(word.isdigit() and int(word) % 100_000 == 0, errno.EINVAL, path)
        elif path == "/sys/firmware/acpi/platform_profile":
            choices = self._root / "sys/firmware/acpi/platform_profile_choices"
            self._require(word in choices.read_text().split(), errno.EINVAL, path)
        else:
            return False
        file.write_text(word + "\n")
        if path.endswith("/scaling_governor"):
            self._follow(file.parent, word)
        return True

    def _follow(self, policy: Path, governor: str) -> None:
        """intel_pstate: performance brings its own preference and remembers the other one."""
        preference, kept = policy / "energy_performance_preference", policy / ".kept"
        if not preference.exists():
            return
        if governor == PERFORMANCE:
            kept.write_text(preference.read_text())
            preference.write_text(PERFORMANCE + "\n")
        elif kept.exists():
            preference.write_text(kept.read_text())
            kept.unlink()

    def _require(self, fine: bool, number: int, path: str) -> None:
        if not fine:
            raise OSError(number, errno.errorcode[number], path)
