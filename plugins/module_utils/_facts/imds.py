# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers of the instance metadata service (IMDSv2). PRIVATE to the collection.

It is asked only where firmware or hypervisor say EC2, without any proxy, for one second in all. The token is kept
in memory for that second. User data is never read. An answer of another form than expected is null.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import time
from typing import Any, List, NamedTuple, Optional, Tuple

from .._parse import json_text
from .platform import INSTANCE_TYPE, PlatformFacts

ENDPOINT = ("169.254.169.254", 80)
SECONDS = 1.0
MAX_BYTES = 65536
MAX_INTERFACES = 32

_TOKEN = re.compile(r"[\x21-\x7e]{8,1024}")
_WORD = re.compile(r"[\w .:/=+@-]{1,255}", re.ASCII)
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,5}", re.ASCII)


class MetadataInterface(NamedTuple):
    """A network interface as EC2 knows it."""

    interface_id: Optional[str]
    device_number: Optional[int]
    card: Optional[int]


class InstanceMetadata(NamedTuple):
    """The service's answers about the instance; None for an answer that is missing."""

    status: str  # ok | not_ec2 | off | no_answer
    reason: str  # what to do about it; empty when ok
    instance_id: Optional[str] = None
    instance_type: Optional[str] = None
    account: Optional[str] = None
    region: Optional[str] = None
    availability_zone: Optional[str] = None
    architecture: Optional[str] = None
    image_id: Optional[str] = None
    kernel_id: Optional[str] = None  # aki-…: boots by PV-GRUB
    lifecycle: Optional[str] = None  # on-demand | spot | scheduled
    placement_group: Optional[str] = None
    partition: Optional[int] = None
    workload: Optional[str] = None  # the tag workload, where tags are allowed in metadata
    interfaces: Tuple[MetadataInterface, ...] = ()
    events: Tuple[str, ...] = ()  # scheduled and not past
    spot_notice: Optional[str] = None


def observe(platform: PlatformFacts, endpoint: Tuple[str, int] = ENDPOINT) -> InstanceMetadata:
    """Ask the service, if this is EC2."""
    in_container = platform.host_class == "container"
    if platform.host_class == "not_ec2" or (in_container and platform.instance_id is None):
        return InstanceMetadata(
            "not_ec2", "the firmware and the hypervisor don't name EC2, so the service was not asked"
        )
    service = _Service(endpoint)
    try:
        if not service.open():
            return InstanceMetadata("off", "the service refuses IMDSv2: allow it in the instance's metadata options")
        return _all(service)
    except ConnectionRefusedError:
        return InstanceMetadata("off", "nothing listens at the service's address: it is off, or a firewall rejects it")
    except OSError:
        hint = "; in a container a hop limit of 1 does this" if in_container else ""
        return InstanceMetadata("no_answer", f"no answer within {SECONDS:g} s: a firewall drops it{hint}")


def instance_type(platform: PlatformFacts, endpoint: Tuple[str, int] = ENDPOINT) -> Optional[str]:
    """The type that the service reports; None outside EC2, in a container, and when none comes within the second."""
    if platform.host_class in ("not_ec2", "container"):
        return None
    service = _Service(endpoint)
    try:
        known = service.json("dynamic/instance-identity/document") if service.open() else None
    except OSError:
        return None
    named = word(known.get("instanceType")) if isinstance(known, dict) else None
    return named if named is not None and INSTANCE_TYPE.fullmatch(named) else None


class _Service:
    """The metadata service, for one second."""

    def __init__(self, endpoint: Tuple[str, int]) -> None:
        self._endpoint = endpoint
        self._until = time.monotonic() + SECONDS
        self._token = ""
        self.late = False  # whether the second was over before everything had been asked

    def open(self) -> bool:
        """Get a token; False when the service won't give one."""
        status, text = self._ask("PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 60")
        if status == 200 and _TOKEN.fullmatch(text):
            self._token = text
        return bool(self._token)

    def text(self, path: str) -> Optional[str]:
        """The service's text at a path; None when there is none, or no time left."""
        try:
            status, text = self._ask("GET", f"/latest/{path}", f"X-aws-ec2-metadata-token: {self._token}")
        except OSError:
            self.late = True
            return None
        return text if status == 200 else None

    def word(self, path: str) -> Optional[str]:
        """A short text of harmless characters."""
        return word(self.text(path))

    def number(self, path: str) -> Optional[int]:
        """A small number."""
        text = self.text(path) or ""
        return int(text) if _NUMBER.fullmatch(text) else None

    def json(self, path: str) -> Any:
        """The value of the JSON at a path; None when there is none."""
        try:
            return json_text.parse(self.text(path) or "null")
        except ValueError:
            return None

    def _ask(self, method: str, path: str, header: str) -> Tuple[int, str]:
        """Status and body of one request. Raises OSError when no answer comes in time."""
        with socket.create_connection(self._endpoint, timeout=self._remaining()) as connection:
            lines = (f"{method} {path} HTTP/1.1", f"Host: {self._endpoint[0]}", "Connection: close", header, "", "")
            connection.sendall("\r\n".join(lines).encode())
            received = b""
            while len(received) <= MAX_BYTES:
                connection.settimeout(self._remaining())
                part = connection.recv(MAX_BYTES)
                if not part:
                    break
                received += part
        return _parsed(received, method)

    def _remaining(self) -> float:
        remaining = self._until - time.monotonic()
        if remaining <= 0:
            raise socket.timeout
        return remaining


class _Received:
    """Bytes in the place of a socket, for http.client's parser."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        """The bytes as a file."""
        return io.BytesIO(self._data)


def _parsed(received: bytes, method: str) -> Tuple[int, str]:
    """Status and body; status 0 when the answer isn't HTTP."""
    readable: Any = _Received(received)
    answer = http.client.HTTPResponse(readable, method=method)
    try:
        answer.begin()
        return answer.status, answer.read(MAX_BYTES).decode("utf-8", "replace").strip()
    except (http.client.HTTPException, ValueError, OSError):
        return 0, ""


def word(value: Any) -> Optional[str]:
    """The value when it is a short text of harmless characters."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def _all(service: _Service) -> InstanceMetadata:
    """All answers, the most important first, because a slow service may not give them all in time."""
    document = service.json("dynamic/instance-identity/document")
    known = document if isinstance(document, dict) else {}
    spot_notice = _spot_notice(service.json("meta-data/spot/instance-action"))
    events = _events(service.json("meta-data/events/maintenance/scheduled"))
    answers = InstanceMetadata(
        status="ok",
        reason="",
        instance_id=word(known.get("instanceId")),
        instance_type=word(known.get("instanceType")),
        account=word(known.get("accountId")),
        region=word(known.get("region")),
        availability_zone=word(known.get("availabilityZone")),
        architecture=word(known.get("architecture")),
        image_id=word(known.get("imageId")),
        kernel_id=word(known.get("kernelId")),
        lifecycle=service.word("meta-data/instance-life-cycle"),
        placement_group=service.word("meta-data/placement/group-name"),
        partition=service.number("meta-data/placement/partition-number"),
        workload=service.word("meta-data/tags/instance/workload"),
        interfaces=_interfaces(service),
        events=events,
        spot_notice=spot_notice,
    )
    if not service.late:
        return answers
    if not known:
        raise socket.timeout
    return answers._replace(reason=f"the service is slow: facts that it had not given within {SECONDS:g} s are null")


def _interfaces(service: _Service) -> Tuple[MetadataInterface, ...]:
    base = "meta-data/network/interfaces/macs"
    names = [name.rstrip("/") for name in (service.text(f"{base}/") or "").split()]
    interfaces: List[MetadataInterface] = []
    for mac in [name for name in names if _MAC.fullmatch(name)][:MAX_INTERFACES]:
        place = f"{base}/{mac}"
        card = service.number(f"{place}/network-card")
        number = service.number(f"{place}/device-number")
        interfaces.append(MetadataInterface(service.word(f"{place}/interface-id"), number, card))
    return tuple(sorted(interfaces, key=lambda interface: (interface.card or 0, interface.device_number or 0)))


def _events(answer: Any) -> Tuple[str, ...]:
    pending = []
    for event in answer if isinstance(answer, list) else ():
        if isinstance(event, dict) and event.get("State") not in ("completed", "canceled"):
            code, start = word(event.get("Code")), word(event.get("NotBefore"))
            pending.append(f"{code or 'unknown'}{f' not before {start}' if start else ''}")
    return tuple(sorted(pending))


def _spot_notice(answer: Any) -> Optional[str]:
    if not isinstance(answer, dict):
        return None
    action, moment = word(answer.get("action")), word(answer.get("time"))
    return f"{action or 'unknown'}{f' at {moment}' if moment else ''}"
