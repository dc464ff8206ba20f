# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, attach, detach and delete interfaces. What AWS shows decides, no answer does. Writes. PRIVATE.

An interface has nearmetal's tag from its creation on, so what a run that dies at any call leaves is found by the next.
"""

from __future__ import annotations

import secrets
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..._error import NearmetalError
from ..accounts import Target, error_code
from ..api import (
    BRIEF_SECONDS,
    FILTER_VALUES,
    Answers,
    Calls,
    Cloud,
    Located,
    Raw,
    attempts,
    by_target,
    pages,
    parts,
)
from .facts import TAG, Interface, interface
from .plan import Place, Work, name_of

_PAGE = 1000
_DETACH_SECONDS = 180  # a running host has to let the device go first
# Not every server of AWS knows yet that the interface exists, is ready, or is attached to nothing any more.
_NOT_YET = (
    "IncorrectInstanceState",
    "IncorrectState",
    "InvalidAttachmentID.NotFound",
    "InvalidNetworkInterface.InUse",
    "InvalidNetworkInterfaceID.NotFound",
    "InvalidParameterValue.InUse",
)
_GONE = "InvalidNetworkInterfaceID.NotFound"


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
    def look(self, interface_id: str) -> Tuple[Optional[Raw], bool]:
        """The interface now, and whether AWS answered: without an answer it may be there."""
        items, error = _interfaces(self.target, "network-interface-id", [interface_id])
        return (items[0] if items else None), not error

    def unattached(self, instance_id: str) -> List[Raw]:
        """The interfaces that were made for an instance, and are attached to nothing."""
        items, _error = _interfaces(self.target, f"tag:{TAG}", [instance_id])
        return [item for item in items if not item.get("Attachment")]


class Failed(Exception):
    """Why the rest of an instance's work is not done, in one sentence."""


def carry_out(
    located: Mapping[str, Located], works: Mapping[str, Work], tags: Mapping[str, Any]
) -> Tuple[Dict[str, List[str]], Dict[str, str]]:
    """Do the work of each instance; a failure ends that of its instance only.

    Returns per instance what was done, as keys of the actions' tables, and why the rest was not.
    """
    of_all: Dict[str, List[str]] = {instance_id: [] for instance_id in works}
    failed: Dict[str, str] = {}
    for instance_id, work in works.items():
        done = of_all[instance_id]
        instance = _Instance(InterfaceCalls(located[instance_id].target), instance_id, tags)
        try:
            for kept in work.protect:
                instance.protect(kept.interface_id)
                done.append(kept.interface_id)
            for place in work.attach:
                interface_id = instance.attach(place)
                done.append(place.name)
                instance.protect(interface_id)
            for taken in work.remove:
                instance.remove(taken)
                done.append(name_of(taken))
        except Failed as failure:
            failed[instance_id] = str(failure)
    return of_all, failed


class _Instance:
    def __init__(self, calls: InterfaceCalls, instance_id: str, tags: Mapping[str, Any]) -> None:
        self.calls, self.instance_id = calls, instance_id
        self.tags = [{"Key": TAG, "Value": instance_id}]
        self.tags += [{"Key": str(key), "Value": str(value)} for key, value in tags.items()]

    def attach(self, place: Place) -> str:
        """Attach what waits for this place, or a new interface; its id. A new one that can't be attached is deleted."""
        if place.interface_id:
            self._attach(place.interface_id, place)
            return place.interface_id
        interface_id = self._create(place)
        try:
            self._attach(interface_id, place)
        except Failed as failure:
            self._delete(interface_id, str(failure))
            raise
        return interface_id

    def _create(self, place: Place) -> str:
        known = {item["NetworkInterfaceId"] for item in self.calls.unattached(self.instance_id)}
        answer, error = self.calls.repeat(
            BRIEF_SECONDS,
            "create_network_interface",
            # Repeated with the same token, the call makes no second interface.
            ClientToken=secrets.token_hex(16),
            SubnetId=place.subnet_id,
            Groups=list(place.groups),
            Description=f"nearmetal.ec2: for {self.instance_id}",
            TagSpecifications=[{"ResourceType": "network-interface", "Tags": self.tags}],
        )
        if error is None:
            return str(answer["NetworkInterface"]["NetworkInterfaceId"])
        for item in self.calls.unattached(self.instance_id):
            if item["NetworkInterfaceId"] not in known:
                return str(item["NetworkInterfaceId"])
        raise Failed(self.calls.explain("create_network_interface", error))

    def _attach(self, interface_id: str, place: Place) -> None:
        """Attach the interface until AWS shows it attached to the instance, whatever the answers are."""
        error: Optional[BaseException] = None
        given_up = False
        for _attempt in attempts(BRIEF_SECONDS):
            latest, _answered = self.calls.look(interface_id)
            if latest and self._is_attached(latest):
                return
            if given_up:
                break
            if latest and (latest.get("Attachment") or latest.get("Status") != "available"):
                continue
            _answer, error = self.calls.call(
                "attach_network_interface",
                InstanceId=self.instance_id,
                NetworkInterfaceId=interface_id,
                DeviceIndex=place.device,
                NetworkCardIndex=place.card,
            )
            given_up = error is not None and not self._passes(error)
        reason = self._why("attach_network_interface", error) or f"not attached after {BRIEF_SECONDS} s"
        raise Failed(f"{interface_id}: {reason}")

    def _is_attached(self, answer: Raw) -> bool:
        attachment = answer.get("Attachment") or {}
        return attachment.get("InstanceId") == self.instance_id and attachment.get("Status") in ("attached", None)

    def _why(self, operation: str, error: Optional[BaseException]) -> str:
        return self.calls.explain(operation, error) if error else ""

    def _passes(self, error: BaseException) -> bool:
        return self.calls.target.boto.passes(error) or error_code(error) in _NOT_YET

    def protect(self, interface_id: str) -> None:
        """Let AWS delete the interface together with its instance."""
        error: Optional[BaseException] = None
        for _attempt in attempts(BRIEF_SECONDS):
            latest, _answered = self.calls.look(interface_id)
            attachment = (latest or {}).get("Attachment") or {}
            if attachment.get("DeleteOnTermination"):
                return
            if error is not None and not self._passes(error):
                break
            if attachment.get("AttachmentId"):
                wanted = {"AttachmentId": attachment["AttachmentId"], "DeleteOnTermination": True}
                _answer, error = self.calls.call(
                    "modify_network_interface_attribute", NetworkInterfaceId=interface_id, Attachment=wanted
                )
        reason = self._why("modify_network_interface_attribute", error)
        reason = reason or f"AWS still shows the old value after {BRIEF_SECONDS} s"
        raise Failed(
            f"{interface_id} is attached, but would not be deleted with its instance; the next run tries again:"
            f" {reason}"
        )

    def remove(self, planned: Interface) -> None:
        """Detach and delete an interface, if it still is what the plan was made for."""
        interface_id = planned.interface_id
        error: Optional[BaseException] = None
        operation = ""
        given_up = False
        for _attempt in attempts(_DETACH_SECONDS):
            latest, answered = self.calls.look(interface_id)
            if not answered:
                continue
            if latest is None:
                return
            now = interface(latest)
            if now.made_for != self.instance_id or now.instance_id not in ("", self.instance_id) or now.used:
                raise Failed(f"{interface_id} was changed or attached elsewhere meanwhile: nothing was done to it")
            if given_up:
                break
            if now.instance_id and latest.get("Status") == "detaching":
                continue
            if now.instance_id:
                operation = "detach_network_interface"
                _answer, error = self.calls.call(operation, AttachmentId=now.attachment_id)
            else:
                operation = "delete_network_interface"
                _answer, error = self.calls.call(operation, NetworkInterfaceId=interface_id)
            given_up = error is not None and not self._passes(error)
        used = (
            f" is still attached after {_DETACH_SECONDS} s, because the host still uses it: run again, or stop the"
            " instance"
        )
        raise Failed(f"{interface_id}{used if error is None else f': {self._why(operation, error)}'}")

    def _delete(self, interface_id: str, failure: str) -> None:
        """Delete an interface of this run; what remains has nearmetal's tag, and the message says so."""
        error: Optional[BaseException] = None
        for _attempt in attempts(BRIEF_SECONDS):
            _answer, error = self.calls.call("delete_network_interface", NetworkInterfaceId=interface_id)
            if error is None or error_code(error) == _GONE or not self._passes(error):
                break
        if error is not None and error_code(error) != _GONE:
            reason = self.calls.explain("delete_network_interface", error)
            raise Failed(
                f"{failure}; {interface_id} remains, and the next run attaches it, or deletes it with state: "
                f"restored: {reason}"
            )
