# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""smt: one or two threads per core. Pure. PRIVATE to the collection.

Two threads share one core's execution units. Floating-point heavy code fills
them alone, and a neighbour on the core makes latency vary (S0-04). Which CPUs
are second threads is what the kernel lists; nothing is computed from numbers.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.smt import CONTROL, SmtFacts, seconds, together
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import TopologyFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed, host_class
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import boot_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import by_unit, plan_file, tmpfiles

NAME = "smt"
REFERENCE = "S0-04, S0-05"

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "threads": {"type": "str", "choices": ["enabled", "disabled", "kernel"]},
    "method": {"type": "str", "choices": ["runtime", "boot", "both"], "default": "runtime"},
    "persist": {"type": "bool", "default": True},
    "allow_unverified": {"type": "bool", "default": False},
}

# The words of smt/control in those of the option; the others, such as forceoff, are no choice of it.
_SHOWN = {"on": "enabled", "off": "disabled"}


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for SMT.

    Raises NearmetalError when threads are forced that the host can't switch.
    """
    path, _text = tmpfiles(NAME, {})
    files = plan_file(NAME, facts, path, None, "user")
    asked = wanted.get("threads")
    if asked is None:
        return files
    shut = closed(NAME, "threads", facts, wanted)
    if shut:
        return Plan(files.actions, shut + files.findings)
    threads, cpus = facts.smt, facts.topology
    if threads is None or cpus is None or cpus.cores is None or threads.offline is None:
        finding = _finding("unknown", "the kernel doesn't say which CPUs share a core", None, asked)
        return Plan(files.actions, (finding, *files.findings))
    off = asked == "disabled" or (asked == "kernel" and bool(threads.arguments))
    stop = (_on_pv(facts, wanted) if off else None) or _not_here(facts, threads, cpus)
    stop = stop or (_harmful(facts, wanted) if off else None) or _locked(threads, off)
    stop = stop or _unswitchable(threads, cpus, wanted, off)
    advice = Plan(findings=_advice(facts, threads))
    if stop is not None:
        lasting = _lasting(facts, threads, wanted) if stop.status == "not_applicable" else files
        return joined(Plan(findings=(stop,)), lasting, advice)
    method = wanted.get("method")
    runtime = _runtime(threads, cpus, asked, off, wanted) if method != "boot" else Plan()
    at_boot = _at_boot(facts, threads, asked, wanted) if method != "runtime" else Plan()
    return joined(runtime, at_boot, _lasting(facts, threads, wanted), advice)


def _lasting(facts: Facts, threads: SmtFacts, wanted: Wanted) -> Plan:
    """What makes `disabled` last: a file that names no CPU, or the unit where the kernel needs CPUs named.

    The unit also serves a host without SMT: the same disk may start as another type, but neither leaves arm64 nor PV.
    """
    path, text = tmpfiles(NAME, {CONTROL: "off"})
    asked = wanted.get("threads") == "disabled" and wanted.get("persist") and wanted.get("method") == "runtime"
    simple = threads.control in ("on", "off", "forceoff")
    file = plan_file(NAME, facts, path, text if asked and simple else None, wanted.wanted_by("threads"))
    never = host_class(facts, wanted) == "xen_pv" or _arm(facts)
    return joined(file, by_unit(NAME, facts)) if asked and not simple and not never else file


def _not_here(facts: Facts, threads: SmtFacts, cpus: TopologyFacts) -> Optional[Finding]:
    """The finding for a host whose cores have one thread by nature."""
    if threads.control in ("on", "off", "forceoff"):
        return None
    if threads.control is None and (threads.offline or seconds(cpus)):
        return None
    why = "no Graviton has SMT" if _arm(facts) else "each vCPU here is a core of its own (docs/ec2.md 2.3)"
    return _finding("not_applicable", f"one thread per core already: {why}", threads)


def _on_pv(facts: Facts, wanted: Wanted) -> Optional[Finding]:
    """Asked first: that a PV guest sees no second threads doesn't mean that its CPUs aren't such."""
    if host_class(facts, wanted) == "xen_pv":
        return _finding("refused", "Xen PV shows no real sibling lists: move to an HVM type", facts.smt)
    return None


def _harmful(facts: Facts, wanted: Wanted) -> Optional[Finding]:
    """The finding for a host on which SMT must not be switched off."""
    if facts.platform is not None and facts.platform.burstable:
        reason = "a burstable type earns its credits with all vCPUs; half of them would spend what all earn"
        return _finding("refused", reason, facts.smt)
    cores = facts.topology.cores if facts.topology is not None else None
    if wanted.wanted_by("threads") == "workload" and cores is not None and len(cores) < 2:
        reason = (
            "this host has one core: without its second thread one CPU is left for the workload, the kernel and all"
            " interrupts; set smt.threads: disabled yourself if you want that"
        )
        return _finding("refused", reason, facts.smt, "disabled")
    slice_of_xen = host_class(facts, wanted) == "xen_hvm" and facts.smt is not None and not facts.smt.cpuidle
    if slice_of_xen and not wanted.get("allow_unverified"):
        reason = (
            "on a Xen type that shares its socket (no cpuidle here) the sibling lists are the hypervisor's word;"
            " allow_unverified: true believes them"
        )
        return _finding("refused", reason, facts.smt)
    return None


def _locked(threads: SmtFacts, off: bool) -> Optional[Finding]:
    if threads.control == "forceoff" and not off:
        argument = " ".join(threads.arguments) or "nosmt=force"
        return _finding("unchangeable", f"{argument} locks it until a boot without that argument", threads, "enabled")
    return None


def _runtime(threads: SmtFacts, cpus: TopologyFacts, asked: str, off: bool, wanted: Wanted) -> Plan:
    second = seconds(cpus) or ()
    if threads.control is not None and (off or not _one_by_one(threads, cpus)):
        what, before, after = "smt.control", threads.control, "off" if off else "on"
        done = before == after or (off and before == "forceoff")
    else:
        threads = threads._replace(control=None)  # it has no say here
        what, before = "smt.offline", threads.offline or ""
        after = together(before, *map(str, second)) if off else ""
        if asked == "kernel":
            after = threads.kernel_offline
        done = before == after
    reason = "as the kernel booted" if asked == "kernel" else "one thread has the core for itself" if off else ""
    reason = reason or "both threads of each core work: more throughput, less even latency"
    goal = "disabled" if off else "enabled"
    if done:
        return Plan(findings=(_finding("ok", reason, threads, goal),))
    action = Action(
        concern=NAME,
        knob="threads",
        what=what,
        before=before,
        after=after,
        disruptive=True,
        wanted_by=wanted.wanted_by("threads"),
        reason=reason,
        reference=REFERENCE,
    )
    return Plan((action,), (_finding("would_change", reason, threads, goal),))


def _one_by_one(threads: SmtFacts, cpus: TopologyFacts) -> bool:
    """Whether cores lack a thread while smt/control says on, so that to write on does nothing.

    A core whose threads are all offline is somebody's choice of cores, and not of threads.
    """
    widths = [len(core) for core in cpus.cores or ()]
    return threads.control == "on" and bool(threads.offline) and min(widths, default=2) < max([2, *widths])


def _unswitchable(threads: SmtFacts, cpus: TopologyFacts, wanted: Wanted, off: bool) -> Optional[Finding]:
    """The finding for a kernel without smt/control that can't take a second thread offline by itself.

    Raises NearmetalError when it was the user who asked.
    """
    second = together(*map(str, seconds(cpus) or ()))
    if threads.control is not None or not off or together(second, threads.removable) == threads.removable:
        return None
    sentence = (
        f"smt.threads: disabled needs CPUs {second} offline, but this kernel can take only"
        f" {threads.removable or 'none'} offline; use CpuOptions of the EC2 API instead"
    )
    if wanted.wanted_by("threads") == "workload":
        return _finding("not_applicable", sentence, threads, "disabled")
    raise NearmetalError(sentence)


def _at_boot(facts: Facts, threads: SmtFacts, asked: str, wanted: Wanted) -> Plan:
    """`nosmt`, under a knob of its own: a run with another method then takes it back."""
    if threads.control is None:
        reason = "this kernel has no smt/control, so it doesn't know nosmt either: use method: runtime"
        return Plan(findings=(Finding(NAME, "method", "not_applicable", reason, wanted="nosmt", reference=REFERENCE),))
    knob = boot_argument(NAME, "method", "nosmt", REFERENCE, option="threads")
    text = "nosmt" if asked == "disabled" else None
    reason = "second threads never start, so nothing at boot is sized for them; at run time it is too late for that"
    return plan_argument(facts, wanted, knob, text, reason)


def _advice(facts: Facts, threads: SmtFacts) -> Tuple[Finding, ...]:
    """What the operator should know beside the change."""
    told = []
    kind = facts.platform.host_class if facts.platform else None
    if kind == "nitro" and threads.control in ("on", "off", "forceoff") and not _burstable(facts):
        told.append(
            "CpuOptions ThreadsPerCore=1, at launch or by ModifyInstanceCpuOptions on a stopped instance, does the same"
            " before the kernel boots; a change of the instance type takes it back"
        )
    if threads.maxcpus is not None:
        told.append(_about_maxcpus(facts, threads.maxcpus))
    return tuple(_finding("advice", sentence, threads) for sentence in told)


def _about_maxcpus(facts: Facts, maxcpus: str) -> str:
    """S0-06 says maxcpus=63 for 128 vCPUs: the last number of the first half. maxcpus counts."""
    present = len(facts.topology.cpus_present or ()) if facts.topology is not None else 0
    sentence = (
        f"maxcpus={maxcpus} is on the kernel command line: it counts CPUs, relies on their numbering, and udev may"
        " bring the rest back"
    )
    if maxcpus.isdigit() and present == 2 * (int(maxcpus) + 1):
        sentence += (
            f"; {maxcpus} is the number of the last CPU of the first half, one short of half of {present}, so a"
            f" core is idle: the half is {int(maxcpus) + 1}"
        )
    return sentence + "; remove it and use threads: disabled"


def _arm(facts: Facts) -> bool:
    return bool(facts.platform is not None and facts.platform.architecture == "aarch64")


def _burstable(facts: Facts) -> bool:
    return bool(facts.platform is not None and facts.platform.burstable)


def _finding(status: str, reason: str, threads: Optional[SmtFacts], goal: Optional[str] = None) -> Finding:
    now = _SHOWN.get(threads.control, threads.control) if threads is not None and threads.control is not None else None
    if now is None and threads is not None:
        now = f"offline: {threads.offline}" if threads.offline else "all CPUs online"
    return Finding(NAME, "threads", status, reason, now=now, wanted=goal, reference=REFERENCE)


CONCERN = Concern(
    name=NAME, options=OPTIONS, domains=("platform", "topology", "smt", "boot", "unit", "files"), plan=plan
)
