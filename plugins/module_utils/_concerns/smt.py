# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""smt: one or two threads per core. Pure. PRIVATE to the collection.

Two threads share one core's execution units. Floating-point heavy code fills
them alone (AWS, 2017), and a neighbor on the core makes latency vary. The
kernel lists which CPUs are second threads; nothing is computed from CPU numbers.
"""

from __future__ import annotations

from typing import Optional

from .._facts.facts import Facts
from .._facts.smt import SmtFacts, difference, second_threads, union
from .._facts.sys_files import SMT
from .._facts.topology import CPU, TopologyFacts
from .._number import is_number
from .._plan import Plan, Wanted, joined
from .._planning.boot_argument import plan_argument
from .._planning.gate import host_class
from .._planning.knob import Knob, boot_argument
from .._planning.native import tmpfiles
from .._planning.options import CONSENT, METHOD, PERSIST
from .._planning.skeleton import tuning

NAME = "smt"
REFERENCE = "AWS, 2017"

# tuned's kernel argument nosmt in the words of smt/control.
_NOSMT_WORDS = {"cmdline.nosmt": {"nosmt": "off", "nosmt=force": "forceoff"}}
_THREADS = Knob(
    NAME,
    "threads",
    "smt.control",
    REFERENCE,
    {"type": "str", "choices": ["enabled", "disabled", "kernel"]},
    disruptive=True,
    takes_effect="at_once",
    at_boot={SMT.paths[0]: {"disabled": "off"}},
    tuned=("sysfs./sys/devices/system/cpu/smt/control", "cmdline.nosmt"),
    tuned_words=_NOSMT_WORDS,
    kubelet=True,
)
# For a kernel without smt/control, and for cores of which it has lost a thread.
_CPUS = Knob(
    NAME,
    "threads",
    "smt.offline",
    REFERENCE,
    disruptive=True,
    takes_effect="at_once",
    tuned=("cmdline.nosmt", "cmdline.maxcpus"),
    tuned_words=_NOSMT_WORDS,
    kubelet=True,
)
# A knob of its own, so that a run with another method takes it back.
_NOSMT = boot_argument(NAME, "method", "nosmt", REFERENCE, option="threads")
KNOBS = (_THREADS, _CPUS, _NOSMT)

# Word of smt/control → of the option; its other words, such as forceoff, are no choices of the option.
_SHOWN = {"on": "enabled", "off": "disabled"}
_SWITCHES = ("on", "off", "forceoff")  # words of smt/control on a kernel that can switch SMT


def _decide(facts: Facts, wanted: Wanted) -> Plan:
    """The plan, and what makes `disabled` last: a file for smt/control, or the unit where CPUs go offline by number.

    The unit also serves a host without SMT, as the same disk may start as another type; arm64 and PV stay such.
    Raises NearmetalError when threads are forced that the host can't switch.
    """
    requested = _THREADS.value(wanted)
    threads, cpus = facts.smt, facts.topology
    # With smt/control the kernel itself finds the second threads. On a host as it will be once CPUs are back online,
    # nobody has listed the cores yet.
    if threads.offline is None or (cpus.cores is None and threads.control not in _SWITCHES):
        return _THREADS.says("unknown", "the kernel doesn't say which CPUs share a core", None, requested)
    switch_off = requested == "disabled" or (requested == "kernel" and bool(threads.arguments))
    refusal = _refusal(facts, wanted, switch_off)
    method, advice = wanted.get("method"), _advice(facts, threads)
    if refusal is not None and refusal.findings[0].status != "not_applicable":
        return joined(refusal, advice)
    switchable = threads.control in _SWITCHES
    lasting = requested == "disabled" and method == "runtime"
    type_without_smt = host_class(facts, wanted) == "xen_pv" or facts.is_arm
    each_boot = Plan(replan=lasting and not switchable and not type_without_smt)
    if lasting and switchable:
        each_boot = Plan(at_boot=_THREADS.lines(requested))
    if refusal is not None:
        return joined(refusal, advice, each_boot)
    runtime = _runtime(facts, threads, cpus, switch_off, wanted) if method != "boot" else Plan()
    at_boot = _at_boot(facts, threads, requested, wanted) if method != "runtime" else Plan()
    return joined(runtime, at_boot, advice, each_boot)


def _refusal(facts: Facts, wanted: Wanted, switch_off: bool) -> Optional[Plan]:
    """The finding for a host whose threads can't be switched, or mustn't be; None for others.

    Raises NearmetalError when the user wants what the kernel can't do.
    """
    threads, cpus, kind = facts.smt, facts.topology, host_class(facts, wanted)
    if switch_off and kind == "xen_pv":
        # Checked first: a guest sees no second threads, but its CPUs may be such.
        return _says("refused", "Xen PV shows no real sibling lists: move to an HVM type", threads)
    several = threads.control is None and (threads.offline or second_threads(cpus))
    if threads.control not in _SWITCHES and not several:
        cause = "no Graviton has SMT" if facts.is_arm else "each vCPU of this host is a core of its own"
        return _says("not_applicable", f"one thread per core already: {cause}", threads)
    if switch_off and facts.burstable:
        reason = (
            "a burstable type earns CPU credits with all of its vCPUs, and half of them would have to spend the credits"
        )
        return _says("refused", reason, threads)
    if switch_off and wanted.wanted_by("threads") == "workload" and _has_one_core(cpus):
        reason = (
            "this host has one core: without its second thread one CPU is left for the workload, the kernel and all"
            " interrupts; set smt.threads: disabled yourself if you want that"
        )
        return _says("refused", reason, threads, "disabled")
    if switch_off and kind == "xen_hvm" and not threads.cpuidle and not wanted.get("allow_unverified"):
        reason = (
            "on a Xen type that shares its socket (no cpuidle) the sibling lists are only what the hypervisor claims;"
            " allow_unverified: true trusts them"
        )
        return _says("refused", reason, threads)
    if threads.control == "forceoff" and not switch_off:
        argument = " ".join(threads.arguments) or "nosmt=force"
        reason = f"{argument} locks SMT off until a boot without that argument"
        return _says("unchangeable", reason, threads, "enabled")
    second = union(*map(str, second_threads(cpus) or ()))
    if threads.control is None and switch_off and union(second, threads.removable) != threads.removable:
        sentence = (
            f"smt.threads: disabled needs CPUs {second} offline, but this kernel can take only"
            f" {threads.removable or 'none'} offline; use CpuOptions of the EC2 API instead"
        )
        return _CPUS.impossible(wanted, sentence, _now(threads), "disabled")
    return None


def _has_one_core(cpus: TopologyFacts) -> bool:
    """Whether the host has one core; where no cores are listed, two CPUs of a host with SMT are its threads."""
    return len(cpus.cores) < 2 if cpus.cores is not None else len(cpus.cpus_online or ()) <= 2


def _runtime(facts: Facts, threads: SmtFacts, cpus: TopologyFacts, switch_off: bool, wanted: Wanted) -> Plan:
    requested, goal = _THREADS.value(wanted), "disabled" if switch_off else "enabled"
    reason = (
        "as the kernel booted" if requested == "kernel" else "one thread has the core for itself" if switch_off else ""
    )
    reason = reason or "both threads of each core work: more throughput, less even latency"
    left_offline = Plan()
    if _one_by_one(threads, cpus, requested, switch_off):
        before, after = threads.offline or "", _offline_after(facts, threads, cpus, requested, switch_off)
        knob, as_wanted = _CPUS, before == after
        somebodys = difference(after, threads.kernel_offline)
        left_offline = _left_offline(threads, somebodys) if somebodys and not switch_off else Plan()
        if switch_off or not as_wanted:
            threads = threads._replace(control=None)  # it doesn't show these threads
    else:
        knob, before, after = _THREADS, threads.control or "", "off" if switch_off else "on"
        as_wanted = before == after or (switch_off and before == "forceoff")
    if as_wanted:
        return joined(_says("ok", reason, threads, goal), left_offline)
    action = knob.action(knob.wanted_by(wanted), before, after, reason)
    return joined(Plan((action,)), _says("would_change", reason, threads, goal), left_offline)


def _one_by_one(threads: SmtFacts, cpus: TopologyFacts, requested: str, switch_off: bool) -> bool:
    """Whether the threads are switched by their `online` files.

    That is so without smt/control, and where CPUs are offline while it says on: then `off` takes the last thread of a
    core whose first one is offline, `on` does nothing, and the way back from `off` brings all CPUs online.
    """
    if threads.control is None:
        return True
    second = union(*map(str, second_threads(cpus) or ()))
    removable = union(second, threads.removable) == threads.removable
    by_kernel = switch_off and (requested == "kernel" or not removable)
    return threads.control == "on" and bool(threads.offline) and cpus.cores is not None and not by_kernel


def _offline_after(facts: Facts, threads: SmtFacts, cpus: TopologyFacts, requested: str, switch_off: bool) -> str:
    """The CPUs that are to be offline. What somebody took offline stays so, unless it looks like SMT switched off."""
    offline = threads.offline or ""
    if switch_off and requested != "kernel":
        return union(offline, *map(str, second_threads(cpus) or ()))
    original, set_values = facts.originals.get((_CPUS.lever, ""), (None, ()))
    if original is not None:
        kept = difference(offline, difference(union(*map(str, set_values)), str(original)))
        if kept != offline:
            return kept
    if second_threads(cpus):
        return offline
    return threads.kernel_offline if requested == "kernel" else ""


def _left_offline(threads: SmtFacts, cpus: str) -> Plan:
    """The advice about CPUs that somebody took offline one by one."""
    names = f"CPU {cpus} is" if cpus.isdigit() else f"CPUs {cpus} are"
    sentence = (
        f"{names} offline although SMT is on, and not by nearmetal: left alone; to bring one back:"
        f" echo 1 > {CPU}/cpuN/online"
    )
    return _says("advice", sentence, threads)


def _at_boot(facts: Facts, threads: SmtFacts, requested: str, wanted: Wanted) -> Plan:
    if threads.control is None:
        reason = "this kernel has no smt/control, so it doesn't know nosmt either: use method: runtime"
        return _NOSMT.at("").says("not_applicable", reason, None, "nosmt")
    text = "nosmt" if requested == "disabled" else None
    reason = "second threads never start, so nothing at boot is sized for them; at run time it is too late for that"
    return plan_argument(facts, wanted, _NOSMT, text, reason)


def _advice(facts: Facts, threads: SmtFacts) -> Plan:
    """What the operator should know beside the change."""
    sentences = []
    kind = facts.platform.host_class
    if kind == "nitro" and threads.control in _SWITCHES and not facts.burstable:
        sentences.append(
            "CpuOptions ThreadsPerCore=1, at launch or by ModifyInstanceCpuOptions on a stopped instance,"
            " does the same before the kernel boots; a change of the instance type resets it"
        )
    if threads.maxcpus is not None:
        sentences.append(_about_maxcpus(facts, threads.maxcpus))
    return _THREADS.advises(sentences, _now(threads))


def _about_maxcpus(facts: Facts, maxcpus: str) -> str:
    """AWS's talk of 2017 says maxcpus=63 for 128 vCPUs: the last number of the first half. maxcpus counts."""
    present = len(facts.topology.cpus_present or ())
    sentence = (
        f"maxcpus={maxcpus} is on the kernel command line: it counts CPUs, relies on their numbering,"
        " and udev may bring the other CPUs online again"
    )
    if is_number(maxcpus) and present == 2 * (int(maxcpus) + 1):
        sentence += (
            f"; {maxcpus} is the number of the last CPU of the first half, one less than half of"
            f" {present}, so a core stays unused: half is {int(maxcpus) + 1}"
        )
    return sentence + "; remove it and use threads: disabled"


def _says(status: str, reason: str, threads: SmtFacts, goal: Optional[str] = None) -> Plan:
    return _THREADS.says(status, reason, _now(threads), goal)


def _now(threads: SmtFacts) -> str:
    if threads.control is not None:
        return _SHOWN.get(threads.control, threads.control)
    return f"offline: {threads.offline}" if threads.offline else "all CPUs online"


CONCERN = tuning(
    NAME,
    tmpfiles,
    knobs=KNOBS,
    manner={"method": METHOD, "persist": PERSIST, "allow_unverified": CONSENT},
    domains=("platform", "topology", "smt", "boot", "unit", "files"),
    decide=[_decide],
)
