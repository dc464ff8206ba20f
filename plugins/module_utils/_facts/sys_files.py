# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of /sys with one word for the whole host, each declared once. PRIVATE to the collection.

From a declaration follow the fact, the lever, the line that sets it at boot, and what a capture keeps.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

from .host import Host
from .topology import CPU

# The second one is that of RHEL 6.
THP_FOLDERS = ("/sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/redhat_transparent_hugepage")
_NO_TURBO = f"{CPU}/intel_pstate/no_turbo"


class SysFile(NamedTuple):
    """One word. A file with all words has the one that counts in brackets."""

    lever: str
    paths: Tuple[str, ...]  # the first that the kernel has
    form: str = r"[a-z_+]{1,32}"  # an expression for its values
    words: Tuple[Mapping[str, str], ...] = ()  # of each path: nearmetal's word → the kernel's; empty for the same words

    @property
    def name(self) -> str:
        """What its concern calls it."""
        return self.lever.partition(".")[2]

    @property
    def at_boot(self) -> Mapping[str, Mapping[str, str]]:
        """Path → nearmetal's word → the kernel's, as a knob has it."""
        return dict(zip(self.paths, self.words or ({},) * len(self.paths)))

    def path(self, host: Host) -> str:
        """The file of this host."""
        return next((path for path in self.paths if host.exists(path)), self.paths[0])

    def read(self, host: Host) -> Optional[str]:
        """The value; None for a kernel without the file."""
        word = chosen(host.line(self.path(host)) or "")
        return self._meaning(host, word) if word and " " not in word else None

    def offered(self, host: Host) -> Tuple[str, ...]:
        """The words in a file with all of them."""
        return tuple(word.strip("[]") for word in (host.line(self.path(host)) or "").split())

    def meaning(self, host: Host, word: str) -> Optional[str]:
        """The value that the word has in the file; None for one that the kernel doesn't take."""
        offered = self.offered(host)
        return self._meaning(host, word) if len(offered) == 1 or word in offered else None

    def _meaning(self, host: Host, word: str) -> Optional[str]:
        words = self.at_boot[self.path(host)]
        return {there: value for value, there in words.items()}.get(word) if words else word


def chosen(line: str) -> str:
    """The word in brackets, as in "always [madvise] never"; the line itself without one."""
    return next((word[1:-1] for word in line.split() if word.startswith("[") and word.endswith("]")), line)


def _of_thp(name: str, file: str, *words: Mapping[str, str]) -> SysFile:
    return SysFile(f"hugepages.{name}", tuple(f"{folder}/{file}" for folder in THP_FOLDERS), words=words)


def thp_of_size(size: str) -> SysFile:
    """Who gets transparent huge pages of a size such as 64kB (Linux 6.8)."""
    return SysFile("hugepages.thp_sizes", (f"{THP_FOLDERS[0]}/hugepages-{size}/enabled",))


THP = _of_thp("thp", "enabled")
THP_DEFRAG = _of_thp("thp_defrag", "defrag")
THP_SHMEM = _of_thp("thp_shmem", "shmem_enabled")
KHUGEPAGED_DEFRAG = _of_thp(
    "khugepaged_defrag", "khugepaged/defrag", {"enabled": "1", "disabled": "0"}, {"enabled": "yes", "disabled": "no"}
)
MAX_PTES_NONE = SysFile("hugepages.max_ptes_none", (f"{THP_FOLDERS[0]}/khugepaged/max_ptes_none",), "[0-9]{1,5}")
# 0 stopped, 1 runs, 2 stopped, and everything separated again.
KSM = SysFile("memory.ksm", ("/sys/kernel/mm/ksm/run",), "[012]")
PROFILE = SysFile("power.profile", ("/sys/firmware/acpi/platform_profile",), "[a-z-]{1,32}")
# intel_pstate has the first file, other drivers the second, which is the inverse.
TURBO = SysFile(
    "power.turbo",
    (_NO_TURBO, f"{CPU}/cpufreq/boost"),
    "enabled|disabled",
    ({"disabled": "1", "enabled": "0"}, {"disabled": "0", "enabled": "1"}),
)
# AWS's talk of 2017 names a wrong directory (clock/clock0). CS_NAME_LEN is 32 in kernel/time/clocksource.c.
CLOCKSOURCE = SysFile(
    "clock.current", ("/sys/devices/system/clocksource/clocksource0/current_clocksource",), "[A-Za-z0-9_-]{1,31}"
)
SMT = SysFile("smt.control", (f"{CPU}/smt/control",), "on|off")
