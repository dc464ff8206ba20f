# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check: what no tuning can make up for. It changes nothing. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Tuple

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._facts.kernel import KernelFacts
from ..._facts.platform import PlatformFacts
from ..._facts.sysctl import TW_RECYCLE
from ..._facts.time_source import AMAZON, PTP_DEVICE, TimeSourceFacts
from ..._plan import Plan, Wanted, joined
from ..._planning.bounds import EVERY
from ..._planning.gate import host_class
from ..._planning.knob import Knob, options_of
from ..._planning.skeleton import checking
from ..._planning.waivers import is_day
from ..._words import shown
from .advisories import ADVISORIES, Advisory, about, end_of_life
from .instance_types import ENA_ATTACHES, ENA_MINIMUM, driver_of, ena_kernel, needs_new_ena, unsuited
from .pressure import KNOBS as PRESSURE
from .pressure import pressure

NAME = "kernel_check"
WORKLOADS = ("hpc", "low_latency", "sap_hana")  # for which some instance types are wrong

_KERNEL = Knob(NAME, "kernel", reference="AWS, 2017")
_DISTRIBUTION = Knob(NAME, "distribution", reference="the distributions' own dates of support")
_VIRTUALIZATION = Knob(NAME, "virtualization", reference="UnixBench on PV and HVM, 2014")
_NETWORK_DRIVER = Knob(NAME, "network_driver", reference="AWS, 2017; Aerospike, 2014")
_ENA_DRIVER = Knob(NAME, "ena_driver", reference="ENA driver guide")
_STEAL = Knob(NAME, "steal", reference="AWS, 2017; Aerospike, 2014")
_TIME = Knob(NAME, "time_source", reference="EC2 User Guide, Amazon Time Sync Service")
_WORKLOAD = Knob(
    NAME, "workload", spec={"type": "list", "elements": "str", "choices": list(WORKLOADS), "default": []}, bound=EVERY
)
_BULK = Knob(NAME, "bulk_transmission", reference="Netflix, 2016; Linux 3.18")
_TW_RECYCLE = Knob(NAME, "tw_recycle", place=TW_RECYCLE, reference="Linux 4.12")
_ADVISORIES = Knob(NAME, "advisories", reference="docs/kernel_check.md#known-faults")
_REVIEW = Knob(NAME, "review_after", spec={"type": "str", "default": ""}, reference="UnixBench on PV and HVM, 2014")
KNOBS = (
    *(_KERNEL, _DISTRIBUTION, _VIRTUALIZATION, _NETWORK_DRIVER, _ENA_DRIVER, _BULK, _TW_RECYCLE, _ADVISORIES, _STEAL),
    *PRESSURE,
    *(_TIME, _WORKLOAD, _REVIEW),
)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "minimum_kernel": {"type": "raw", "default": "3.10"},
    "maximum_steal_percent": {"type": "int", "range": (0, 100), "default": 1},
    **options_of((_WORKLOAD, _REVIEW)),
}

_AMAZON_SERVER = f"server {AMAZON[0]} prefer iburst minpoll 4 maxpoll 4"
_GAIN = (
    "UnixBench, 2014: index 1054.8 on PV and 2716.7 on HVM of the same type; its 1776.1 for one"
    " size smaller is doubtful, because the smaller type copied files faster than the larger one"
)


def _minimum(wanted: Wanted) -> Tuple[int, ...]:
    """The oldest kernel that is new enough. Raises NearmetalError when minimum_kernel is no version."""
    requested = str(wanted.get("minimum_kernel") or "3.10")
    minimum = _numbers(requested) if re.fullmatch(r"[0-9]{1,5}(?:\.[0-9]{1,5}){0,2}", requested, re.ASCII) else None
    if minimum is None:
        raise NearmetalError(f"kernel_check.minimum_kernel must be a version such as 5.10, not {shown(requested)}")
    return minimum


def _require(wanted: Wanted) -> None:
    _minimum(wanted)
    day = wanted.get("review_after")
    if day and not is_day(day):
        raise NearmetalError(f"kernel_check.review_after must be a day such as 2027-06-30, not {shown(day)}")


def _look(facts: Facts, wanted: Wanted) -> Plan:
    platform, kernel = facts.platform, facts.kernel
    of_type = platform.instance_type or str(wanted.get("instance_type") or "") or None
    on_ec2 = platform.host_class != "not_ec2"
    return joined(
        _kernel(platform, _minimum(wanted)),
        _distribution(platform, kernel),
        _virtualization(platform.host_class),
        _driver(facts, wanted, kernel, of_type)
        if on_ec2
        else _NETWORK_DRIVER.says("not_applicable", "outside EC2 NICs have other drivers"),
        _ena(platform, kernel, of_type),
        _bulk(platform),
        _tw_recycle(facts.sysctl),
        _known_faults(platform, kernel),
        _steal(platform, kernel, int(wanted.get("maximum_steal_percent") or 0)),
        pressure(facts.counters),
        _time_source(facts.time_source, on_ec2),
        *(_type(facts, of_type, workload) for workload in wanted.get("workload") or ()),
        _review(kernel, wanted.get("review_after")),
    )


def _kernel(platform: PlatformFacts, minimum: Tuple[int, ...]) -> Plan:
    oldest = ".".join(map(str, minimum))
    version = platform.kernel_version
    if version is None:
        return _KERNEL.says("unknown", "the kernel's release contains no version", platform.kernel, oldest)
    if version >= minimum:
        return _KERNEL.says("ok", f"{oldest} or newer", platform.kernel, oldest)
    reason = (
        f"this kernel is older than {oldest}: persistent grants, newer clocks and memory management are"
        " missing; how much they bring depends on the application (AWS ran ebizzy with another"
        " command line on each of two hosts, so its figures don't compare kernels)"
    )
    return _KERNEL.says("advice", reason, platform.kernel, oldest)


def _distribution(platform: PlatformFacts, kernel: KernelFacts) -> Plan:
    name, version = platform.distribution or "", platform.distribution_version or ""
    end = end_of_life(name, version)
    release = f"{name} {version}".strip() or None
    if end is None:
        return _DISTRIBUTION.says("unknown", "nearmetal doesn't know its end of life", release)
    if kernel.today > end:
        reason = (
            f"public support ended on {end}: no fixes, old kernel, old ENA driver; plan to move to a supported release"
        )
        return _DISTRIBUTION.says("advice", reason, release)
    return _DISTRIBUTION.says("ok", f"publicly supported until {end}", release)


def _virtualization(kind: str) -> Plan:
    if kind != "xen_pv":
        return _VIRTUALIZATION.says("ok", "hardware virtualization or metal", kind)
    reason = (
        "paravirtual (PV): each system call and page fault goes through the hypervisor, and there is"
        " no enhanced networking; move to an HVM image"
    )
    return Plan(findings=(_VIRTUALIZATION.finding("advice", reason, kind, gain=_GAIN),))


def _driver(facts: Facts, wanted: Wanted, kernel: KernelFacts, of_type: Optional[str]) -> Plan:
    """The finding about the driver in use and the one that the type offers; on Xen only the option names the type."""
    drivers = " ".join(sorted(set(kernel.drivers.values()))) or None
    offered = "ena" if host_class(facts, wanted) in ("nitro", "metal") else driver_of(of_type)
    if drivers is None:
        return _NETWORK_DRIVER.says("unknown", "no NIC names its driver", None, offered)
    used = {"ena", "ixgbevf"} & set(kernel.drivers.values())
    if used and (offered in used or offered in (None, "none")):
        return _NETWORK_DRIVER.says("ok", "enhanced networking is in use", drivers)
    if offered == "none":
        reason = f"{of_type} has no enhanced networking, and its NICs run on {drivers}: newer types have it"
        return _NETWORK_DRIVER.says("advice", reason, drivers)
    if offered is not None and host_class(facts, wanted) in ("xen_hvm", "xen_pv"):
        reason = (
            f"{of_type} offers {offered}, but the NICs run on {drivers}: install the driver in the image,"
            " then set the instance's attribute while it is stopped (nearmetal.ec2.enhanced_networking)"
        )
        return _NETWORK_DRIVER.says("advice", reason, drivers, offered)
    if offered is not None:
        reason = f"every Nitro and metal type has ENA, but the NICs run on {drivers}: is this EC2?"
        return _NETWORK_DRIVER.says("advice", reason, drivers, offered)
    reason = (
        f"the NICs run on {drivers}, Xen's split driver; most HVM types since c3 offer ixgbevf or ENA"
        " (nearmetal.ec2.enhanced_networking tells what this type offers, and so does this check with"
        " the option instance_type)"
    )
    return _NETWORK_DRIVER.says("advice", reason, drivers)


def _ena(platform: PlatformFacts, kernel: KernelFacts, of_type: Optional[str]) -> Plan:
    """The finding about the driver's version and the version that this and newer types need."""
    if "ena" not in kernel.drivers.values():
        return Plan()
    version = kernel.ena_version
    numbers = _numbers(version) if version is not None and version != platform.kernel else None
    least = ".".join(map(str, ENA_MINIMUM))
    old = None
    if numbers is not None and numbers < (5,):
        old = numbers < ENA_MINIMUM
    elif platform.kernel_version is not None:
        build = (platform.kernel_build or (0,))[0]
        old = (*platform.kernel_version, build) < ena_kernel(platform.distribution, platform.distribution_version)
    release = version or (f"of kernel {platform.kernel}" if platform.kernel else None)
    if old is None:
        return _ENA_DRIVER.says("unknown", "the driver's version isn't known", release, least)
    if not old:
        reason = f"ENA {least} or newer, as Nitro v4 (most types of the 6th generation and later) needs"
        return _ENA_DRIVER.says("ok", reason, release, least)
    detached = numbers is not None and numbers < ENA_ATTACHES
    if needs_new_ena(of_type):
        reason = (
            f"older than ENA {least}, which {of_type} (Nitro v4) needs: expect resets and lost packets;"
            " upgrade the driver"
        )
    else:
        reason = (
            f"fine for this host, but older than ENA {least}: on a type of Nitro v4 (most of the 6th"
            " generation and later) it"
            f" {'does not attach, and the instance has no network' if detached else 'may fail'}; upgrade the"
            " driver first"
        )
    return _ENA_DRIVER.says("advice", reason, release, least)


def _steal(platform: PlatformFacts, kernel: KernelFacts, limit: int) -> Plan:
    stolen = kernel.stolen
    if stolen is None:
        return _STEAL.says("unknown", "/proc/stat shows no stolen time")
    share = f"{stolen / 10:.1f} %"
    if stolen <= limit * 10:
        return _STEAL.says("ok", f"at most {limit} % of CPU time was taken by other guests", share)
    if platform.burstable:
        reason = "a burstable type is slowed down when its credits are spent: look at its credits; tuning doesn't help"
    else:
        reason = (
            "EC2 oversubscribes CPUs only on T types: look for more threads than vCPUs, or for the"
            " overhead of a PV host"
        )
    return _STEAL.says("advice", reason, share, f"{limit} %")


def _type(facts: Facts, of_type: Optional[str], workload: str) -> Plan:
    """The finding for a type that doesn't suit the workload, whatever the tuning; none for others."""
    cores = facts.topology.cores
    if of_type is None:
        return Plan()
    unfit = unsuited(workload, of_type, len(cores) if cores is not None else None)
    if unfit is None:
        return Plan()
    advice = f"{unfit.better} would do"
    if workload == "sap_hana":
        advice = f"{unfit.better} is x86 with CPUs of its own; SAP's hardware directory says which sizes are certified"
    reason = f"{of_type} is wrong for {workload}: {unfit.reason}; {advice}"
    return _WORKLOAD._replace(reference=unfit.reference, place=workload).says("advice", reason, of_type, unfit.better)


def _bulk(platform: PlatformFacts) -> Plan:
    version = platform.kernel_version
    if version is None or version >= (3, 18):
        status = "unknown" if version is None else "ok"
        reason = "since Linux 3.18 several packets are handed to the NIC at once"
        return _BULK.says(status, reason, platform.kernel, "3.18")
    reason = (
        "before Linux 3.18 each packet is handed to the NIC on its own, which limits packets per second; a distribution"
        " may have added it to its kernel, as later ones of RHEL 7 have: upgrade, or measure"
    )
    return _BULK.says("advice", reason, platform.kernel, "3.18")


def _tw_recycle(parameters: Mapping[str, str]) -> Plan:
    now = parameters.get(TW_RECYCLE)
    if now is None:
        return Plan()
    if now == "0":
        return _TW_RECYCLE.says("ok", "no client behind NAT is dropped for its timestamps", now)
    reason = (
        "the kernel drops new connections of clients that share an address behind NAT, because each has timestamps of"
        " its own: set it to 0, also in /etc/sysctl.d; Linux 4.12 removed it"
    )
    return _TW_RECYCLE.says("advice", reason, now, "0")


def _known_faults(platform: PlatformFacts, kernel: KernelFacts) -> Plan:
    """A finding for each known fault that this host may have, or one that there is none."""
    version = (*platform.kernel_version, *(platform.kernel_build or ())) if platform.kernel_version else None
    of_amazon = "ena" in kernel.drivers.values() and kernel.ena_version != platform.kernel
    known = about(version, _numbers(kernel.ena_version) if of_amazon else None, platform.host_class, ADVISORIES)
    if not known:
        reason = f"none of the {len(ADVISORIES)} known faults of drivers and kernels affects this host's versions"
        return _ADVISORIES.says("ok", reason)
    plans = []
    for entry in known:
        stale = "; this entry was to be read again by then" if kernel.today > entry.expires else ""
        release = f"ENA {kernel.ena_version}" if entry.ena is not None else platform.kernel
        reason = f"{entry.symptom}: {entry.do} (source read on {entry.checked}, valid until {entry.expires}{stale})"
        knob = _ADVISORIES._replace(place=entry.name, reference=entry.reference)
        plans.append(knob.says("advice", reason, release, _fixed_in(entry)))
    return joined(*plans)


def _fixed_in(entry: Advisory) -> Optional[str]:
    versions = next((part for part in (entry.ena, entry.kernel) if part is not None and part.fixed), None)
    return ".".join(map(str, versions.fixed)) if versions is not None else None


def _time_source(facts: TimeSourceFacts, on_ec2: bool) -> Plan:
    """What the time service is configured to follow; whether it does so only the service knows (chronyc sources)."""
    wanted = f"{AMAZON[0]} or a PTP device"
    if facts.service is None:
        if not facts.visible:
            return _TIME.says("unknown", "systemd's control groups don't show which time service runs", None, wanted)
        reason = "neither chrony nor systemd-timesyncd nor ntpd runs, so nothing keeps the clock right: install chrony"
        return _TIME.says("advice", reason, None, wanted)
    if not facts.sources:
        reason = f"{facts.service} runs, and no file that nearmetal reads names its sources"
        return _TIME.says("unknown", reason, facts.service, wanted)
    sources = f"{facts.service}: {', '.join(sorted(facts.sources))}"
    if PTP_DEVICE in facts.sources:
        return _TIME.says("ok", f"{facts.service} is set to follow a PTP device of this host", sources, wanted)
    if AMAZON[0] in facts.sources:
        also = "; the host's ENA has a PTP clock, which is more accurate" if "ena" in facts.devices else ""
        return _TIME.says("ok", f"{facts.service} is set to follow the Amazon Time Sync Service{also}", sources, wanted)
    if not on_ec2:
        return _TIME.says("not_applicable", "Amazon's time service answers on EC2 alone", sources)
    line = f"NTP={AMAZON[0]} to timesyncd.conf" if facts.service == "systemd-timesyncd" else f"`{_AMAZON_SERVER}`"
    reason = (
        f"{facts.service} follows other servers; the Amazon Time Sync Service answers on the host's own link and needs"
        f" no internet: add {line}; don't mix it with servers that treat leap seconds differently"
    )
    return _TIME.says("advice", reason, sources, wanted)


def _review(kernel: KernelFacts, day: Optional[str]) -> Plan:
    if not day:
        return Plan()
    if kernel.today < day:
        return _REVIEW.says("ok", f"the next review is due on {day}", None, day)
    reason = (
        f"the review of {day} is due: look again at the instance type, its newer generations, the kernel and these"
        " findings, then set a later day"
    )
    return _REVIEW.says("advice", reason, None, day)


def _numbers(text: Optional[str]) -> Optional[Tuple[int, ...]]:
    match = re.match(r"[0-9]{1,5}(?:\.[0-9]{1,5}){0,3}", text or "", re.ASCII)
    return tuple(int(word) for word in match.group().split(".")) if match else None


CONCERN = checking(
    NAME,
    options=OPTIONS,
    knobs=KNOBS,
    domains=("platform", "kernel", "topology", "counters", "time_source", "sysctl"),
    look=_look,
    require=_require,
)
