# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of each NIC, by options for all NICs and by `interfaces`. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, NamedTuple, Sequence, Tuple

from .._error import NearmetalError
from .._facts.network import NetworkFacts, cpus
from .._facts.nic import Nic
from .._facts.topology import TopologyFacts
from .._plan import Plan, Wanted, joined
from .._words import shown
from .knob import Knob, options_of
from .options import Claims

_INTERFACES = "interfaces"


class Choice(NamedTuple):
    """The options of one NIC."""

    nic: Nic
    options: Mapping[str, Any]
    wanted: Wanted  # what is wanted of the concern, with who wants the options of this NIC

    def get(self, option: str) -> Any:
        """The option's value; None when it was left out."""
        return self.options.get(option)


def choices(concern: str, network: NetworkFacts, wanted: Wanted, knobs: Sequence[str]) -> Tuple[Choice, ...]:
    """Per NIC the value of each knob: that of `interfaces` for it (or a bond or VLAN above it), else that for all NICs.

    Raises NearmetalError for an interface that the host doesn't have, or that has no hardware below it, and for two
    entries that differ about one NIC. An interface that was lost since an earlier run is left out; see
    `absent_interfaces`.
    """
    named: Dict[str, Dict[str, Any]] = {}
    claims = Claims()
    for position, entry in enumerate(wanted.get("interfaces") or ()):
        given = {knob: entry[knob] for knob in knobs if entry.get(knob) is not None}
        where = f"{concern}.interfaces[{position}]"
        claims.claim(where, entry["name"], {} if wanted.stored else {"options": where})
        nic_names = _nics_of(network, wanted, entry["name"])
        if not nic_names and not wanted.stored:
            present = ", ".join(nic.name for nic in network.nics) or "none"
            raise NearmetalError(
                f"{concern}.interfaces: no hardware is behind an interface {shown(entry['name'])};"
                f" this host has {present}"
            )
        for name in nic_names:
            claims.claim(where, name, {} if wanted.stored else given)
            named.setdefault(name, {}).update(given)
    common = {knob: wanted.get(knob) for knob in knobs if wanted.get(knob) is not None}
    return tuple(
        Choice(nic, {**common, **for_entry}, wanted.for_entry("interfaces", for_entry))
        for nic, for_entry in ((nic, named.get(nic.name, {})) for nic in network.nics)
    )


def _nics_of(network: NetworkFacts, wanted: Wanted, name: str) -> Tuple[str, ...]:
    """The NICs that carry an interface, with those that did for an earlier run: a boot makes bonds, VLANs and names.

    A NIC that carries an interface of another entry by now belongs to that entry.
    """
    others = {nic for entry in wanted.get("interfaces") or () for nic in network.nics_of(entry["name"])}
    earlier = (nic for nic in network.nics if wanted.remembered.get((_INTERFACES, nic.place)) == name)
    return (*network.nics_of(name), *(nic.name for nic in earlier if nic.name not in others))


def named_interfaces(concern: str, network: NetworkFacts, wanted: Wanted) -> Plan:
    """The NICs of each entry to remember, and findings for interfaces of an earlier run that the host no longer has."""
    nics = {entry["name"]: _nics_of(network, wanted, entry["name"]) for entry in wanted.get("interfaces") or ()}
    reason = "{} is no longer on this host: it is left out"
    absent = (interfaces(concern).says("not_applicable", reason.format(name)) for name in nics if not nics[name])
    places = {(_INTERFACES, nic.place): name for name in nics for nic in network.nics if nic.name in nics[name]}
    return joined(*absent, Plan(remember=places))


def disruption(knob: Knob, network: NetworkFacts, choice: Choice, harm: str) -> str:
    """Why a change that stops the traffic of a NIC isn't made; empty where it may be.

    While nothing has a default route, every NIC may get it, but those about which an earlier run has decided.
    """
    if choice.wanted.get("allow_disruptive"):
        return ""
    undecided = choice.wanted.stored and (knob.name, knob.place) not in choice.wanted.remembered
    if network.carries_default(choice.nic):
        cause = "it carries the default route"
    elif undecided and not network.default_route:
        cause = "nothing has a default route yet, and it may get one"
    else:
        return ""
    return f"{cause}, and {harm}; allow_disruptive: true allows it"


def interfaces(concern: str, place: str = "") -> Knob:
    """The knob of findings about a NIC itself, or about no NIC."""
    return Knob(concern, _INTERFACES, reference="/sys/class/net of this host", place=place)


def options_per_nic(knobs: Iterable[Knob]) -> Dict[str, Dict[str, Any]]:
    """The options of the knobs: for all NICs, and in `interfaces` for those that it names."""
    common = options_of(knobs)
    entry = {"name": {"type": "str", "required": True}, **common}
    return {**common, "interfaces": {"type": "list", "elements": "dict", "options": entry}}


def for_nic(knob: Knob, nic: Nic, field: str = "") -> Knob:
    """The knob of a NIC, or of one field of its table."""
    return knob.at(f"{nic.place}/{field}" if field else nic.place, nic.name)


def driver_of(nic: Nic) -> str:
    """A NIC's driver as a sentence names it, also where it isn't known."""
    return nic.driver or "its driver"


def cpu_list(name: str, text: str, topology: TopologyFacts, stored: bool = False) -> Tuple[int, ...]:
    """The online CPUs that an option lists; of a list that an earlier run was given (`stored`), those still online.

    Raises NearmetalError, which names the option and what would be allowed.
    """
    online = topology.cpus_online or ()
    try:
        named = cpus(text)
    except NearmetalError as error:
        raise NearmetalError(f"{name}: {error}") from None
    if stored:
        return tuple(cpu for cpu in named if cpu in online)
    missing = [str(cpu) for cpu in named if cpu not in online]
    if missing or not named:
        obstacle = "it names no CPU"
        if missing:
            cpus_offline = f"CPU {missing[0]} isn't" if len(missing) == 1 else f"CPUs {', '.join(missing)} aren't"
            obstacle = f"{cpus_offline} online"
        raise NearmetalError(
            f"{name}: {shown(text)} can't be used: {obstacle}; the online CPUs are {topology.as_dict()['cpus_online']}"
        )
    return named
