# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about SMT: which CPUs are second threads, and what switches them off. PRIVATE to the collection.

Second threads are those that the kernel lists as siblings; a CPU's number is never
computed from another one.
"""

from __future__ import annotations

import re
from typing import FrozenSet, NamedTuple, Optional, Tuple

from .._error import NearmetalError
from .._parse import cmdline, cpulist
from . import sys_files
from .host import Host
from .topology import CPU, Cpus, TopologyFacts, cpu_ids


class SmtFacts(NamedTuple):
    """SMT in the kernel. None is what the host doesn't say."""

    control: Optional[str]  # on | off | forceoff | notsupported | notimplemented; None: before Linux 4.19
    offline: Optional[str]  # CPUs that are present and not online, as a kernel list
    removable: str  # CPUs that the kernel can take offline, as a kernel list; CPU 0 often isn't one
    arguments: Tuple[str, ...]  # on the kernel's command line: nosmt, nosmt=force, mitigations=…,nosmt
    maxcpus: Optional[str]  # the last maxcpus= there
    kernel_offline: str  # the offline CPUs that maxcpus= leaves out, as a kernel list
    # Whether the guest chooses C-states. On Xen only types that fill a socket do: docs/ec2.md#idle-states-and-frequency
    cpuidle: bool


def observe(host: Host) -> SmtFacts:
    """Read smt/control, which CPUs can be switched, and the command line."""
    arguments = host.kernel_arguments()
    return SmtFacts(
        control=sys_files.SMT.read(host),
        offline=offline(host),
        removable=removable(host),
        arguments=disabling(arguments),
        maxcpus=cmdline.last(arguments, "maxcpus"),
        kernel_offline=kernel_offline(host),
        cpuidle=host.exists(CPU + "/cpu0/cpuidle"),
    )


def offline(host: Host) -> Optional[str]:
    """The CPUs that are present and not online, as a kernel list."""
    try:
        present, online = (cpulist.parse(host.line("{}/{}".format(CPU, name)) or "") for name in ("present", "online"))
    except NearmetalError:
        return None
    return cpulist.render(set(present) - set(online)) if present and online else None


def removable(host: Host) -> str:
    """The CPUs that have an `online` file, as a kernel list."""
    return cpulist.render(cpu for cpu in cpu_ids(host) if host.exists("{}/cpu{}/online".format(CPU, cpu)))


def disabling(arguments: Tuple[str, ...]) -> Tuple[str, ...]:
    """The kernel's arguments that switch SMT off."""
    texts = ["nosmt" if value is None else "nosmt=" + value for value in cmdline.values(arguments, "nosmt")]
    for value in cmdline.values(arguments, "mitigations"):
        if "nosmt" in (value or "").split(","):
            texts.append("mitigations={}".format(value))
    return tuple(texts)


def kernel_choice(host: Host) -> str:
    """The value of smt/control after a boot: off when the command line says so, else on."""
    return "off" if disabling(host.kernel_arguments()) else "on"


def kernel_offline(host: Host) -> str:
    """The offline CPUs that maxcpus= leaves out, as a kernel list; udev may have brought others of them online."""
    count = cmdline.last(host.kernel_arguments(), "maxcpus") or ""
    if not re.fullmatch("[0-9]{1,5}", count):
        return ""
    present = sorted(cpulist.parse(host.line(CPU + "/present") or ""))
    return cpulist.render(set(present[max(int(count), 1) :]).intersection(cpulist.parse(offline(host) or "")))


def union(*lists: Optional[str]) -> str:
    """The union of kernel lists, as one."""
    return cpulist.render(cpu for text in lists for cpu in cpulist.parse(text or ""))


def difference(text: str, *others: Optional[str]) -> str:
    """A kernel list without the CPUs of the others."""
    return cpulist.render(set(cpulist.parse(text)).difference(cpulist.parse(union(*others))))


def second_threads(cpus: TopologyFacts) -> Optional[Cpus]:
    """The online CPUs that aren't the first of their core; None when the host doesn't list siblings."""
    if cpus.cores is None:
        return None
    return tuple(sorted(cpu for core in cpus.cores for cpu in core[1:]))


def project(before: SmtFacts, after: SmtFacts, cpus: TopologyFacts) -> Tuple[SmtFacts, TopologyFacts]:
    """Both domains as they will be once CPUs have gone offline or come online.

    The siblings of CPUs that come online aren't known before.
    """
    if after.control != before.control:
        offline_now = union(before.offline, cpulist.render(second_threads(cpus) or ()))
        after = after._replace(offline=offline_now if after.control == "off" else "")
    offline = frozenset(cpulist.parse(after.offline or ""))
    online = tuple(cpu for cpu in cpus.cpus_present or () if cpu not in offline)
    known = frozenset(cpus.cpus_online or ()) >= frozenset(online)
    return after, cpus._replace(
        cpus_online=online,
        cpus_offline=tuple(sorted(offline)),
        sockets=_without(cpus.sockets, offline) if known else None,
        cores=_without(cpus.cores, offline) if known else None,
        caches=tuple(cache._replace(shared=_without(cache.shared, offline) or ()) for cache in cpus.caches),
        nodes=tuple(
            node._replace(cpus=remaining, cpulist=cpulist.render(remaining))
            for node in cpus.nodes
            for remaining in [tuple(cpu for cpu in node.cpus if cpu not in offline)]
        ),
    )


def _without(sets: Optional[Tuple[Cpus, ...]], offline: FrozenSet[int]) -> Optional[Tuple[Cpus, ...]]:
    if sets is None:
        return None
    remaining = (tuple(cpu for cpu in cpus if cpu not in offline) for cpus in sets)
    return tuple(cpus for cpus in remaining if cpus)
