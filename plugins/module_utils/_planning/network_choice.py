# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of each NIC: an option for all of them, unless one is named. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.network import NetworkFacts, cpus
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.nic import Nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import TopologyFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Value, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import Claims
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown


@dataclass(frozen=True)
class Choice:
    """The options of one NIC."""

    nic: Nic
    options: Mapping[str, Any]

    def get(self, option: str) -> Any:
        """The option's value; None when it was left out."""
        return self.options.get(option)


def choices(concern: str, network: NetworkFacts, wanted: Wanted, knobs: Sequence[str]) -> Tuple[Choice, ...]:
    """Per NIC the value of each knob: that of `interfaces` for its name (or a bond or VLAN above it), else the common.

    Raises NearmetalError for an interface that the host doesn't have, or that has no hardware below it, and for two
    entries about one; one that went since an earlier run is left out (`gone` tells it).
    """
    named: Dict[str, Dict[str, Any]] = {}
    claims = Claims()
    for position, entry in enumerate(wanted.get("interfaces") or ()):
        given = {knob: entry[knob] for knob in knobs if entry.get(knob) is not None}
        where = f"{concern}.interfaces[{position}]"
        claims.claim(where, entry["name"], {} if wanted.stored else {"options": where})
        below = network.below(entry["name"])
        if not below and not wanted.stored:
            here = ", ".join(one.name for one in network.nics) or "none"
            raise NearmetalError(
                f"{concern}.interfaces: no hardware is behind an interface {shown(entry['name'])}; this host has {here}"
            )
        for name in below:
            claims.claim(where, name, {} if wanted.stored else given)
            named.setdefault(name, {}).update(given)
    common = {knob: wanted.get(knob) for knob in knobs if wanted.get(knob) is not None}
    return tuple(Choice(one, {**common, **named.get(one.name, {})}) for one in network.nics)


def gone(concern: str, network: NetworkFacts, wanted: Wanted) -> Plan:
    """What to say of interfaces that an earlier run named, and that aren't there any more."""
    names = [entry["name"] for entry in wanted.get("interfaces") or () if not network.below(entry["name"])]
    told = [Finding(concern, "interfaces", "not_applicable", f"{name} isn't here any more: left out") for name in names]
    return Plan(findings=tuple(told))


def driver_of(nic: Nic) -> str:
    """A NIC's driver in a sentence, also where the host doesn't name it."""
    return nic.driver or "its driver"


def cpu_list(name: str, text: str, topology: TopologyFacts, stored: bool = False) -> Tuple[int, ...]:
    """The online CPUs that an option lists; NearmetalError names the option and what would be allowed.

    Of a list that an earlier run was given (`stored`), those that are left; maybe none.
    """
    online = topology.cpus_online or ()
    try:
        found = cpus(text)
    except NearmetalError as error:
        raise NearmetalError(f"{name}: {error}") from None
    if stored:
        return tuple(cpu for cpu in found if cpu in online)
    missing = [str(cpu) for cpu in found if cpu not in online]
    if missing or not found:
        what = f"CPU {', '.join(missing)} isn't online" if missing else "it names no CPU"
        raise NearmetalError(
            f"{name}: {shown(text)} can't be used, {what}; online are {topology.as_dict()['cpus_online']}"
        )
    return found


@dataclass(frozen=True)
class Knob:
    """How one knob of one concern is told."""

    concern: str
    name: str
    what: str
    reference: str
    wanted_by: str = "user"
    disruptive: bool = False

    def told(
        self, one: Optional[Nic], status: str, reason: str, now: Value = None, goal: Value = None, field: str = ""
    ) -> Finding:
        """A finding about this knob of a NIC, or of the whole host."""
        named = f"{one.name}: {reason}" if one is not None else reason
        where = _spot(one, field) if one is not None else ""
        return Finding(self.concern, self.name, status, named, now, goal, self.reference, where)

    def change(self, one: Nic, now: Value, goal: Value, reason: str, field: str = "") -> Plan:
        """The plan that brings a NIC's table, number, or field of a table from `now` to `goal`."""
        if now == goal:
            return Plan(findings=(self.told(one, "ok", reason, now, goal, field),))
        return Plan(
            (self.action(_spot(one, field), now, goal, f"{one.name}: {reason}"),),
            (self.told(one, "would_change", reason, now, goal, field),),
        )

    def action(self, where: str, now: Value, goal: Value, reason: str) -> Action:
        """The action at a place."""
        return Action(
            concern=self.concern,
            knob=self.name,
            what=self.what,
            where=where,
            before=now,
            after=goal,
            reason=reason,
            reference=self.reference,
            disruptive=self.disruptive,
            wanted_by=self.wanted_by,
        )


def _spot(one: Nic, field: str) -> str:
    """A NIC's place, or one field of its table."""
    return f"{one.place}/{field}" if field else one.place


def joined(plans: Sequence[Plan]) -> Plan:
    """One plan of several, in their order."""
    return Plan(
        tuple(action for plan in plans for action in plan.actions),
        tuple(finding for plan in plans for finding in plan.findings),
        any(plan.replan for plan in plans),
    )


def knob_maker(concern: str, wanted: Wanted) -> Callable[..., Knob]:
    """Knobs of a concern that know who wants them."""

    def make(name: str, what: str, reference: str, disruptive: bool = False, of: str = "") -> Knob:
        """A knob; `of` is the option that holds it, when that isn't its own name."""
        return Knob(concern, name, what, reference, wanted.wanted_by(of or name), disruptive)

    return make
