# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""clocksource: which counter the kernel tells the time from. Pure. PRIVATE to the collection.

Why it matters: a clock read through xen, hpet or acpi_pm is a system call or a
slow port read; tsc is read by the vDSO in user space (AWS, 2017).
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple, Union

from .._facts.clock import ClockFacts
from .._facts.facts import Facts
from .._facts.sys_files import CLOCKSOURCE
from .._plan import Plan, Wanted, joined
from .._planning.boot_argument import plan_argument
from .._planning.gate import host_class
from .._planning.knob import Knob, boot_argument
from .._planning.native import tmpfiles
from .._planning.options import CONSENT, PERSIST
from .._planning.skeleton import per_knob, tuning
from .._words import plain

NAME = "clocksource"

_SOURCE = Knob(
    NAME,
    "source",
    "clock.current",
    "AWS, 2017; amazon-eks-ami on GitHub, pull request 2144",
    {"type": "str"},
    takes_effect="at_once",
    at_boot=CLOCKSOURCE.at_boot,
    tuned=(f"sysfs.{CLOCKSOURCE.paths[0]}", "cmdline.clocksource"),
    comparable=True,
)
_RELIABLE = boot_argument(
    NAME,
    "tsc_reliable",
    "tsc",
    "Linux kernel, kernel-parameters",
    spec={"type": "str", "choices": ["enabled", "kernel"]},
)
KNOBS = (_SOURCE, _RELIABLE)

_AWS_SETS_IT = "AWS's own images for EKS set it"
GAIN = "AWS, 2017: one program took 12.00 s on xen, 2.00 s on tsc"

# The vDSO reads both: kvm-clock as long as it is stable (docs/ec2.md#clock-source).
NITRO_GOOD = ("tsc", "kvm-clock")


# The clock source to run on and why, or the plan that only says why there is none.
_Target = Union[Tuple[str, str], Plan]


def _source(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    """The plan for the source. Raises NearmetalError when a source is forced that the kernel doesn't offer.

    `auto` is planned again at each boot, as the same disk may start as another type; arm64 has only one source.
    """
    clock = facts.clock
    if not clock.available or clock.current is None:
        reason = "the kernel doesn't say which clock sources it has"
        return _SOURCE.says("unknown", reason, None, requested)
    target = _target(facts, wanted, requested)
    replan = Plan(replan=requested == "auto" and not facts.is_arm)
    if isinstance(target, Plan):
        return joined(target, replan)
    source, reason = target
    change = _SOURCE.change(wanted, clock.current, source, reason, GAIN if source == "tsc" else "")
    return joined(change, _warnings(facts, clock, source), replan)


def _reliable(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    """The plan for tsc=reliable. The source needs no kernel argument: a file in /sys sets it without a reboot."""
    text = "tsc=reliable" if requested == "enabled" else None
    if facts.is_arm:
        return _RELIABLE.at("").says("not_applicable", "arm64 has no tsc", None, text)
    kind = host_class(facts, wanted)
    agreed = bool(wanted.get("allow_unverified")) and kind in ("nitro", "xen_hvm")
    if requested == "enabled" and kind != "metal" and not agreed:
        reason = (
            "a virtual host can be moved to other hardware: without the watchdog nobody would notice a tsc that goes"
            f" wrong; {_AWS_SETS_IT}, and allow_unverified: true sets it on Nitro and Xen HVM"
        )
        return _RELIABLE.at("").says("refused", reason, None, text)
    reason = "the kernel decides at boot whether its watchdog checks tsc: no file in /sys changes that"
    change = plan_argument(facts, wanted, _RELIABLE, text, reason)
    if requested == "kernel":
        return change
    warning = "without the watchdog the kernel keeps using a tsc that goes wrong: watch the time offset in chrony"
    return joined(change, _RELIABLE.at("").says("advice", warning))


def _target(facts: Facts, wanted: Wanted, requested: str) -> _Target:
    clock, kind = facts.clock, host_class(facts, wanted)
    offered = clock.available or ()
    log_mark = f" (kernel log: {clock.unstable_marks[-1]})" if clock.unstable_marks else ""
    if requested == "kernel":
        named = clock.kernel_choice == clock.source_argument
        reason = (
            "the kernel command line names this source" if named else "the kernel's own choice, which it lists first"
        )
        return clock.kernel_choice or "", reason
    if requested not in ("auto", *offered):
        sentence = (
            f"clocksource.source: this kernel doesn't offer {plain(requested)}{log_mark};"
            f" it offers {' '.join(offered)}; name one of these, or use auto"
        )
        return _SOURCE.impossible(wanted, sentence, clock.current, requested)
    if requested not in ("auto", "tsc"):
        return requested, "requested by name"
    if requested == "auto" and facts.is_arm:
        reason = "arm64 has one clock source, its architected timer, and the vDSO reads it"
        return _SOURCE.says("not_applicable", reason, clock.current)
    if kind == "xen_pv":
        reason = "on Xen PV the hypervisor may emulate tsc: stay on xen, or move to an HVM type"
        return _SOURCE.says("refused", reason, clock.current, "tsc")
    chosen = _chosen_on_nitro(clock, offered) if requested == "auto" and kind == "nitro" else None
    if chosen is not None:
        return chosen
    if "tsc" not in offered:
        return _SOURCE.says("not_applicable", f"the kernel doesn't offer tsc{log_mark}", clock.current, "tsc")
    return _tsc(clock, wanted, kind)


def _chosen_on_nitro(clock: ClockFacts, offered: Sequence[str]) -> Optional[Tuple[str, str]]:
    """The source that suits Nitro, and why; None where it has to be tsc."""
    invariant = clock.constant_tsc and clock.nonstop_tsc and not clock.unstable_marks
    if clock.current == "kvm-clock" and "tsc" in offered and invariant:
        return "tsc", "AWS asks for tsc on each Intel and AMD type, and this CPU's has one rate and never stops"
    if clock.current in NITRO_GOOD:
        return clock.current, "the vDSO reads both tsc and kvm-clock: the current source stays"
    if "kvm-clock" in offered and not ("tsc" in offered and _has_constant_rate(clock)):
        return "kvm-clock", "tsc isn't usable on this host, and the vDSO reads kvm-clock too"
    return None


def _tsc(clock: ClockFacts, wanted: Wanted, kind: str) -> _Target:
    """tsc needs a counter of constant rate; where nothing promises it, only the opt-in allows it."""
    if not _has_constant_rate(clock) and not wanted.get("allow_unverified"):
        reason = (
            "the CPU doesn't promise constant_tsc, so time could run at another rate when the frequency"
            " changes; allow_unverified: true uses it anyway"
        )
        return _SOURCE.says("refused", reason, clock.current, "tsc")
    reason = "tsc is read in user space by the vDSO, without a system call"
    if not clock.constant_tsc and clock.constant_by_model:
        reason += "; this CPU has constant_tsc, although Linux 6.15 and newer don't list it for its model"
    if not clock.nonstop_tsc and kind == "xen_hvm":
        reason += "; nonstop_tsc is missing, which is normal on Xen"
    return "tsc", reason


def _has_constant_rate(clock: ClockFacts) -> bool:
    return bool(clock.constant_tsc or clock.constant_by_model)


def _warnings(facts: Facts, clock: ClockFacts, source: str) -> Plan:
    """What the operator should know beside the change."""
    warnings: List[str] = []
    kind = facts.platform.host_class
    if source == "tsc":
        if not _has_constant_rate(clock):
            warnings.append("tsc is in use without constant_tsc, by allow_unverified: watch the time offset in chrony")
        if not clock.nonstop_tsc and kind != "xen_hvm":
            warnings.append("nonstop_tsc is missing: tsc may stop in deep C-states; watch the time offset in chrony")
        sockets = facts.topology.sockets
        if sockets is not None and len(sockets) > 2:
            warnings.append(
                f"{len(sockets)} sockets: their counters may disagree; watch the kernel log for unstable tsc"
            )
        if clock.unstable_marks:
            warnings.append(f"the kernel log calls tsc unstable, yet the kernel offers it: {clock.unstable_marks[-1]}")
        if clock.log_cut:
            warnings.append(
                "the kernel log is longer than 8 MiB and only its beginning was read: look for later messages"
                " about tsc with `journalctl -k -b | grep -i unstable`"
            )
    if clock.reliable_argument and kind in ("nitro", "xen_hvm", "xen_pv"):
        warnings.append(
            "tsc=reliable is on the kernel command line: it switches the watchdog off, and a virtual host can be moved"
            f" to other hardware; {_AWS_SETS_IT}: unless you trust that, remove it"
        )
    return _SOURCE.advises(warnings, clock.current)


CONCERN = tuning(
    NAME,
    tmpfiles,
    knobs=KNOBS,
    manner={"persist": PERSIST, "allow_unverified": CONSENT},
    domains=("platform", "topology", "clock", "boot", "files", "unit"),
    decide=[per_knob((_SOURCE, _source), (_RELIABLE, _reliable))],
)
