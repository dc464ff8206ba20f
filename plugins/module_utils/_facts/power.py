# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about idle states and frequencies. PRIVATE to the collection.

There is no list of instance types that let their guest choose these: a host has the
files or lacks them.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .._parse import cmdline, cpulist
from . import sys_files
from .host import Host
from .topology import CPU, cpu_ids

CPUFREQ = CPU + "/cpufreq"
UNCORE = CPU + "/intel_uncore_frequency"
FIXING = "performance"  # under this governor intel_pstate and amd-pstate fix the preference to the same word

STATE = re.compile(r"state[0-9]{1,2}", re.ASCII)
# A frequency domain: policy0, or cpu0 on a kernel older than 4.3.
DOMAIN = re.compile(r"(?:policy|cpu)[0-9]{1,5}", re.ASCII)
# Of the uncore: package_00_die_00, or uncore00 where the firmware divides it (TPMI).
PACKAGE = re.compile(r"package_[0-9]{2}_die_[0-9]{2}|uncore[0-9]{2}", re.ASCII)
CPU_NAME = re.compile(r"cpu([0-9]{1,5})", re.ASCII)


class IdleState(NamedTuple):
    """One way to idle, the shallowest first."""

    key: str  # state0, state1, …: the kernel's directory
    name: str  # POLL, C1, C1E, C6; C1-HSW before Linux 4.9; C1_ACPI
    latency: int  # µs to wake up from it
    default: bool  # whether the kernel uses it by default

    @property
    def polls(self) -> bool:
        """Whether the CPU doesn't idle at all in it, as in cpuidle's state 0, which the oldest kernels call C0."""
        return self.name.upper() in ("POLL", "C0")


class PowerFacts(NamedTuple):
    """C-states and P-states as the kernel offers them. None, or an empty table, is what the host doesn't have."""

    idle_states: Tuple[IdleState, ...]  # of the first CPU: EC2 has no hybrid types
    idle_disabled: Mapping[str, str]  # state → the CPUs that don't use it, as a kernel list
    idle_cpus: str  # CPUs that have idle states, as a kernel list
    idle_arguments: Tuple[str, ...]  # of the kernel: idle=, intel_idle.max_cstate=, processor.max_cstate=
    frequency_cpus: Mapping[str, str]  # frequency domain → its CPUs, offline ones too, as a kernel list
    governors: Mapping[str, str]  # frequency domain → governor; "": not known before its CPU is there
    governors_offered: Tuple[str, ...]  # by every domain
    preferences: Mapping[str, str]  # frequency domain → energy_performance_preference; "" as above
    preferences_offered: Tuple[str, ...]
    turbo: Optional[str]  # enabled | disabled; None: this host has no such switch
    biases: Mapping[str, str]  # cpu0 → energy_perf_bias, 0 to 15; "" as above
    uncore: Mapping[str, str]  # package → its lowest frequency, in kHz
    uncore_limits: Mapping[str, Tuple[str, str]]  # package → lowest frequency when the driver started, highest now
    profile: Optional[str]  # platform_profile, of the firmware
    profiles_offered: Tuple[str, ...]


def observe(host: Host) -> PowerFacts:
    """Read cpuidle, cpufreq and the command line; one file per CPU and idle state."""
    cpus = idle_cpus(host)
    domains = frequency_domains(host)
    arguments = host.kernel_arguments()
    lowest, highest = (table(host, packages(host), f"{file}_freq_khz") for file in ("initial_min", "max"))
    names = ("idle", "intel_idle.max_cstate", "processor.max_cstate")
    return PowerFacts(
        idle_states=_states(host, cpus[0]) if cpus else (),
        idle_disabled=disabled(host),
        idle_cpus=cpulist.render(cpus),
        idle_arguments=tuple(f"{name}={value}" for name in names for value in cmdline.values(arguments, name)),
        frequency_cpus=table(host, domains, "related_cpus"),
        governors=table(host, domains, "scaling_governor"),
        governors_offered=_offered(host, domains, "scaling_available_governors"),
        preferences=table(host, domains, "energy_performance_preference"),
        preferences_offered=_offered(host, domains, "energy_performance_available_preferences"),
        turbo=sys_files.TURBO.read(host),
        biases=biases(host),
        uncore=table(host, packages(host), "min_freq_khz"),
        uncore_limits={name: (lowest.get(name, ""), highest.get(name, "")) for name in packages(host)},
        profile=sys_files.PROFILE.read(host),
        profiles_offered=tuple((host.line(f"{sys_files.PROFILE.paths[0]}_choices") or "").split()),
    )


def idle_cpus(host: Host) -> List[int]:
    """The CPUs that have idle states, ascending."""
    return [cpu for cpu in cpu_ids(host) if host.exists(f"{CPU}/cpu{cpu}/cpuidle/state0")]


def disabled(host: Host) -> Dict[str, str]:
    """State → the CPUs that don't use it, as a kernel list, for every state."""
    cpus_of: Dict[str, List[int]] = {}
    for state, cpu, off in switches(host):
        cpus = cpus_of.setdefault(state, [])
        if off:
            cpus.append(cpu)
    return {state: cpulist.render(cpus) for state, cpus in sorted(cpus_of.items(), key=lambda item: _number(item[0]))}


def switches(host: Host) -> Iterator[Tuple[str, int, Optional[bool]]]:
    """State, CPU, and whether the state is disabled on the CPU; None when that can't be read."""
    for cpu in idle_cpus(host):
        for state in filter(STATE.fullmatch, host.names(f"{CPU}/cpu{cpu}/cpuidle")):
            word = host.line(f"{CPU}/cpu{cpu}/cpuidle/{state}/disable")
            yield state, cpu, None if word is None else word != "0"


def kernel_choice(host: Host) -> Optional[Dict[str, str]]:
    """State → CPUs that don't use it by default, as a kernel list; `default_status` decides."""
    cpus = idle_cpus(host)
    if not cpus:
        return None
    everywhere = cpulist.render(cpus)
    return {state.key: "" if state.default else everywhere for state in _states(host, cpus[0])}


def frequency_domains(host: Host) -> Tuple[str, ...]:
    """The frequency domains: policies, or CPUs of their own on an old kernel.

    A policy whose CPUs are all offline keeps its directory, but doesn't count: reading
    it is EBUSY, before Linux 5.19 it affects no CPU, and it takes no value.
    """
    policies = tuple(name for name in host.names(CPUFREQ) if DOMAIN.fullmatch(name))
    if not policies:
        policies = tuple(name for name in host.names(CPU) if DOMAIN.fullmatch(name) and host.exists(folder(name)))
    return tuple(sorted((name for name in policies if host.line(folder(name) + "/affected_cpus")), key=_number))


def biases(host: Host) -> Dict[str, str]:
    """cpu0 → energy performance bias, of the online CPUs that have one: Intel's, since Linux 5.2."""
    words = ((f"cpu{cpu}", host.line(f"{CPU}/cpu{cpu}/power/energy_perf_bias")) for cpu in cpu_ids(host))
    return {name: word for name, word in words if word is not None}


def packages(host: Host) -> Tuple[str, ...]:
    """The parts of the uncore whose frequency can be set."""
    return tuple(sorted(filter(PACKAGE.fullmatch, host.names(UNCORE))))


def folder(domain: str) -> str:
    """Where the files of a frequency domain or a part of the uncore are."""
    if PACKAGE.fullmatch(domain):
        return f"{UNCORE}/{domain}"
    return f"{CPUFREQ}/{domain}" if domain.startswith("policy") else f"{CPU}/{domain}/cpufreq"


def table(host: Host, domains: Tuple[str, ...], name: str) -> Dict[str, str]:
    """Frequency domain → the word in its file `name`, where it has one."""
    words = ((domain, host.line(f"{folder(domain)}/{name}")) for domain in domains)
    return {domain: word for domain, word in words if word is not None}


def project(before: PowerFacts, online: Iterable[int]) -> PowerFacts:
    """The facts as they will be once these CPUs are online, and no others.

    A CPU that comes brings a domain, whose words aren't known before it is there.
    """
    alive = set(online)
    known = {domain: cpulist.parse(cpus) for domain, cpus in before.frequency_cpus.items()}
    came = sorted(alive.difference(*known.values())) if known else []
    kind = next((re.sub("[0-9]", "", domain) for domain in known), "")
    cpus = {
        domain: before.frequency_cpus[domain]
        for domain, domain_cpus in known.items()
        if alive.intersection(domain_cpus)
    }
    cpus.update((f"{kind}{cpu}", str(cpu)) for cpu in came)

    governors, preferences = (
        {domain: words.get(domain, "") for domain in cpus if words} for words in (before.governors, before.preferences)
    )
    bias = {f"cpu{cpu}": before.biases.get(f"cpu{cpu}", "") for cpu in sorted(alive) if before.biases}
    return before._replace(frequency_cpus=cpus, governors=governors, preferences=preferences, biases=bias)


def _states(host: Host, cpu: int) -> Tuple[IdleState, ...]:
    states = []
    for key in sorted(filter(STATE.fullmatch, host.names(f"{CPU}/cpu{cpu}/cpuidle")), key=_number):
        path = f"{CPU}/cpu{cpu}/cpuidle/{key}/"
        latency = host.line(path + "latency") or ""
        states.append(
            IdleState(
                key=key,
                name=host.line(path + "name") or key,
                latency=int(latency) if re.fullmatch(r"[0-9]{1,9}", latency, re.ASCII) else 0,
                default=host.line(path + "default_status") != "disabled",
            )
        )
    return tuple(states)


def _offered(host: Host, domains: Tuple[str, ...], name: str) -> Tuple[str, ...]:
    lists = [(host.line(f"{folder(domain)}/{name}") or "").split() for domain in domains]
    return tuple(word for word in lists[0] if all(word in words for words in lists)) if lists else ()


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name) or 0)
