# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One observation of many instances, for any cloud module: calls by api.py, facts of the answers. PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar

from .api import SPOT_REQUESTS, STATUSES, Answers, Cloud, Located, Series, ask
from .instance_facts import InstanceFacts, instance_facts
from .types.facts import TypeFacts

_Made = TypeVar("_Made")


@dataclass
class Observation:
    """The instances, their types and raw answers. `failed` has per instance the reasons why something is missing."""

    cloud: Cloud
    located: Dict[str, Located]
    instances: Dict[str, InstanceFacts]
    types: Dict[str, TypeFacts]
    type_trouble: str  # why types are from the offline table; empty when the API was asked
    failed: Dict[str, List[str]] = field(default_factory=dict)

    def type_of(self, instance: InstanceFacts) -> TypeFacts:
        """The facts of an instance's type; all unknown when neither the API nor the table has it."""
        return self.types.get(instance.instance_type) or TypeFacts(instance.instance_type, source="name")

    def keep_failures(self, answers: Answers) -> Answers:
        """Add the failures of these answers to `failed`; the same answers."""
        self.note(answers.failed)
        return answers

    def note(self, failed: Mapping[str, str]) -> None:
        """Add reasons to `failed`."""
        for instance_id, reason in failed.items():
            self.failed.setdefault(instance_id, []).append(reason)

    def metrics(self, options: Mapping[str, Any], series: Mapping[str, Sequence[Series]], hours: int) -> Answers:
        """What CloudWatch has of the instances, if the options ask for metrics."""
        if not options["metrics"]:
            return Answers()
        return self.keep_failures(self.cloud.metrics(self.located, series, hours))

    def each(self, make: Callable[[InstanceFacts, TypeFacts], _Made]) -> Dict[str, _Made]:
        """What `make` makes of each instance and its type, by id."""
        return {instance_id: make(facts, self.type_of(facts)) for instance_id, facts in self.instances.items()}

    def chosen(self, wanted: Any) -> Dict[str, Located]:
        """The found instances for which `wanted(facts, type)` holds: no need to ask about the others."""
        return {
            instance_id: self.located[instance_id]
            for instance_id, facts in self.instances.items()
            if wanted(facts, self.type_of(facts))
        }


def observe(options: Mapping[str, Any], with_status: bool = False) -> Observation:
    """Find the instances of the options and their types; `with_status` also asks for scheduled events."""
    cloud = Cloud(options)
    located, missing = cloud.instances(options.get("instance_ids"), options.get("filters"))
    types, trouble = cloud.types(place.answer.get("InstanceType", "") for place in located.values())
    statuses = ask(STATUSES, located) if with_status else Answers()
    of_spot = {name: place for name, place in located.items() if place.answer.get("InstanceLifecycle") == "spot"}
    spot = ask(SPOT_REQUESTS, of_spot) if with_status else Answers()
    instances = {
        instance_id: instance_facts(
            place.answer,
            place.owner,
            place.target.account,
            place.target.region,
            types.get(place.answer.get("InstanceType", "")),
            statuses.answer_of(instance_id),
            spot.answer_of(instance_id),
            _unasked(instance_id, statuses, spot) if with_status else None,
        )
        for instance_id, place in located.items()
    }
    observation = Observation(
        cloud, located, instances, types, trouble, {instance_id: [reason] for instance_id, reason in missing.items()}
    )
    observation.keep_failures(statuses)
    observation.keep_failures(spot)
    return observation


def _unasked(instance_id: str, statuses: Answers, spot: Answers) -> Optional[str]:
    """Why it is not known what AWS has scheduled for an instance. Each has a status; only spot ones have a request."""
    if instance_id in spot.failed:
        lost, permission = spot.failed[instance_id], "ec2:DescribeSpotInstanceRequests"
    elif statuses.answer_of(instance_id) is None:
        lost, permission = (
            statuses.failed.get(instance_id, "AWS's answer lacks the instance"),
            "ec2:DescribeInstanceStatus",
        )
    else:
        return None
    return f"AWS's scheduled events of the instance are not known; they need the permission {permission}: {lost}"
