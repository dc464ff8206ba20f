# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance of each host of the inventory, and the host's drivers and volumes. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Callable, Iterable, Mapping, Optional

from .._clean import mapping

_ID = re.compile(r"i-[0-9a-f]{8,17}", re.ASCII)
_DEVICE = re.compile(r"nvme\d{1,5}n\d{1,5}", re.ASCII)
_COUNTERS = ("volume_iops_us", "volume_throughput_us", "instance_iops_us", "instance_throughput_us")
_VOLUMES = 256  # more than any instance can attach


def instance_id(variables: Mapping[str, Any]) -> Optional[str]:
    """The instance id of a host: from the inventory, or else from the host's metadata service or firmware."""
    facts = mapping(mapping(variables.get("ansible_facts")).get("nearmetal"))
    candidates = (
        variables.get("instance_id"),
        mapping(facts.get("instance")).get("instance_id"),
        mapping(facts.get("platform")).get("instance_id"),
    )
    return next(
        (str(candidate) for candidate in candidates if isinstance(candidate, str) and _ID.fullmatch(candidate)), None
    )


def unconfirmed(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids that the inventory doesn't give to exactly one host: those instances may not be changed."""
    known = list(hosts)
    given = Counter(map(_by_inventory, known))
    return [
        found_id for found_id in dict.fromkeys(map(instance_id, known)) if found_id is not None and given[found_id] != 1
    ]


def list_instances(task_vars: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The variables of each host of the play."""
    return [task_vars["hostvars"][name] for name in task_vars.get("ansible_play_batch", ())]


def reports(
    of_host: Callable[[Mapping[str, Any]], Optional[dict[str, Any]]], hosts: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What `drivers` or `volumes` finds of each host; of one that claims another host's instance, nothing."""
    known = list(hosts)
    given = set(map(_by_inventory, known))
    trusted = (host for host in known if _by_inventory(host) is not None or instance_id(host) not in given)
    return [report for report in map(of_host, trusted) if report]


def _by_inventory(variables: Mapping[str, Any]) -> Optional[str]:
    """The id that the inventory gives a host; None when only the host reports one.

    In Ansible a fact of that name wins over the inventory, and the result of any module can set facts.
    """
    identity = instance_id(variables)
    reported = "instance_id" in mapping(variables.get("ansible_facts"))
    return identity if not reported and identity == variables.get("instance_id") else None


def drivers(variables: Mapping[str, Any]) -> Optional[dict[str, Any]]:
    """The host's element of the option `hosts` of enhanced_networking; None when it reported no drivers."""
    identity = instance_id(variables)
    facts = mapping(mapping(mapping(variables.get("ansible_facts")).get("nearmetal")).get("drivers"))
    if identity is None or not facts:
        return None
    return {
        "instance_id": identity,
        "drivers_in_use": _texts(facts.get("in_use")),
        "drivers_available": _texts(facts.get("available")),
    }


def volumes(variables: Mapping[str, Any]) -> Optional[dict[str, Any]]:
    """The host's element of the option `hosts` of ebs; None when it reported no counters."""
    identity = instance_id(variables)
    facts = mapping(mapping(mapping(variables.get("ansible_facts")).get("nearmetal")).get("ebs"))
    reported = facts.get("exceeded")
    counters = [_counters(volume) for volume in reported[:_VOLUMES]] if isinstance(reported, list) else []
    counters = [volume for volume in counters if volume]
    return {"instance_id": identity, "exceeded": counters} if identity is not None and counters else None


def _counters(reported: Any) -> Optional[dict[str, Any]]:
    """One device's counters, or None if their form is wrong: a host that was taken over may report anything."""
    values = {name: mapping(reported).get(name) for name in _COUNTERS}
    device = mapping(reported).get("device")
    if not isinstance(device, str) or not _DEVICE.fullmatch(device):
        return None
    if not all(isinstance(value, int) and 0 <= value < 2**64 for value in values.values()):
        return None
    return {"device": device, **values}


def _texts(value: Any) -> list[str]:
    return (
        [str(element) for element in value if isinstance(element, str)][:64] if isinstance(value, (list, tuple)) else []
    )
