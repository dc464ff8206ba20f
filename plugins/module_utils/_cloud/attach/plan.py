# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which interfaces an instance gets, and which are taken back. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._error import NearmetalError
from ..._plan import Action, Plan
from ..._planning.knob import Knob
from ..._words import shown
from ..instance_facts import InstanceFacts
from ..types.facts import TypeFacts
from .facts import Attachments, Interface, Subnet

_COUNT = Knob("network_interfaces", "count", reference="Aerospike, 2014; Netflix, 2016")
PLACES, PROTECTED = "interfaces", "delete_on_termination"
_MOST = 1000  # more than any type takes; the type's own limit is AWS's answer
_MOST_TAGS = 49  # AWS takes 50, one is nearmetal's
_SUBNET = re.compile(r"subnet-[0-9a-f]{8,17}", re.ASCII)
_GROUP = re.compile(r"sg-[0-9a-f]{8,17}", re.ASCII)


class Place(NamedTuple):
    """Where an interface is to be attached, and what it is made of."""

    card: int
    device: int
    subnet_id: str
    groups: Tuple[str, ...]
    interface_id: str = ""  # an interface of an earlier run that waits to be attached; empty: one is created

    @property
    def name(self) -> str:
        """The place, as Interface.place says it."""
        return f"card {self.card}, device {self.device}"

    @property
    def content(self) -> str:
        """What comes there, in the words of a report."""
        return self.interface_id or f"new in {self.subnet_id} with {', '.join(self.groups)}"


class Work(NamedTuple):
    """What is to be done for one instance."""

    attach: Tuple[Place, ...] = ()
    protect: Tuple[Interface, ...] = ()  # to be deleted together with the instance
    remove: Tuple[Interface, ...] = ()  # to be detached and deleted


class Planned(NamedTuple):
    """What follows for one instance."""

    plan: Plan
    work: Work = Work()


def require(options: Mapping[str, Any]) -> None:
    """Raise NearmetalError for an option that no interface can have."""
    count = options["count"]
    if count is not None and not 1 <= count <= _MOST:
        raise NearmetalError(f"count: {count} is not allowed: it must be from 1 to {_MOST}")
    for option, pattern, example in (
        ("subnet_ids", _SUBNET, "subnet-0123456789abcdef0"),
        ("security_group_ids", _GROUP, "sg-0123456789abcdef0"),
    ):
        for value in options[option]:
            if not pattern.fullmatch(value):
                raise NearmetalError(f"{option}: {shown(value)} is not allowed: it must be an id such as {example}")
    if len(options["tags"]) > _MOST_TAGS:
        raise NearmetalError(f"tags: at most {_MOST_TAGS} are allowed")
    for key, value in options["tags"].items():
        if not 1 <= len(str(key)) <= 128 or str(key).startswith(("aws:", "nearmetal:")) or len(str(value)) > 256:
            raise NearmetalError(
                f"tags: {shown(str(key))} is not allowed: a key has 1 to 128 characters and doesn't begin with aws: "
                "or nearmetal:, and a value has at most 256"
            )


def manages_interfaces(options: Mapping[str, Any]) -> bool:
    """Whether the options are about attaching, or taking back."""
    return options["count"] is not None or options["state"] == "restored"


def plan_all(
    instances: Mapping[str, InstanceFacts],
    kinds: Mapping[str, TypeFacts],
    known: Mapping[str, Attachments],
    nets: Mapping[str, Subnet],
    options: Mapping[str, Any],
) -> Dict[str, Planned]:
    """The plan of each instance. They share the addresses of a subnet, so each plan counts on what the others leave."""
    taken: "Counter[str]" = Counter()
    planned = {}
    for instance_id, instance in instances.items():
        problem = known[instance_id].problem
        if problem:
            reason = f"its interfaces are not known: {problem}"
            instance_plan = Planned(_COUNT.at(instance_id).says("unknown", reason, None, options["count"]))
        elif options["state"] == "restored":
            instance_plan = _taken_back(instance, known[instance_id], options)
        else:
            instance_plan = _attached(instance, kinds[instance_id], known[instance_id], nets, taken, options)
        planned[instance_id] = instance_plan
        taken.update(place.subnet_id for place in instance_plan.work.attach if not place.interface_id)
    return planned


def _attached(
    instance: InstanceFacts,
    kind: TypeFacts,
    known: Attachments,
    nets: Mapping[str, Subnet],
    taken: Mapping[str, int],
    options: Mapping[str, Any],
) -> Planned:
    knob, count, wanted = _COUNT.at(instance.instance_id), len(known.attached), options["count"]
    number = max(0, wanted - count)
    loose = tuple(eni for eni in known.attached if eni.made_by_nearmetal and not eni.goes_with_instance)
    if not number and not loose:
        unused = [
            f"; {eni.interface_id} of an earlier run is unused: state: restored deletes it" for eni in known.unattached
        ]
        return Planned(knob.says("ok", f"{count} of at least {wanted} interfaces{''.join(unused[:1])}", count, wanted))
    places, reason = _chosen(instance, kind, known, nets, taken, number, options) if number else ((), "")
    refusal = _refusal(instance, known) or reason or ("" if options["allow_attach"] else _OPT_IN) or None
    refusal = instance.untouchable(options) or refusal
    if refusal:
        return Planned(knob.says("refused", refusal, count, wanted))
    actions = []
    if places:
        now = _table(known.attached)
        then = {**now, **{place.name: place.content for place in places}}
        actions.append(_action(instance, PLACES, now, then, _why(instance, len(places))))
    if loose:
        before: Dict[str, Any] = {eni.interface_id: False for eni in loose}
        reason = "an earlier run ended before AWS knew that the interface is deleted together with its instance"
        actions.append(_action(instance, PROTECTED, before, dict.fromkeys(before, True), reason))
    finding = knob.finding("would_change", actions[0].reason, count, wanted)
    return Planned(Plan(tuple(actions), (finding,)), Work(tuple(places), loose))


_OPT_IN = "another interface takes an address of its subnet and needs its own routes: set allow_attach: true"


def _why(instance: InstanceFacts, number: int) -> str:
    more = "1 more interface" if number == 1 else f"{number} more interfaces"
    address = (
        "; AWS gives the instance no public address any more after its next stop" if instance.public_address else ""
    )
    return f"{more}, with queues of their own{address}; the host needs their routes: network_routes"


def _refusal(instance: InstanceFacts, known: Attachments) -> str:
    if instance.managed_by:
        return f"{instance.managed_by} manages the instance: attach interfaces there"
    if known.cluster_node:
        return "it is a node of a Kubernetes cluster, whose network plugin manages the interfaces"
    if instance.state not in ("running", "stopped"):
        return f"the instance is {instance.state}: wait until it is running or stopped"
    return ""


def _chosen(
    instance: InstanceFacts,
    kind: TypeFacts,
    known: Attachments,
    nets: Mapping[str, Subnet],
    taken: Mapping[str, int],
    number: int,
    options: Mapping[str, Any],
) -> Tuple[Sequence[Place], str]:
    """The places of the new interfaces; or none, and why."""
    first = known.first
    if first is None:
        return (), "its first interface is not known"
    slots, reason = _slots(kind, known.attached, number)
    if reason:
        return (), reason
    groups = tuple(sorted(set(options["security_group_ids"]))) or first.groups
    usable, reason = _usable(instance, first, nets, options)
    if reason:
        return (), reason
    subnet_ids = {subnet.subnet_id for subnet in usable}
    waiting = [eni for eni in known.unattached if eni.groups == groups and eni.subnet_id in subnet_ids]
    places = [Place(*slot, eni.subnet_id, eni.groups, eni.interface_id) for slot, eni in zip(slots, waiting)]
    free = {subnet.subnet_id: subnet.free - taken.get(subnet.subnet_id, 0) for subnet in usable}
    turn = 0
    for slot in slots[len(places) :]:
        for _attempt in usable:
            subnet = usable[turn % len(usable)]
            turn += 1
            if free[subnet.subnet_id] > 0:
                free[subnet.subnet_id] -= 1
                places.append(Place(*slot, subnet.subnet_id, groups))
                break
        else:
            names = ", ".join(subnet.subnet_id for subnet in usable)
            return (), f"{names} has no free address for {number} more: name further subnets in subnet_ids"
    return places, ""


def _slots(kind: TypeFacts, attached: Sequence[Interface], number: int) -> Tuple[List[Tuple[int, int]], str]:
    """Card and device of each new interface, on the card with the fewest first; or why there is no room."""
    if kind.max_interfaces is None:
        return [], f"it is not known how many interfaces {kind.instance_type} takes"
    wanted = len(attached) + number
    if wanted > kind.max_interfaces:
        return [], f"{kind.instance_type} takes at most {kind.max_interfaces} interfaces: {wanted} are too many"
    most = [card.max_interfaces or kind.max_interfaces for card in kind.cards] or [kind.max_interfaces]
    used: Dict[int, List[int]] = {card: [] for card in range(len(most))}
    for eni in attached:
        used.setdefault(eni.card, []).append(eni.device or 0)
    slots = []
    for _number in range(number):
        room = [card for card, limit in enumerate(most) if len(used[card]) < limit]
        if not room:
            return [], f"the network cards of {kind.instance_type} take no further interface"
        card = min(room, key=lambda index: (len(used[index]), index))
        # Index 0 is the interface of the launch, and on further cards that of no interface of nearmetal.
        device = next(index for index in range(1, _MOST + 2) if index not in used[card])
        used[card].append(device)
        slots.append((card, device))
    return slots, ""


def _usable(
    instance: InstanceFacts, first: Interface, nets: Mapping[str, Subnet], options: Mapping[str, Any]
) -> Tuple[List[Subnet], str]:
    """The subnets for this instance, in the order of the option; or why there is none."""
    named: List[str] = list(dict.fromkeys(options["subnet_ids"]))
    subnets = [nets[subnet_id] for subnet_id in named or [first.subnet_id] if subnet_id in nets]
    usable = [subnet for subnet in subnets if subnet.zone == instance.availability_zone]
    if not usable and named:
        return [], f"none of subnet_ids is in its zone, {instance.availability_zone}"
    if not usable:
        return [], f"its subnet {first.subnet_id} is not known: name one in subnet_ids"
    foreign = [subnet.subnet_id for subnet in usable if subnet.vpc_id != first.vpc_id]
    if foreign and not options["security_group_ids"]:
        return [], f"{foreign[0]} is in another VPC than its first interface: name security_group_ids of that VPC"
    return usable, ""


def _taken_back(instance: InstanceFacts, known: Attachments, options: Mapping[str, Any]) -> Planned:
    knob, count = _COUNT.at(instance.instance_id), len(known.attached)
    made_by_nearmetal = [*(eni for eni in known.attached if eni.made_by_nearmetal and eni.device), *known.unattached]
    findings = [
        knob.finding("refused", f"{eni.interface_id} has {eni.used} now: detach and delete it by hand", count)
        for eni in made_by_nearmetal
        if eni.used
    ]
    findings += [
        knob.finding(
            "advice",
            f"{eni.interface_id} of an earlier run is attached to {eni.instance_id} now, and stays there",
            count,
        )
        for eni in known.elsewhere
    ]
    remove = tuple(eni for eni in made_by_nearmetal if not eni.used)
    if not remove and not findings:
        return Planned(knob.says("ok", "no interface of an earlier run is attached", count, options["count"]))
    if not remove:
        return Planned(Plan(findings=tuple(findings)))
    refusal = instance.untouchable(options)
    if refusal:
        return Planned(knob.says("refused", refusal, count, options["count"]))
    now = _table([*known.attached, *known.unattached])
    removed = _table(remove)
    remaining = {name: content for name, content in now.items() if name not in removed}
    names = ", ".join(eni.interface_id for eni in remove)
    reason = f"interfaces that earlier runs made are detached and deleted, with their addresses: {names}"
    action = _action(instance, PLACES, now, remaining, reason)._replace(disruptive=True)
    finding = knob.finding("would_change", reason, count)
    return Planned(Plan((action,), (finding, *findings)), Work(remove=remove))


def _table(interfaces: Sequence[Interface]) -> Dict[str, Any]:
    """Place → interface; one that isn't attached has its own name for a place."""
    return {name_of(eni): eni.interface_id for eni in interfaces}


def name_of(eni: Interface) -> str:
    """An interface's key in the tables of an action."""
    return eni.interface_id if eni.device is None else eni.place


def so_far(action: Action, done: Sequence[str]) -> Optional[Action]:
    """The part of an action that was carried out; None when nothing was."""
    tables: Any = (action.before, action.after)
    before, after = map(dict, tables)
    reached: Dict[str, Any] = {}
    for name in {**before, **after}:
        side = after if name in done else before
        if name in side:
            reached[name] = side[name]
    return None if reached == before else action._replace(after=reached)


def _action(instance: InstanceFacts, what: str, now: Any, then: Any, reason: str) -> Action:
    return _COUNT.at(instance.instance_id)._replace(lever=what).action("user", now, then, reason)
