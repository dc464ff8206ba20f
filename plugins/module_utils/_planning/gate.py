# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host may be tuned at all, which every concern checks first. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Tuple

from .._error import NearmetalError
from .._facts.facts import Facts
from .._facts.platform import INSTANCE_TYPE, is_burstable
from .._plan import Finding, Wanted
from .._words import shown

# The class of a host that may not be tuned, and how the reason begins.
OUTSIDE = {"not_ec2": "this host doesn't look like EC2", "container": "this is a container"}


def host_class(facts: Facts, wanted: Wanted) -> str:
    """The host's class; with `allow_not_ec2` a host outside EC2 counts as nitro or metal by its hypervisor flag."""
    platform = facts.platform
    if platform.host_class == "not_ec2" and wanted.get("allow_not_ec2"):
        return "metal" if platform.hypervisor_flag is False else "nitro"
    return platform.host_class


def with_type(facts: Facts, wanted: Wanted) -> Facts:
    """The facts with the type that `instance_type` names, where the host doesn't know its type, as on Xen.

    Raises NearmetalError for a text that is no type.
    """
    name, platform = wanted.get("instance_type"), facts.platform
    if not name:
        return facts
    if not INSTANCE_TYPE.fullmatch(name):
        raise NearmetalError(f"instance_type is a type of EC2 such as t2.large, not {shown(name)}")
    if platform.instance_type is not None or platform.host_class not in ("xen_pv", "xen_hvm"):
        return facts
    return facts._replace(platform=platform._replace(instance_type=name, burstable=is_burstable(name)))


# What a T2 has on Xen: vCPUs, each a core of its own, and MiB of memory.
_T2 = ((1, 512), (1, 1024), (1, 2048), (2, 4096), (2, 8192), (4, 16384), (8, 32768))
_MOST_STOLEN = 10  # of 1,000: EC2 doesn't oversubscribe the CPUs of other types
_NAME_THE_TYPE = "name its type with instance_type, or with tune_instance_type of the role tune"


def may_be_burstable(facts: Facts) -> str:
    """Why a Xen host of unknown type may be a T2, in a sentence that asks for the type; empty for other hosts.

    Needs the domains `topology` and `kernel`.
    """
    platform, topology, kernel = facts.platform, facts.topology, facts.kernel
    if platform.host_class != "xen_hvm" or platform.burstable is not None:
        return ""
    if loses_time(facts):
        share = (kernel.stolen or 0) / 10
        return f"{share:.1f} % of its CPU time went to other guests, as on a T2 without credits; {_NAME_THE_TYPE}"
    if not topology.memory or set(kernel.drivers.values()) - {"vif"}:
        return ""
    cpus, mib = len(topology.cpus_online or ()), topology.memory / 2**20
    one_thread = len(topology.cores or ()) == cpus
    if one_thread and any(cpus == count and 0.8 * size < mib <= size for count, size in _T2):
        return f"{cpus} vCPUs, {mib / 1024:.1f} GiB and no network driver but Xen's own, as a T2 has; {_NAME_THE_TYPE}"
    return ""


def loses_time(facts: Facts) -> bool:
    """Whether other guests took so much CPU time since the boot that the host may be a T2."""
    return (facts.kernel.stolen or 0) > _MOST_STOLEN


def gate_refusal(concern: str, knob: str, facts: Facts, wanted: Wanted) -> Tuple[Finding, ...]:
    """The finding that ends planning on a host that may not be tuned; empty on other hosts."""
    reason = _outside_reason(facts, wanted, "tunes it")
    return (Finding(concern, knob, "refused", reason, reference="docs/host_classes.md"),) if reason else ()


def gate_remark(concern: str, knob: str, facts: Facts, wanted: Wanted) -> Tuple[Finding, ...]:
    """The same for a concern that only checks: checks do no harm, so nothing is refused."""
    reason = _outside_reason(facts, wanted, "checks it")
    return (Finding(concern, knob, "not_applicable", reason, reference="docs/host_classes.md"),) if reason else ()


def _outside_reason(facts: Facts, wanted: Wanted, verb: str) -> str:
    """Why this host may not be tuned, and what a concern `verb` with `allow_not_ec2`; empty when it may."""
    kind = host_class(facts, wanted)
    if kind == "container":
        return f"{OUTSIDE[kind]}: its kernel belongs to the host; run nearmetal on the host"
    if kind == "not_ec2":
        names = "role tune: tune_allow_not_ec2, command plan: --allow-not-ec2"
        return f"{OUTSIDE[kind]}; allow_not_ec2: true ({names}) {verb} anyway"
    return ""
