# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts of a host, each domain on demand. PRIVATE to the collection."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Container, Iterable, Mapping, NamedTuple, Tuple

from .._error import NearmetalError
from .._plan import Action, Value
from .host import Host

if TYPE_CHECKING:
    # For the types alone: a run loads the domains that it observes.
    from . import (
        blkfront,
        block,
        boot,
        clock,
        counters,
        cpu,
        hugepages,
        irqbalance,
        kernel,
        memory,
        network,
        numa,
        owners,
        platform,
        power,
        routes,
        running,
        service_load,
        services,
        smt,
        time_source,
        topology,
        unit,
    )
    from .topology import Node


# A domain that wasn't requested. Who plans names the domains that it reads, and finds all of them observed.
UNOBSERVED: Any = None


class Facts(NamedTuple):
    """What was observed on a host. A domain that wasn't requested is UNOBSERVED."""

    platform: platform.PlatformFacts = UNOBSERVED
    topology: topology.TopologyFacts = UNOBSERVED
    clock: clock.ClockFacts = UNOBSERVED
    cpu: cpu.CpuFacts = UNOBSERVED
    smt: smt.SmtFacts = UNOBSERVED
    power: power.PowerFacts = UNOBSERVED
    hugepages: hugepages.HugepageFacts = UNOBSERVED
    memory: memory.MemoryFacts = UNOBSERVED
    numa: numa.NumaFacts = UNOBSERVED
    kernel: kernel.KernelFacts = UNOBSERVED
    counters: counters.CounterFacts = UNOBSERVED
    time_source: time_source.TimeSourceFacts = UNOBSERVED
    boot: boot.BootFacts = UNOBSERVED
    owners: owners.OwnersFacts = UNOBSERVED
    unit: unit.UnitFacts = UNOBSERVED
    network: network.NetworkFacts = UNOBSERVED
    irqbalance: irqbalance.IrqbalanceFacts = UNOBSERVED
    routes: routes.RoutesFacts = UNOBSERVED
    block: block.BlockFacts = UNOBSERVED
    blkfront: blkfront.BlkfrontFacts = UNOBSERVED
    running: running.RunningFacts = UNOBSERVED
    listening: Tuple[int, ...] = UNOBSERVED  # TCP ports
    services: Mapping[str, services.Process] = UNOBSERVED  # running service → its main process
    service_load: Mapping[str, service_load.ServiceLoad] = UNOBSERVED  # running service → its load
    sysctl: Mapping[str, str] = UNOBSERVED  # key → value, for the keys that concerns manage
    files: Mapping[str, str] = UNOBSERVED  # path → text of each file of nearmetal
    # (lever, place) → the value before nearmetal, and the values that nearmetal has set since then. The engine takes
    # them from the journal; facts that were only observed have none.
    originals: Mapping[Tuple[str, str], Tuple[Value, Tuple[Value, ...]]] = {}
    before_boot: Container[Tuple[str, str]] = ()  # of these places, those that nearmetal last set before this boot
    setter: Callable[[str], str] = lambda _path: ""  # who seems to set a file of the kernel, looked for when asked

    @property
    def is_arm(self) -> bool:
        """Whether its CPUs are Graviton's."""
        return self.platform.architecture == "aarch64"

    @property
    def burstable(self) -> bool:
        """Whether its type is known to be burstable."""
        return bool(self.platform.burstable)

    @property
    def online(self) -> Tuple[int, ...]:
        """The CPUs that are online, as far as the kernel says so."""
        return (self.topology.cpus_online if self.topology is not UNOBSERVED else None) or ()

    @property
    def nodes(self) -> Tuple[Node, ...]:
        """The NUMA nodes that the kernel shows."""
        return self.topology.nodes

    def host_value(self, what: str, where: str, now: Value) -> Value:
        """The value that a place, which reads `now`, has without nearmetal; in a table element by element."""
        original, written = self.originals.get((what, where), (None, ()))
        if isinstance(now, Mapping):
            tables = [table for table in written if isinstance(table, Mapping)]
            before = original if isinstance(original, Mapping) else {}
            return {
                name: before.get(name, part) if any(table.get(name) == part for table in tables) else part
                for name, part in now.items()
            }
        return original if now in written and original is not None else now


# Domain → its module, where the names differ. A new domain is a module and a field of Facts.
_MODULES = {"files": "native_files"}
DOMAINS = tuple(name for name in Facts._fields if name not in ("originals", "before_boot", "setter"))


def observe(host: Host, domains: Iterable[str]) -> Facts:
    """Observe these domains, each once.

    Raises NearmetalError for a domain that isn't in DOMAINS.
    """
    domains_observed = {}
    for name in dict.fromkeys(domains):
        if name not in DOMAINS:
            raise NearmetalError("There are no facts named {!r}: there are {}.".format(name, ", ".join(DOMAINS)))
        domains_observed[name] = _module(name).observe(host)
    return Facts(**domains_observed)


def _module(domain: str) -> Any:
    """The module of a domain, loaded when it is needed, because loading costs milliseconds."""
    return import_module(f"{__package__}.{_MODULES.get(domain, domain)}")


def project(facts: Facts, actions: Iterable[Action]) -> Facts:
    """The facts as they will be when the actions are done; nothing is observed.

    An action's `what` names a fact such as `clock.current`, or with `where` an entry of a
    table such as `files` or `boot.arguments`. An action on a fact that isn't observed changes none.
    """
    for action in actions:
        domain, _dot, name = action.what.partition(".")
        if domain not in DOMAINS or getattr(facts, domain) is UNOBSERVED:
            continue
        before = getattr(facts, domain)
        after: Any
        if isinstance(before, Mapping):
            after = _entry(before, action)
        elif name in before._fields:
            present = getattr(before, name)
            value = _entry(present, action) if action.where else _with(present, action.after)
            after = before._replace(**{name: value})
        else:
            continue
        if action.what == "network.affinity" and facts.topology is not UNOBSERVED:
            xen = facts.platform.host_class in ("xen_hvm", "xen_pv")
            after = _module("network").project_delivery(before, after, action.where, facts.online, xen)
        facts = facts._replace(**{domain: after})
        if domain == "smt" and facts.topology is not UNOBSERVED:
            threads, cpus = _module("smt").project(before, after, facts.topology)
            facts = facts._replace(smt=threads, topology=cpus)
            if facts.power is not UNOBSERVED:
                facts = facts._replace(power=_module("power").project(facts.power, cpus.cpus_online or ()))
    return facts


def _entry(table: Any, action: Action) -> Any:
    """The table with the action's entry as it will be; any other value is replaced."""
    if not isinstance(table, Mapping):
        return action.after
    after = {key: value for key, value in table.items() if key != action.where}
    if action.after is not None:
        after[action.where] = _with(table.get(action.where), action.after)
    return after


def _with(present: Any, after: Any) -> Any:
    """A table with the elements that an action sets; another value is replaced."""
    return {**present, **after} if isinstance(present, Mapping) and isinstance(after, Mapping) else after
