# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls about network interfaces and subnets. Writes. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..._error import NearmetalError
from ..accounts import Target
from ..api import FILTER_VALUES, Answers, Cloud, Located, Raw, by_target, pages, parts
from ..calls import Calls
from .facts import TAG

_PAGE = 1000


def interfaces_by_instance(located: Mapping[str, Located]) -> Answers:
    """The interfaces that runs of nearmetal made for each instance, wherever they are now."""
    answers = Answers()
    for target, ids in by_target(located):
        for part in parts(list(ids), FILTER_VALUES):
            items, error = _interfaces(target, f"tag:{TAG}", part)
            for item in items:
                for tag in item.get("TagSet", ()):
                    if tag.get("Key") == TAG and tag.get("Value") in part:
                        answers.by_id.setdefault(tag["Value"], []).append(item)
            if error:
                answers.failed.update(dict.fromkeys(part, error[1]))
    return answers


def subnets(cloud: Cloud, located: Mapping[str, Located], wanted: Sequence[str]) -> Tuple[List[Raw], str]:
    """The subnets of these ids, and why some could not be looked up. Raises NearmetalError for one that isn't there."""
    items: List[Raw] = []
    trouble = ""
    for target in {place.target.name: place.target for place in located.values()}.values():
        for part in parts(list(wanted), FILTER_VALUES):
            request = {"Filters": [{"Name": "subnet-id", "Values": part}], "MaxResults": _PAGE}
            answers, error = pages(target, "ec2", "describe_subnets", "Subnets", request)
            items += answers
            trouble = error[1] if error else trouble
    missing = set(wanted) - {item["SubnetId"] for item in items}
    if missing and not trouble and not cloud.errors:
        names = ", ".join(target.name for target in cloud.targets)
        raise NearmetalError(f"subnet_ids: {', '.join(sorted(missing))}: not found in {names}")
    return items, trouble


def _interfaces(target: Target, name: str, values: List[str]) -> Tuple[List[Raw], Any]:
    request = {"Filters": [{"Name": name, "Values": values}], "MaxResults": _PAGE}
    return pages(target, "ec2", "describe_network_interfaces", "NetworkInterfaces", request)


class InterfaceCalls(Calls):
    """The calls about interfaces."""

    def look(self, interface_id: str) -> Tuple[Optional[Raw], bool]:
        """The interface now, and whether AWS answered: without an answer it may be there."""
        items, error = _interfaces(self.target, "network-interface-id", [interface_id])
        return (items[0] if items else None), not error

    def unattached(self, instance_id: str) -> List[Raw]:
        """The interfaces that were made for an instance, and are attached to nothing."""
        items, _error = _interfaces(self.target, f"tag:{TAG}", [instance_id])
        return [item for item in items if not item.get("Attachment")]
