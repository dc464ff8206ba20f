# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls about network interfaces and subnets, repeated while AWS stumbles. Writes. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.api import (
    FILTER_VALUES,
    Answers,
    Cloud,
    Located,
    Raw,
    pages,
    parts,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.attach.facts import TAG
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import Target, not_allowed
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stops.power import attempts
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

_PAGE = 1000


def made_for(found: Mapping[str, Located]) -> Answers:
    """The interfaces that runs of ours made for each instance, wherever they are now."""
    answers = Answers()
    by_target: Dict[str, Tuple[Target, List[str]]] = {}
    for instance_id, located in found.items():
        by_target.setdefault(located.target.name, (located.target, []))[1].append(instance_id)
    for target, ids in by_target.values():
        for part in parts(ids, FILTER_VALUES):
            items, error = _interfaces(target, f"tag:{TAG}", part)
            for item in items:
                for tag in item.get("TagSet", ()):
                    if tag.get("Key") == TAG and tag.get("Value") in part:
                        answers.by_id.setdefault(tag["Value"], []).append(item)
            if error:
                answers.failed.update(dict.fromkeys(part, error[1]))
    return answers


def subnets(cloud: Cloud, found: Mapping[str, Located], wanted: Sequence[str]) -> Tuple[List[Raw], str]:
    """The subnets of these ids, and why some could not be looked up. Raises NearmetalError for one that isn't there."""
    items: List[Raw] = []
    trouble = ""
    for target in {located.target.name: located.target for located in found.values()}.values():
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


class Calls:
    """The calls about interfaces, in one account and region."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def look(self, interface_id: str) -> Tuple[Optional[Raw], bool]:
        """The interface now, and whether AWS answered: without an answer it may be there."""
        items, error = _interfaces(self.target, "network-interface-id", [interface_id])
        return (items[0] if items else None), not error

    def unattached(self, instance_id: str) -> List[Raw]:
        """The interfaces that were made for an instance, and are attached to nothing."""
        items, _error = _interfaces(self.target, f"tag:{TAG}", [instance_id])
        return [item for item in items if not item.get("Attachment")]

    def call(self, operation: str, **request: Any) -> Tuple[Raw, Optional[BaseException]]:
        """One call; what boto made of it when it failed. AWS may have carried it out all the same."""
        try:
            return self.target.call("ec2", operation, **request), None
        except self.target.boto.errors as error:
            return {}, error

    def insist(self, seconds: float, operation: str, **request: Any) -> Tuple[Raw, Optional[BaseException]]:
        """Repeat a call until AWS accepts it or refuses it for good. The call must be repeatable."""
        answer: Raw = {}
        error: Optional[BaseException] = None
        for _attempt in attempts(seconds):
            answer, error = self.call(operation, **request)
            if error is None or not self.target.boto.passes(error):
                break
        return answer, error

    def explain(self, operation: str, error: BaseException) -> str:
        """An error in one sentence, which names the permission when that is what is missing."""
        title = "".join(word.capitalize() for word in operation.split("_"))
        permission = f"; the permission is ec2:{title}" if not_allowed(error) else ""
        return self.target.boto.explain(error, f"{self.target.name}: {title}") + permission
