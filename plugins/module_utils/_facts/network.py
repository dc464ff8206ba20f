# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about network interfaces: queues, interrupts, steering, rings. PRIVATE to the collection.

Tables are keyed by the NIC's place, so that an action on one NIC is one entry; those whose
fields are knobs of their own ("0000:00:05.0/rx") by place and field.
Sets of CPUs are kernel lists ("0-3,8").
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Optional, Tuple, TypeVar

from .._error import NearmetalError
from .._parse import cpulist, cpumask, environment_file, kernel_counters, link_settings
from . import ethtool, interrupts, systemd
from .host import Host
from .native_files import COMPUTE_CPUS
from .nic import Nic, uppers
from .nic import observe as observe_nics

_Answer = TypeVar("_Answer")
# queue label → CPUs, as a kernel list
Table = Mapping[str, str]
# For planners, which import no parser.
listed, OFFLOAD_NAMES = cpulist.render, link_settings.FEATURES


class NetworkFacts(NamedTuple):
    """Every NIC, in the order in which they appeared, and tables by place. None is what the host doesn't say."""

    nics: Tuple[Nic, ...]
    uppers: Mapping[str, Tuple[str, ...]]  # bond, VLAN, bridge → interfaces below it
    default_route: Tuple[str, ...]  # interfaces that have one
    default_affinity: Optional[str]  # CPUs to which a new interrupt may go
    irqbalance: bool  # its daemon runs, and moves interrupts every 10 s
    isolated: Optional[str]  # CPUs that the command line keeps free of work (isolcpus=, nohz_full=)
    tickless: bool  # the kernel was built with NO_HZ_FULL, so it takes nohz_full=
    load: Mapping[int, float]  # CPU → share of its time in interrupts since boot, 0 to 1
    drivers: Mapping[str, str]  # place → driver's version
    affinity: Mapping[str, Table]
    effective: Mapping[str, Table]
    rps: Mapping[str, Table]
    rfs: Mapping[str, Mapping[str, int]]  # flows per receive queue
    xps: Mapping[str, Table]
    queues: Mapping[str, int]  # queue pairs now
    queues_max: Mapping[str, int]
    rings: Mapping[str, int]  # place/rx and place/tx → descriptors per queue
    rings_max: Mapping[str, Mapping[str, int]]
    coalesce: Mapping[str, int]  # place/field
    offloads: Mapping[str, bool]  # place/name
    fixed: Mapping[str, Tuple[str, ...]]  # offloads that can't be switched
    mtu: Mapping[str, int]
    txqueuelen: Mapping[str, int]
    defer_hard_irqs: Mapping[str, int]  # polls that find nothing before an interrupt comes back
    gro_flush_timeout: Mapping[str, int]  # ns before each such poll
    bql: Mapping[str, Mapping[str, int]]  # transmit queue → bytes in flight that are always allowed (limit_min)
    bql_max: Mapping[str, int]  # the most that a transmit queue is ever allowed (limit_max of the first)
    compute_cpus: Optional[str]  # CPUs that dedicated interrupts leave free, from the file that this collection writes
    ena_parameters: Tuple[str, ...]  # of the loaded driver; empty when it isn't loaded

    def nic(self, place: str) -> Optional[Nic]:
        """The NIC at this place."""
        return next((nic for nic in self.nics if nic.place == place), None)

    def nics_of(self, name: str) -> Tuple[str, ...]:
        """The NICs that carry the interface `name`: itself, or through bonds and VLANs those below it."""
        reached = [name]
        for lower in reached:
            reached += [lower for lower in self.uppers.get(lower, ()) if lower not in reached]
        return tuple(nic.name for nic in self.nics if nic.name in reached)

    def uppers_of(self, nic: Nic) -> Tuple[str, ...]:
        """The bonds, bridges and VLANs that this NIC carries."""
        return tuple(name for name in self.uppers if nic.name != name and nic.name in self.nics_of(name))

    def carries_default(self, nic: Nic) -> bool:
        """Whether a default route goes through this NIC, itself or by a bond, bridge or VLAN above it."""
        return any(nic.name in self.nics_of(name) for name in self.default_route)

    def as_dict(self) -> Dict[str, Any]:
        """Plain JSON: one entry per interface."""
        return {
            "interfaces": {nic.name: self._interface(nic) for nic in self.nics},
            "uppers": {name: list(self.nics_of(name)) for name in self.uppers},
            "default_route": list(self.default_route),
            "default_affinity": self.default_affinity,
            "irqbalance": self.irqbalance,
            "compute_cpus": self.compute_cpus,
            "ena_parameters": list(self.ena_parameters),
            "interrupt_load": {str(cpu): round(share, 4) for cpu, share in self.load.items() if share >= 0.01},
        }

    def _interface(self, nic: Nic) -> Dict[str, Any]:
        numbers = ("queues", "queues_max", "mtu", "txqueuelen", "defer_hard_irqs", "gro_flush_timeout", "bql_max")
        tables = ("affinity", "effective", "rps", "rfs", "xps", "bql")
        rings_max = self.rings_max.get(nic.place)
        return {
            "place": nic.place,
            "up": nic.up,
            "driver": nic.driver,
            "driver_version": self.drivers.get(nic.place),
            "node": nic.node,
            "interrupts": {vector.label: vector.irq for vector in nic.vectors},
            "surplus_interrupts": list(nic.surplus),
            **{name: getattr(self, name).get(nic.place) for name in numbers},
            **{name: dict(getattr(self, name).get(nic.place, {})) for name in tables},
            **{name: fields(getattr(self, name), nic.place) or None for name in ("rings", "coalesce", "offloads")},
            "rings_max": dict(rings_max) if rings_max is not None else None,
        }


def observe(host: Host) -> NetworkFacts:
    """Read /proc/interrupts, /proc/irq, /sys/class/net, and ask each driver."""
    nics = observe_nics(host, interrupts.observe(host))

    def asked(ask: Callable[[Host, str], Optional[_Answer]]) -> Dict[str, _Answer]:
        """Place → the driver's answer, where it has one."""
        return _known({nic.place: ask(host, nic.name) for nic in nics})

    channels, rings = asked(ethtool.channels), asked(ethtool.rings)
    offloads = asked(lambda host, name: ethtool.offloads(host, name, ethtool.feature_names(host, name)))
    switches = {place: {name: on for name, (on, _free) in table.items()} for place, table in offloads.items()}
    affinities = {nic.place: affinity(host, nic) for nic in nics}
    steered = {nic.place: steering(host, nic) for nic in nics}
    return NetworkFacts(
        nics=nics,
        uppers=uppers(host),
        default_route=_default_route(host),
        default_affinity=_list(host.line("/proc/irq/default_smp_affinity")),
        irqbalance=systemd.runs(host, "irqbalance.service"),
        isolated=_isolated(host),
        tickless=host.exists("/sys/devices/system/cpu/nohz_full"),
        load=_load(host),
        drivers={place: version for place, (_name, version) in asked(ethtool.driver).items()},
        affinity={place: wanted(table) for place, table in affinities.items()},
        effective={
            place: _known({label: vector.effective for label, vector in table.items()})
            for place, table in affinities.items()
        },
        rps={place: of_nic.rps for place, of_nic in steered.items()},
        rfs={place: of_nic.rfs for place, of_nic in steered.items()},
        xps={place: of_nic.xps for place, of_nic in steered.items()},
        queues={nic.place: queues_now(nic, channels.get(nic.place)) for nic in nics},
        queues_max={place: most["combined_max"] or most["rx_max"] for place, most in channels.items()},
        rings=_by_field({place: ring_sizes(sizes) for place, sizes in rings.items()}),
        rings_max={place: {name: sizes[name + "_max"] for name in ("rx", "tx")} for place, sizes in rings.items()},
        coalesce=_by_field(asked(ethtool.coalesce)),
        offloads=_by_field(switches),
        fixed={
            nic.place: tuple(name for name, (_on, free) in offloads.get(nic.place, {}).items() if not free)
            for nic in nics
        },
        mtu=_numbers(host, nics, "mtu"),
        txqueuelen=_numbers(host, nics, "tx_queue_len"),
        defer_hard_irqs=_numbers(host, nics, "napi_defer_hard_irqs"),
        gro_flush_timeout=_numbers(host, nics, "gro_flush_timeout"),
        bql={nic.place: bql(host, nic) for nic in nics},
        bql_max=_known({nic.place: host.number(bql_file(nic, nic.tx[0], "limit_max")) for nic in nics if nic.tx}),
        compute_cpus=environment_file.assignment(host.text(COMPUTE_CPUS, 4096) or "", "COMPUTE_CPUS"),
        ena_parameters=tuple(host.names("/sys/module/ena/parameters")),
    )


def fields(table: Mapping[str, Any], place: str) -> Dict[str, Any]:
    """Field → value of one NIC, from a table by place and field; empty for a driver without an answer."""
    prefix = place + "/"
    return {key[len(prefix) :]: value for key, value in table.items() if key.startswith(prefix)}


def _by_field(tables: Mapping[str, Mapping[str, Any]]) -> Dict[str, Any]:
    return {"{}/{}".format(place, field): value for place, table in tables.items() for field, value in table.items()}


def affinity(host: Host, nic: Nic) -> Dict[str, interrupts.Affinity]:
    """Where the interrupt of each queue may go."""
    return {vector.label: interrupts.affinity(host, vector.irq) for vector in nic.vectors}


def wanted(table: Mapping[str, interrupts.Affinity]) -> Dict[str, str]:
    """Queue label → CPUs that its interrupt may go to."""
    return _known({label: vector.wanted for label, vector in table.items()})


def project_delivery(
    before: NetworkFacts, after: NetworkFacts, place: str, online: Iterable[int], xen: bool
) -> NetworkFacts:
    """The facts after a change of a NIC's affinities, with the CPUs that its interrupts will be delivered to.

    x86 leaves an interrupt where it is if it may stay there (assign_vector_locked()); Xen's event channels go to the
    first CPU. All others are left out, because nobody knows their CPU, unless there is only one to choose.
    """
    usable, known, earlier = frozenset(online), before.effective.get(place, {}), before.affinity.get(place, {})
    table = {
        label: text for label, text in known.items() if after.affinity.get(place, {}).get(label) == earlier.get(label)
    }
    for label, text in after.affinity.get(place, {}).items():
        choice = [str(cpu) for cpu in cpus(text) if cpu in usable] if text != earlier.get(label) else []
        if choice and not xen and known.get(label) in choice:
            table[label] = known[label]
        elif choice and (xen or len(choice) == 1):
            table[label] = choice[0]
    return after._replace(effective={**before.effective, place: table})


def cpus(text: Optional[str]) -> Tuple[int, ...]:
    """The CPUs of a kernel list; empty for None. Raises NearmetalError for a text that isn't a kernel list."""
    return cpulist.parse(text or "")


class Steering(NamedTuple):
    """How the kernel spreads packets in software, per queue."""

    rps: Dict[str, str]
    rfs: Dict[str, int]
    xps: Dict[str, str]


def steering(host: Host, nic: Nic) -> Steering:
    """Read rps_cpus, rps_flow_cnt and xps_cpus. A NIC with one transmit queue has no xps_cpus to read."""
    rx, tx = (tuple(f"{way}-{queue}" for queue in numbers) for way, numbers in (("rx", nic.rx), ("tx", nic.tx)))
    folder = f"{nic.folder}/queues"
    return Steering(
        rps=_known({queue: _list(host.line(f"{folder}/{queue}/rps_cpus")) for queue in rx}),
        rfs=_known({queue: host.number(f"{folder}/{queue}/rps_flow_cnt") for queue in rx}),
        xps=_known({queue: _list(host.line(f"{folder}/{queue}/xps_cpus")) for queue in tx}),
    )


def queues_now(nic: Nic, channels: Optional[Mapping[str, int]]) -> int:
    """Queue pairs in use, by the driver, else by /sys, where mlx5 of Linux 5.3 to 6.0 lists each twice."""
    if channels is not None and (channels["combined"] or channels["rx"]):
        return channels["combined"] + channels["rx"]
    return len(nic.rx)


def ring_sizes(rings: Mapping[str, int]) -> Dict[str, int]:
    """The present sizes of the rings, without the largest possible ones."""
    return {name: rings[name] for name in ("rx", "tx")}


def bql(host: Host, nic: Nic) -> Dict[str, int]:
    """Transmit queue → bytes in flight that byte queue limits always allow."""
    return _known({f"tx-{queue}": host.number(bql_file(nic, queue, "limit_min")) for queue in nic.tx})


def bql_file(nic: Nic, queue: int, name: str) -> str:
    """A file of the byte queue limits of a transmit queue."""
    return "{}/queues/tx-{}/byte_queue_limits/{}".format(nic.folder, queue, name)


def _isolated(host: Host) -> Optional[str]:
    """The CPUs of both lists; without nohz_full= some kernels write "(null)" for no list."""
    texts = [host.line("/sys/devices/system/cpu/{}".format(name)) for name in ("isolated", "nohz_full")]
    if texts == [None, None]:
        return None
    return listed({cpu for text in texts if text not in (None, "(null)") for cpu in cpus(text)})


def _load(host: Host) -> Dict[int, float]:
    times = kernel_counters.cpu_times(host.text("/proc/stat") or "")
    return {cpu: spent.interrupts / spent.total for cpu, spent in times.items() if spent.total}


def _default_route(host: Host) -> Tuple[str, ...]:
    """Interfaces whose route has destination and mask 0, of IPv4 or IPv6."""
    rows, rows_of_ipv6 = (
        [line.split() for line in (host.text(f"/proc/net/{name}") or "").splitlines()]
        for name in ("route", "ipv6_route")
    )
    names = {words[0] for words in rows if len(words) > 7 and words[1] == words[7] == "00000000"}
    names |= {words[9] for words in rows_of_ipv6 if len(words) == 10 and words[:2] == ["0" * 32, "00"]} - {"lo"}
    return tuple(sorted(names))


def _numbers(host: Host, nics: Tuple[Nic, ...], name: str) -> Dict[str, int]:
    return _known({nic.place: host.number(f"{nic.folder}/{name}") for nic in nics})


def _known(answers: Mapping[str, Optional[_Answer]]) -> Dict[str, _Answer]:
    return {key: answer for key, answer in answers.items() if answer is not None}


def _list(mask: Optional[str]) -> Optional[str]:
    """A mask as a kernel list; None when it isn't a mask."""
    try:
        return cpulist.render(cpumask.parse(mask)) if mask is not None else None
    except NearmetalError:
        return None
