# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the clock source. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple

from .._parse import clocksource, cmdline, kernel_log
from . import log
from .cpu import first_processor
from .host import Host
from .json_data import json_data

# There is one clocksource directory on every Linux: AWS's talk of 2017 has the path wrong.
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0"

# The first of Intel's models of family 6 to which Linux gave constant_tsc by its number.
YONAH = 0x0E

# Which clock sources user space reads through the vDSO, without a system call (docs/ec2.md#clock-source).
# kvm-clock: as long as its TSC is stable, which Nitro guarantees. xen: on EC2 each read is a call (AWS, 2017).
_VDSO = {
    "tsc": True,
    "kvm-clock": True,
    "hyperv_clocksource_tsc_page": True,
    "arch_sys_counter": True,
    "xen": False,
    "hpet": False,
    "acpi_pm": False,
    "jiffies": False,
    "refined-jiffies": False,
    "hyperv_clocksource_msr": False,
}


class ClockFacts(NamedTuple):
    """The clock source, and the evidence for and against the TSC. None is what can't be known."""

    current: Optional[str]
    available: Optional[Tuple[str, ...]]  # best rated first
    constant_tsc: Optional[bool]  # None: no x86 flags (arm64)
    constant_by_model: Optional[bool]  # an Intel CPU whose TSC has one rate, whether or not a hypervisor says so
    nonstop_tsc: Optional[bool]
    unstable_marks: Optional[Tuple[str, ...]]  # kernel messages against the TSC; None: the log can't be read
    switched_to: Optional[Tuple[str, ...]]  # clock sources the log shows the kernel switch to, in order
    log_cut: Optional[bool]  # whether the log is so large that only its beginning was read
    source_argument: Optional[str]  # the last clocksource= on the kernel's command line
    reliable_argument: Optional[bool]  # tsc=reliable is there: no watchdog looks at the TSC

    @property
    def kernel_choice(self) -> Optional[str]:
        """The kernel's own choice: the source on its command line, if it has that one, else the best rated."""
        offered = self.available or ()
        return self.source_argument if self.source_argument in offered else offered[0] if offered else None

    @property
    def vdso(self) -> Optional[bool]:
        """Whether reading the current source needs no system call; None for a source we don't know."""
        return _VDSO.get(self.current or "")

    def as_dict(self) -> Dict[str, Any]:
        """Plain JSON."""
        return {**json_data(self), "vdso": self.vdso}


def observe(host: Host) -> ClockFacts:
    """Read the clock source files, the CPU's flags, the command line and the kernel log."""
    offered = host.text(CLOCKSOURCE + "/available_clocksource")
    current = host.text(CLOCKSOURCE + "/current_clocksource")
    first = first_processor(host)
    flags, intel = first.flags if first.x86 else None, first.vendor == "GenuineIntel"
    arguments = host.kernel_arguments()
    boot_log = log.since_boot(host)
    return ClockFacts(
        current=clocksource.current(current) if current is not None else None,
        available=clocksource.available(offered) if offered is not None else None,
        constant_tsc="constant_tsc" in flags if flags is not None else None,
        # The rule by which Linux before 6.15 gave constant_tsc to Intel's CPUs; later it ends with Ivy Bridge.
        constant_by_model=intel and first.family == 6 and (first.number or 0) >= YONAH if first.x86 else None,
        nonstop_tsc="nonstop_tsc" in flags if flags is not None else None,
        unstable_marks=kernel_log.tsc_unstable_marks(boot_log.text) if boot_log is not None else None,
        switched_to=kernel_log.clocksource_switches(boot_log.text) if boot_log is not None else None,
        log_cut=boot_log.cut if boot_log is not None else None,
        source_argument=cmdline.last(arguments, "clocksource"),
        reliable_argument="reliable" in cmdline.values(arguments, "tsc") if arguments else None,
    )
