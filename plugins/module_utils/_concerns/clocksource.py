# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""clocksource: which counter the kernel tells the time from. Pure. PRIVATE to the collection.

Why it matters: a clock read through xen, hpet or acpi_pm is a system call or a
slow port read; tsc is read by the vDSO in user space (S0-11, S0-12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.clock import ClockFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import Argument, plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed, host_class
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import by_unit, plan_file, tmpfiles
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

NAME = "clocksource"

# The talk behind S0-14 has the directory wrong (clock/clock0); this is the kernel's.
CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

GAIN = "AWS, 2017: one program took 12.00 s on xen, 2.00 s on tsc"

# Nitro serves both through the vDSO: kvm-clock as long as it is stable (ec2.md 2.1).
NITRO_GOOD = ("tsc", "kvm-clock")

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "source": {"type": "str"},
    "tsc_reliable": {"type": "str", "choices": ["enabled", "kernel"]},
    "persist": {"type": "bool", "default": True},
    "allow_unverified": {"type": "bool", "default": False},
}


@dataclass(frozen=True)
class _Target:
    """The clock source to run on and why, or the finding that ends the search."""

    source: str = ""
    reason: str = ""
    finding: Optional[Finding] = None


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for the clock source.

    Raises NearmetalError when a source is forced that the kernel doesn't offer.
    """
    source, reliable = _source(facts, wanted), _reliable(facts, wanted)
    return Plan(source.actions + reliable.actions, source.findings + reliable.findings, source.replan)


def _source(facts: Facts, wanted: Wanted) -> Plan:
    path, _text = tmpfiles(NAME, {})
    unpersisted = plan_file(NAME, facts, path, None, "user")
    asked = wanted.get("source")
    if asked is None:
        return unpersisted
    shut = closed(NAME, "source", facts, wanted)
    if shut:
        return Plan(unpersisted.actions, shut + unpersisted.findings)
    clock = facts.clock
    if clock is None or not clock.available or clock.current is None:
        finding = _finding("unknown", "the kernel doesn't say which clock sources it has", None, asked)
        return Plan(unpersisted.actions, (finding, *unpersisted.findings))
    target = _target(facts, clock, wanted)
    unit = _unit(facts, wanted)
    if target.finding is not None:
        findings = (target.finding, *unit.findings, *unpersisted.findings)
        return Plan(unpersisted.actions, findings, unit.replan)
    files = unpersisted
    if asked not in ("auto", "kernel") and wanted.get("persist"):
        files = plan_file(NAME, facts, *tmpfiles(NAME, {CURRENT: target.source}), wanted.wanted_by("source"))
    runtime = _runtime(clock, target, wanted)
    findings = runtime.findings + files.findings + unit.findings + _warnings(facts, clock, target)
    return Plan(runtime.actions + files.actions, findings, unit.replan)


def _unit(facts: Facts, wanted: Wanted) -> Plan:
    """What is left to us is planned anew at boot: the same disk may start as another type. Only arm64 has no choice."""
    arm = facts.platform is not None and facts.platform.architecture == "aarch64"
    if wanted.get("source") != "auto" or not wanted.get("persist") or arm:
        return Plan()
    return by_unit(NAME, facts)


def _reliable(facts: Facts, wanted: Wanted) -> Plan:
    """tsc=reliable. The source itself needs no kernel argument: a file in /sys sets it as well, without a reboot."""
    asked = wanted.get("tsc_reliable")
    if asked is None:
        return Plan()
    shut = closed(NAME, "tsc_reliable", facts, wanted)
    if shut:
        return Plan(findings=shut)
    argument = Argument(
        concern=NAME,
        knob="tsc_reliable",
        name="tsc",
        text="tsc=reliable" if asked == "enabled" else None,
        reason="while it boots the kernel decides whether its watchdog looks at tsc: no file in /sys changes it",
        reference="ec2.md 2.1",
        wanted_by=wanted.wanted_by("tsc_reliable"),
    )
    stop = ("", "")
    if facts.platform is not None and facts.platform.architecture == "aarch64":
        stop = ("not_applicable", "arm64 has no tsc")
    elif asked == "enabled" and host_class(facts, wanted) != "metal":
        stop = ("refused", "a virtual host can be moved to other hardware: without the watchdog nobody would notice")
    if stop[0]:
        finding = Finding(NAME, "tsc_reliable", *stop, wanted=argument.text, reference=argument.reference)
        return Plan(findings=(finding,))
    change = plan_argument(facts, argument)
    if asked == "kernel":
        return change
    warning = "without the watchdog a tsc that goes wrong is used all the same: watch the time offset in chrony"
    told = Finding(NAME, "tsc_reliable", "advice", warning, reference=argument.reference)
    return Plan(change.actions, (*change.findings, told))


def _target(facts: Facts, clock: ClockFacts, wanted: Wanted) -> _Target:
    asked = wanted.get("source")
    if asked == "kernel":
        told = clock.kernel_choice == clock.source_argument
        reason = "the kernel's command line names it" if told else "the kernel lists its own choice first"
        return _Target(clock.kernel_choice or "", reason)
    if asked != "auto":
        return _named(facts, clock, wanted, asked)
    kind = host_class(facts, wanted)
    if facts.platform is not None and facts.platform.architecture == "aarch64":
        return _Target(finding=_no_choice(clock))
    if kind == "xen_pv":
        return _Target(finding=_refused_on_pv(clock, "tsc"))
    if kind == "nitro" and clock.current in NITRO_GOOD:
        return _Target(clock.current, "on Nitro the vDSO reads tsc and kvm-clock alike: the kernel chose right")
    if kind == "nitro" and "kvm-clock" in _offered(clock) and not ("tsc" in _offered(clock) and _constant(clock)):
        return _Target("kvm-clock", "tsc isn't to be had here, and the vDSO reads kvm-clock too")
    if "tsc" not in _offered(clock):
        return _Target(finding=_finding("not_applicable", f"the kernel doesn't offer tsc{_mark(clock)}", clock, "tsc"))
    return _verified(facts, clock, wanted, "tsc")


def _named(facts: Facts, clock: ClockFacts, wanted: Wanted, asked: str) -> _Target:
    if asked not in _offered(clock):
        sentence = (
            f"clocksource.source: this kernel doesn't offer {plain(asked)}{_mark(clock)};"
            f" it offers {' '.join(_offered(clock))}; name one of these, or use auto"
        )
        if wanted.wanted_by("source") == "workload":
            return _Target(finding=_finding("not_applicable", sentence, clock, asked))
        raise NearmetalError(sentence)
    if asked != "tsc":
        return _Target(asked, "asked for by name")
    if host_class(facts, wanted) == "xen_pv":
        return _Target(finding=_refused_on_pv(clock, asked))
    return _verified(facts, clock, wanted, asked)


def _verified(facts: Facts, clock: ClockFacts, wanted: Wanted, source: str) -> _Target:
    """tsc needs a counter of constant rate; where nothing promises it only the named opt-in helps."""
    if not _constant(clock) and not wanted.get("allow_unverified"):
        reason = (
            "the CPU doesn't promise constant_tsc, so time could run at another rate when the frequency changes;"
            " allow_unverified: true takes it all the same"
        )
        return _Target(finding=_finding("refused", reason, clock, source))
    reason = "tsc is read in user space by the vDSO, without a system call"
    if not clock.constant_tsc and clock.constant_by_model:
        reason += "; constant_tsc isn't listed, since Linux 6.15 no longer deduces it from the CPU's model, but holds"
    if not clock.nonstop_tsc and host_class(facts, wanted) == "xen_hvm":
        reason += "; nonstop_tsc is missing, as on 52 recorded Xen types: normal there"
    return _Target(source, reason)


def _constant(clock: ClockFacts) -> bool:
    return bool(clock.constant_tsc or clock.constant_by_model)


def _runtime(clock: ClockFacts, target: _Target, wanted: Wanted) -> Plan:
    if clock.current == target.source:
        return Plan(findings=(_finding("ok", target.reason, clock, target.source),))
    action = Action(
        concern=NAME,
        knob="source",
        what="clock.current",
        before=clock.current,
        after=target.source,
        wanted_by=wanted.wanted_by("source"),
        reason=target.reason,
        reference="S0-14",
    )
    gain = GAIN if target.source == "tsc" else ""
    return Plan((action,), (_finding("would_change", target.reason, clock, target.source, gain),))


def _warnings(facts: Facts, clock: ClockFacts, target: _Target) -> Tuple[Finding, ...]:
    """What the operator should know beside the change."""
    told: List[str] = []
    kind = facts.platform.host_class if facts.platform else None
    if target.source == "tsc":
        if not _constant(clock):
            told.append("tsc is in use without constant_tsc, by allow_unverified: watch the time offset in chrony")
        if not clock.nonstop_tsc and kind != "xen_hvm":
            told.append("nonstop_tsc is missing: tsc may stop in deep C-states; watch the time offset in chrony")
        sockets = facts.topology.sockets if facts.topology else None
        if sockets is not None and len(sockets) > 2:
            told.append(
                f"{len(sockets)} sockets: their counters may disagree; watch the kernel log for marks against tsc"
            )
        if clock.unstable_marks:
            told.append(f"the kernel log has a mark against tsc, yet it is offered: {clock.unstable_marks[-1]}")
        if clock.log_cut:
            told.append(
                "the kernel log is longer than 8 MiB and only its beginning was read: look for later marks against tsc"
                " with `journalctl -k -b -g unstable`"
            )
    if clock.reliable_argument and kind in ("nitro", "xen_hvm", "xen_pv"):
        told.append(
            "tsc=reliable is on the kernel command line: it switches the watchdog off, and a virtual host can be"
            " moved to other hardware; remove it"
        )
    return tuple(_finding("advice", sentence, clock, None) for sentence in told)


def _offered(clock: ClockFacts) -> Tuple[str, ...]:
    return clock.available or ()


def _no_choice(clock: ClockFacts) -> Finding:
    return _finding("not_applicable", "arm64 has one clock source, its architected timer, and the vDSO reads it", clock)


def _refused_on_pv(clock: ClockFacts, source: str) -> Finding:
    return _finding(
        "refused", "on Xen PV the hypervisor may emulate tsc: stay on xen, or move to an HVM type", clock, source
    )


def _mark(clock: ClockFacts) -> str:
    return f" (kernel log: {clock.unstable_marks[-1]})" if clock.unstable_marks else ""


def _finding(
    status: str, reason: str, clock: Optional[ClockFacts], source: Optional[str] = None, gain: str = ""
) -> Finding:
    return Finding(
        concern=NAME,
        knob="source",
        status=status,
        now=clock.current if clock else None,
        wanted=source,
        reason=reason,
        reference="S0-11, S0-14",
        gain=gain,
    )


CONCERN = Concern(
    name=NAME, options=OPTIONS, domains=("platform", "topology", "clock", "boot", "files", "unit"), plan=plan
)
