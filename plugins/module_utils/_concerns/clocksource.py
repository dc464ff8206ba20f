# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""clocksource: which counter the kernel tells the time from. Pure. PRIVATE to the collection.

Why it matters: a clock read through xen, hpet or acpi_pm is a system call or a
slow port read; tsc is read by the vDSO in user space (AWS, 2017).
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

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


class _Target(NamedTuple):
    """The clock source to run on and why, or the plan that ends the search."""

    source: str = ""
    reason: str = ""
    refusal: Optional[Plan] = None


def _source(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    """The plan for the source. Raises NearmetalError when a source is forced that the kernel doesn't offer.

    `auto` is planned again at each boot, as the same disk may start as another type; arm64 has only one source.
    """
    clock = facts.clock
    if not clock.available or clock.current is None:
        reason = "the kernel doesn't say which clock sources it has"
        return _SOURCE.says("unknown", reason, None, requested)
    target = _target(facts, clock, wanted)
    replan = Plan(replan=requested == "auto" and not facts.is_arm)
    if target.refusal is not None:
        return joined(target.refusal, replan)
    gain = GAIN if target.source == "tsc" else ""
    change = _SOURCE.change(wanted, clock.current, target.source, target.reason, gain)
    return joined(change, _warnings(facts, clock, target), replan)


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


def _target(facts: Facts, clock: ClockFacts, wanted: Wanted) -> _Target:
    requested = _SOURCE.value(wanted)
    if requested == "kernel":
        named = clock.kernel_choice == clock.source_argument
        reason = (
            "the kernel command line names this source" if named else "the kernel's own choice, which it lists first"
        )
        return _Target(clock.kernel_choice or "", reason)
    if requested != "auto":
        return _target_by_name(facts, clock, wanted, requested)
    kind, offered = host_class(facts, wanted), clock.available or ()
    if facts.is_arm:
        reason = "arm64 has one clock source, its architected timer, and the vDSO reads it"
        return _refusal("not_applicable", reason, clock)
    if kind == "xen_pv":
        return _refusal_on_pv(clock, "tsc")
    if kind == "nitro" and clock.current == "kvm-clock" and "tsc" in offered and _is_invariant(clock):
        return _Target(
            "tsc", "AWS asks for tsc on each Intel and AMD type, and this CPU's has one rate and never stops"
        )
    if kind == "nitro" and clock.current in NITRO_GOOD:
        return _Target(clock.current, "the vDSO reads both tsc and kvm-clock: the current source stays")
    if kind == "nitro" and "kvm-clock" in offered and not ("tsc" in offered and _has_constant_rate(clock)):
        return _Target("kvm-clock", "tsc isn't usable on this host, and the vDSO reads kvm-clock too")
    if "tsc" not in offered:
        return _refusal("not_applicable", f"the kernel doesn't offer tsc{_log_mark(clock)}", clock, "tsc")
    return _tsc_target(facts, clock, wanted, "tsc")


def _target_by_name(facts: Facts, clock: ClockFacts, wanted: Wanted, source: str) -> _Target:
    offered = clock.available or ()
    if source not in offered:
        sentence = (
            f"clocksource.source: this kernel doesn't offer {plain(source)}{_log_mark(clock)};"
            f" it offers {' '.join(offered)}; name one of these, or use auto"
        )
        return _Target(refusal=_SOURCE.impossible(wanted, sentence, clock.current, source))
    if source != "tsc":
        return _Target(source, "requested by name")
    if host_class(facts, wanted) == "xen_pv":
        return _refusal_on_pv(clock, source)
    return _tsc_target(facts, clock, wanted, source)


def _tsc_target(facts: Facts, clock: ClockFacts, wanted: Wanted, source: str) -> _Target:
    """tsc needs a counter of constant rate; where nothing promises it, only the opt-in allows it."""
    if not _has_constant_rate(clock) and not wanted.get("allow_unverified"):
        reason = (
            "the CPU doesn't promise constant_tsc, so time could run at another rate when the frequency"
            " changes; allow_unverified: true uses it anyway"
        )
        return _refusal("refused", reason, clock, source)
    reason = "tsc is read in user space by the vDSO, without a system call"
    if not clock.constant_tsc and clock.constant_by_model:
        reason += "; this CPU has constant_tsc, although Linux 6.15 and newer don't list it for its model"
    if not clock.nonstop_tsc and host_class(facts, wanted) == "xen_hvm":
        reason += "; nonstop_tsc is missing, which is normal on Xen"
    return _Target(source, reason)


def _is_invariant(clock: ClockFacts) -> bool:
    """Whether the CPU promises a counter of one rate that never stops, and the kernel saw nothing against it."""
    return bool(clock.constant_tsc and clock.nonstop_tsc and not clock.unstable_marks)


def _has_constant_rate(clock: ClockFacts) -> bool:
    return bool(clock.constant_tsc or clock.constant_by_model)


def _warnings(facts: Facts, clock: ClockFacts, target: _Target) -> Plan:
    """What the operator should know beside the change."""
    warnings: List[str] = []
    kind = facts.platform.host_class
    if target.source == "tsc":
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


def _refusal(status: str, reason: str, clock: ClockFacts, source: Optional[str] = None) -> _Target:
    return _Target(refusal=_SOURCE.says(status, reason, clock.current, source))


def _refusal_on_pv(clock: ClockFacts, source: str) -> _Target:
    reason = "on Xen PV the hypervisor may emulate tsc: stay on xen, or move to an HVM type"
    return _refusal("refused", reason, clock, source)


def _log_mark(clock: ClockFacts) -> str:
    return f" (kernel log: {clock.unstable_marks[-1]})" if clock.unstable_marks else ""


CONCERN = tuning(
    NAME,
    tmpfiles,
    knobs=KNOBS,
    manner={"persist": PERSIST, "allow_unverified": CONSENT},
    domains=("platform", "topology", "clock", "boot", "files", "unit"),
    decide=[per_knob((_SOURCE, _source), (_RELIABLE, _reliable))],
)
