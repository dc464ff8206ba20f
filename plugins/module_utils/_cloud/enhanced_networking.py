# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Enhanced networking: the attribute, the driver in use and what the type can. PRIVATE to the collection."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._error import NearmetalError
from .._plan import Action, Finding, Plan
from .._planning.knob import Knob
from .accounts import deadline
from .instance_facts import InstanceFacts
from .observe import observe
from .result import Planned, after
from .stops import left_stopped, stop_mark
from .stops.stop_start import Work, change_stopped
from .types.facts import TypeFacts

CONCERN = "enhanced_networking"
_ENA = Knob(CONCERN, "ena", "ena_support", "AWS, 2017", scope="boot", reversible="by_reboot")
_SRIOV = Knob(CONCERN, "sriov", "sriov_net_support", "AWS, 2017", scope="boot", reversible="no")
_DRIVER = Knob(CONCERN, "driver", reference="AWS, 2017; Netflix, 2016")
_MOST = {"stop_at_once": 10000, "stop_timeout": 86400}
_GAIN = "Netflix: 200 k → 2 M packets per second; Aerospike: throughput 3 ×"
# How the kernel names Xen's split driver: in sysfs, in the module's name, in ethtool.
_SPLIT_DRIVERS = ("vif", "xen_netfront", "xen-netfront")
_REQUESTS: Dict[str, Dict[str, Any]] = {
    "ena_support": {"EnaSupport": {"Value": True}},
    "sriov_net_support": {"SriovNetSupport": {"Value": "simple"}},
}
_NAMED = 5


@dataclass(frozen=True)
class DriverFacts:
    """A host's report of its own network drivers."""

    in_use: Tuple[str, ...]  # of its Ethernet interfaces
    available: Tuple[str, ...]  # in its image, loaded or not


@dataclass(frozen=True)
class _Attribute:
    """One of the two attributes, on one instance."""

    knob: Knob
    driver: str
    support: Optional[str]  # what the type says: required | supported | unsupported
    set: bool


def plan(
    instance: InstanceFacts,
    kind: TypeFacts,
    host: Optional[DriverFacts],
    wanted: Mapping[str, Any],
    meaning: str = stop_mark.NONE,
) -> Plan:
    """The actions and findings for one instance, which must be stopped to set an attribute.

    `meaning` is the result of stop_mark.judge for the tag of an earlier run.
    """
    attributes = (
        _Attribute(_ENA, "ena", kind.ena, bool(instance.ena_support)),
        _Attribute(_SRIOV, "ixgbevf", "supported" if kind.sriov else "unsupported", instance.sriov_net_support),
    )
    actions: List[Action] = []
    findings: List[Finding] = []
    for attribute in attributes:
        is_wanted = wanted.get(attribute.knob.name) == "enabled"
        status, reason = _status(attribute, instance, kind, is_wanted)
        if status == "would_change" and host is None and meaning == stop_mark.LEFT:
            # A stopped host can't be asked. This is no refusal, so that `strict` lets it be started.
            status, reason = "advice", "an earlier run left the instance stopped: run again when it is running"
        if status == "would_change":
            refusal = _refusal(attribute, instance, kind, host, wanted, meaning)
            status, reason = ("refused", refusal) if refusal else (status, reason)
        if status == "would_change":
            actions.append(_action(attribute, instance, reason))
        gain = _GAIN if status in ("advice", "refused", "would_change") else ""
        now, goal = "enabled" if attribute.set else "disabled", "enabled" if is_wanted else None
        findings.append(attribute.knob.at(instance.instance_id).finding(status, reason, now, goal, gain))
    findings.append(_driver(instance, kind, host))
    power = left_stopped.plan(CONCERN, instance, meaning, wanted)
    return Plan((*actions, *power.actions), (*findings, *power.findings))


def _status(attribute: _Attribute, instance: InstanceFacts, kind: TypeFacts, is_wanted: bool) -> Tuple[str, str]:
    if instance.state == "terminated":
        return "not_applicable", "the instance is terminated"
    if attribute.support is None:
        return "unknown", f"it is not known whether {kind.instance_type} has {attribute.driver}"
    if attribute.support == "unsupported":
        return "not_applicable", f"{kind.instance_type} has no {attribute.driver}"
    if attribute.set:
        return "ok", f"the attribute for {attribute.driver} is set"
    if attribute.support == "required":
        return "ok", f"{kind.instance_type} always runs on {attribute.driver}"
    if instance.host_class == "xen_pv":
        reason = "paravirtual: the instance would be unreachable; move it to an HVM image first"
        return ("refused" if is_wanted else "advice"), reason
    if is_wanted:
        return "would_change", f"{attribute.driver} instead of Xen's split driver: {_GAIN}"
    return "advice", f"{attribute.driver} is not enabled: set {attribute.knob.name}: enabled"


def _refusal(
    attribute: _Attribute,
    instance: InstanceFacts,
    kind: TypeFacts,
    host: Optional[DriverFacts],
    wanted: Mapping[str, Any],
    meaning: str,
) -> Optional[str]:
    """Why the attribute may not be set now; None when it may."""
    untouchable = instance.untouchable(wanted)
    if untouchable:
        return untouchable
    if host is None:
        return f"it isn't known whether the image has {attribute.driver}, without which it is unreachable: set hosts"
    if attribute.driver not in (*host.available, *host.in_use):
        return f"the image has no driver {attribute.driver}: the instance would be unreachable; install it first"
    if instance.hibernated:
        return "it is hibernated, and its kernel would resume on other network hardware: start it first"
    if instance.state == "stopped":
        return None
    if instance.state != "running":
        return f"the instance is {instance.state}: wait until it is running or stopped"
    remembered = left_stopped.refusal(instance, meaning)
    if remembered:
        return remembered
    if instance.root_device == "instance-store":
        return (
            "its root device is on instance store, so it can't be stopped: launch one from an image with the attribute"
        )
    if instance.lifecycle != "on-demand":
        return f"a {instance.lifecycle} instance may not start again after a stop: launch a new one"
    if instance.auto_scaling_group:
        return (
            f"Auto Scaling group {instance.auto_scaling_group} would replace it when it stops: change the image of "
            "its launch template, or take it out of the group"
        )
    if instance.managed_by:
        return f"{instance.managed_by} manages it and may replace it when it stops: change the image that it launches"
    if kind.instance_store_gb and instance.instance_id not in (wanted.get("instance_store_loss") or ()):
        return (
            f"a stop loses the data on its {kind.instance_store_gb} GB of instance store: to accept that, name the "
            "instance in instance_store_loss"
        )
    if not wanted.get("allow_stop"):
        return "the change needs a stop and a start: set allow_stop: true"
    return None


def _action(attribute: _Attribute, instance: InstanceFacts, reason: str) -> Action:
    stops = instance.state == "running"
    address = "; its public address changes" if stops and instance.public_address else ""
    forever = "; can't be unset" if attribute.knob.reversible == "no" else ""
    knob = attribute.knob.at(instance.instance_id)._replace(
        reference="AWS, 2017; Aerospike, 2014; Netflix, 2016", disruptive=stops
    )
    stopped = "; stops and starts the instance" if stops else ""
    return knob.action("user", False, True, f"{reason}{stopped}{address}{forever}")


def _driver(instance: InstanceFacts, kind: TypeFacts, host: Optional[DriverFacts]) -> Finding:
    """Whether the interfaces use the driver that the attributes allow."""
    knob = _DRIVER.at(instance.instance_id)
    if host is None or not host.in_use:
        return knob.finding("unknown", "the host did not report the driver of its interfaces")
    now = ", ".join(sorted(set(host.in_use)))
    split = sorted(set(host.in_use) & set(_SPLIT_DRIVERS))
    able = instance.host_class != "xen_pv" and (kind.ena in ("required", "supported") or kind.sriov)
    if not split:
        return knob.finding("ok", f"runs on {now}", now)
    if not able:
        return knob.finding("not_applicable", f"runs on {now}: this instance can't use another driver", now)
    if instance.ena_support or instance.sriov_net_support:
        reason = f"an attribute is set, yet an interface runs on {now}: the driver is missing or too old"
        return knob.finding("advice", reason, now)
    return knob.finding("advice", f"runs on {now}, Xen's split driver: not enhanced", now)


def drivers(hosts: Optional[Sequence[Mapping[str, Any]]]) -> Mapping[str, DriverFacts]:
    """The option `hosts`, by instance id."""
    return {
        host["instance_id"]: DriverFacts(
            tuple(host.get("drivers_in_use") or ()), tuple(host.get("drivers_available") or ())
        )
        for host in hosts or ()
    }


class _Planned(NamedTuple):
    """What is to be done, and which instances an earlier run left stopped."""

    of_all: Planned
    works: Dict[str, Work]
    left_stopped: List[str]

    def unchanged(self) -> Dict[str, Any]:
        """The module's result while nothing is done."""
        return {**self.of_all.unchanged(), "left_stopped": self.left_stopped}


def forecast(options: Mapping[str, Any]) -> Dict[str, Any]:
    """What the module would do: its result in check mode."""
    return _plan_calls(options).unchanged()


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result, with `failed` true when a change did not succeed."""
    planned = _plan_calls(options)
    of_all, works = planned.of_all, planned.works
    if of_all.idle:
        return planned.unchanged()
    located = of_all.observation.located
    outcome = change_stopped(located, works, options["stop_at_once"], options["stop_timeout"])
    of_all.observation.note(outcome.failed)
    still_stopped = [
        instance_id
        for instance_id in planned.left_stopped
        if instance_id not in outcome.done or not works[instance_id].start
    ]
    left_stopped = list(dict.fromkeys([*still_stopped, *outcome.left_stopped]))
    failure = _failure(outcome.failed, left_stopped) if outcome.failed else ""
    return {**of_all.result(after(of_all.plans, outcome.done), failure), "left_stopped": left_stopped}


def _plan_calls(options: Mapping[str, Any]) -> _Planned:
    for option, most in _MOST.items():
        if not 1 <= options[option] <= most:
            raise NearmetalError(f"{option} must be a whole number from 1 to {most}, not {options[option]}")
    with deadline(options["timeout"]):
        observation = observe(options, with_status=True)
    hosts = drivers(options["hosts"])
    claims = Counter(host["instance_id"] for host in options["hosts"] or ())
    claimed_twice = [instance_id for instance_id, count in claims.items() if count > 1]
    wanted = {**options, "unconfirmed": {*options["unconfirmed"], *claimed_twice}}
    now = {instance_id: place.target.now() for instance_id, place in observation.located.items()}
    meanings = observation.each(lambda facts, _kind: stop_mark.judge(facts.power, now[facts.instance_id]))

    def of_instance(facts: InstanceFacts, kind: TypeFacts) -> Plan:
        return plan(facts, kind, hosts.get(facts.instance_id), wanted, meanings[facts.instance_id])

    def details(facts: InstanceFacts, _kind: TypeFacts) -> Dict[str, Any]:
        attributes = {"ena_support": facts.ena_support, "sriov_net_support": facts.sriov_net_support}
        return {"facts": attributes, "host_class": facts.host_class}

    plans = observation.each(of_instance)
    left_stopped = [instance_id for instance_id, meaning in meanings.items() if meaning in stop_mark.LEFT_STATES]
    works = {
        instance_id: _work(plan.actions, observation.instances[instance_id].power.tag)
        for instance_id, plan in plans.items()
        if plan.actions
    }
    return _Planned(
        Planned(CONCERN, observation, plans, observation.each(details), options["strict"]), works, left_stopped
    )


def _work(actions: Sequence[Action], tag: Optional[str]) -> Work:
    """The work that the actions of one instance describe."""
    requests = [_REQUESTS[action.what] for action in actions if action.what in _REQUESTS]
    start = any(action.what == left_stopped.STATE for action in actions)
    needless = any(action.what == left_stopped.START_TAG for action in actions)
    return Work(requests, start, tag if start or needless else None)


def _failure(failed: Mapping[str, str], left_stopped: Sequence[str]) -> str:
    instance_id, reason = next(iter(failed.items()))
    more = f" and {len(left_stopped) - _NAMED} more" if len(left_stopped) > _NAMED else ""
    pronoun = "it" if len(left_stopped) == 1 else "them"
    names = f"{', '.join(left_stopped[:_NAMED])}{more}"
    stopped = f"; left stopped: {names}; run again with allow_stop: true to start {pronoun}" if left_stopped else ""
    return f"{instance_id}: {reason}{stopped}"
