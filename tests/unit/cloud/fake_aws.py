# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small AWS on loopback: what moto lacks, AWS's limits on requests, and faults on demand.

It counts calls where they arrive. Answers are checked against botocore's service model by wire.py.
"""

from __future__ import annotations

import gzip
import json
import threading
import traceback
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tests.unit.cloud import wire

Raw = Dict[str, Any]


class AwsError(Exception):
    """An error that the fake answers."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass
class Fault:
    """What goes wrong with an operation: an error's code, or hang | cut | html."""

    operation: str
    kind: str
    calls: range  # which calls of the operation, counted from 0
    seconds_off: int = 0  # by how much the answer's Date is off this machine's clock


class FakeAws:
    """The state of the account, and the server."""

    def __init__(self) -> None:
        self.instances: Dict[str, Raw] = {}
        self.owners: Dict[str, Tuple[str, str]] = {}  # id → (number of the account, region)
        self.volumes: List[Raw] = []
        self.groups: List[Raw] = []
        self.statuses: Dict[str, Raw] = {}
        self.spot_requests: List[Raw] = []
        self.credits: Dict[str, str] = {}
        self.metrics: Dict[Tuple[str, str], List[float]] = {}  # (metric, value of its dimension) → 5-minute values
        self.roles: Dict[str, str] = {}  # ARN → number of the account
        self.page = 1000
        self.calls: "Counter[str]" = Counter()
        self.requests: List[Tuple[str, Raw]] = []
        self.problems: List[str] = []
        self.faults: List[Fault] = []
        self.forgotten: Dict[str, str] = {}  # operation → an instance that is gone after it
        self.stuck: List[str] = []  # instances that never come to a stop
        self.released = threading.Event()
        self._lock = threading.Lock()

    def add(self, number: int = 1, instance_type: str = "m5.large", account: str = "111111111111", **more: Any) -> str:
        """One more running instance; its id ends in the number."""
        region = more.pop("region", "eu-west-1")
        instance_id = f"i-{number:017x}"
        self.owners[instance_id] = (account, region)
        self.instances[instance_id] = {
            "InstanceId": instance_id,
            "InstanceType": instance_type,
            "State": {"Code": 16, "Name": "running"},
            "VirtualizationType": "hvm",
            "Hypervisor": "xen",  # AWS says so for Nitro too
            "EnaSupport": True,
            "EbsOptimized": True,
            "RootDeviceType": "ebs",
            "Placement": {"AvailabilityZone": f"{region}a", "Tenancy": "default", "GroupName": ""},
            "NetworkInterfaces": [{"NetworkInterfaceId": f"eni-{number:017x}", "Attachment": {"DeviceIndex": 0}}],
            **more,
        }
        return instance_id

    def fault(self, operation: str, kind: str, first: int = 0, times: int = 10**6, seconds_off: int = 0) -> None:
        """Let calls of an operation go wrong."""
        self.faults.append(Fault(operation, kind, range(first, first + times), seconds_off))

    def forget_after(self, operation: str, instance_id: str) -> None:
        """Let an instance vanish after the next call of an operation."""
        self.forgotten[operation] = instance_id

    def answer(self, service: str, operation: str, request: Raw, caller: Tuple[str, str]) -> Raw:
        """The answer of an operation; `caller` is the account and the region of the request."""
        with self._lock:
            self.requests.append((operation, request))
            method = getattr(self, operation, None)
            if method is None:
                raise AwsError("InvalidAction", f"the fake has no {operation}")
            answer: Raw = method(request, caller)
            if operation in self.forgotten:
                self.instances.pop(self.forgotten.pop(operation))
            return answer

    def _visible(self, caller: Tuple[str, str]) -> Dict[str, Raw]:
        return {each: raw for each, raw in self.instances.items() if self.owners[each] == caller}

    def _existing(self, ids: List[str], caller: Tuple[str, str]) -> List[Raw]:
        there = self._visible(caller)
        gone = [each for each in ids if each not in there]
        if gone:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance IDs '{', '.join(gone)}' do not exist")
        return [there[each] for each in ids]

    def _paged(self, items: List[Any], request: Raw, key: str) -> Raw:
        start = int(request.get("NextToken", 0))
        size = min(self.page, request.get("MaxResults", self.page))
        more = {"NextToken": str(start + size)} if start + size < len(items) else {}
        return {key: items[start : start + size], **more}

    def DescribeInstances(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        if "InstanceIds" in request and "MaxResults" in request:
            raise AwsError("InvalidParameterCombination", "MaxResults with InstanceIds")
        chosen = self._existing(request.get("InstanceIds", list(self._visible(caller))), caller)
        chosen = [raw for raw in chosen if _matches(raw, request)]
        return self._paged([{"OwnerId": caller[0], "Instances": [raw]} for raw in chosen], request, "Reservations")

    def DescribeInstanceStatus(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        if len(request["InstanceIds"]) > 100:
            raise AwsError("InvalidParameterValue", "more than 100 instance ids")
        assert request["IncludeAllInstances"], "stopped instances have events too"
        there = self._existing(request["InstanceIds"], caller)
        statuses = [{"InstanceId": raw["InstanceId"], **self.statuses.get(raw["InstanceId"], {})} for raw in there]
        return self._paged(statuses, request, "InstanceStatuses")

    def DescribeSpotInstanceRequests(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        return self._paged(
            [raw for raw in self.spot_requests if _matches(raw, request)], request, "SpotInstanceRequests"
        )

    def DescribeVolumes(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        mine = [raw for raw in self.volumes if self.owners[raw["Attachments"][0]["InstanceId"]] == caller]
        return self._paged([raw for raw in mine if _matches(raw, request)], request, "Volumes")

    def DescribePlacementGroups(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        return {"PlacementGroups": [raw for raw in self.groups if _matches(raw, request)]}

    def DescribeInstanceTypes(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        if request.get("MaxResults", 0) > 100:
            raise AwsError("InvalidParameterValue", "MaxResults is more than 100")
        return self._paged([raw for raw in all_types() if _matches(raw, request)], request, "InstanceTypes")

    def DescribeInstanceCreditSpecifications(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        there = self._existing(request["InstanceIds"], caller)
        for raw in there:
            if not raw["InstanceType"].startswith("t"):
                raise AwsError("InvalidParameterValue", f"{raw['InstanceType']} is not burstable")
        found = [{"InstanceId": raw["InstanceId"], "CpuCredits": self.credits[raw["InstanceId"]]} for raw in there]
        return {"InstanceCreditSpecifications": found}

    def ModifyInstanceCreditSpecification(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        done, failed = [], []
        for wanted in request["InstanceCreditSpecifications"]:
            instance_id = wanted["InstanceId"]
            if instance_id in self._visible(caller):
                self.credits[instance_id] = wanted["CpuCredits"]
                done.append({"InstanceId": instance_id})
            else:
                error = {"Code": "InvalidInstanceID.NotFound", "Message": "it does not exist"}
                failed.append({"InstanceId": instance_id, "Error": error})
        return {
            "SuccessfulInstanceCreditSpecifications": done,
            "UnsuccessfulInstanceCreditSpecifications": failed,
        }

    def ModifyInstanceAttribute(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        (raw,) = self._existing([request["InstanceId"]], caller)
        if raw["State"]["Name"] != "stopped":
            raise AwsError("IncorrectInstanceState", f"{raw['InstanceId']} is not stopped")
        if "EnaSupport" in request:
            raw["EnaSupport"] = request["EnaSupport"]["Value"]
        if "SriovNetSupport" in request:
            assert request["SriovNetSupport"]["Value"] == "simple"
            raw["SriovNetSupport"] = "simple"
        return {}

    def StopInstances(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        return {"StoppingInstances": self._move(request, caller, "running", (80, "stopped"), (64, "stopping"))}

    def StartInstances(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        return {"StartingInstances": self._move(request, caller, "stopped", (16, "running"), (0, "pending"))}

    def _move(
        self, request: Raw, caller: Tuple[str, str], must: str, to: Tuple[int, str], said: Tuple[int, str]
    ) -> List[Raw]:
        changes = []
        for raw in self._existing(request["InstanceIds"], caller):
            if raw["State"]["Name"] == to[1]:
                continue
            if raw["State"]["Name"] != must:
                raise AwsError("IncorrectInstanceState", f"{raw['InstanceId']} is {raw['State']['Name']}")
            code, name = said if raw["InstanceId"] in self.stuck else to
            raw["State"] = {"Code": code, "Name": name}
            current = {"Code": said[0], "Name": said[1]}
            changes.append({"InstanceId": raw["InstanceId"], "CurrentState": current})
        return changes

    def AssumeRole(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        account = self.roles.get(request["RoleArn"])
        if account is None:
            raise AwsError("AccessDenied", f"not authorized to assume {request['RoleArn']}", 403)
        expiration = datetime.now(timezone.utc) + timedelta(hours=1)
        given = {"AccessKeyId": f"ASIA{account}", "SecretAccessKey": "x", "SessionToken": "x", "Expiration": expiration}
        return {"Credentials": given}

    def GetMetricData(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        if len(request["MetricDataQueries"]) > 500:
            raise AwsError("ValidationError", "more than 500 queries")
        results = []
        for query in request["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            (dimension,) = metric["Dimensions"]
            values = self.metrics.get((metric["MetricName"], dimension["Value"]), [])
            start = request["StartTime"]
            stamps = [start + timedelta(minutes=5 * index) for index in range(len(values))]
            results.append({"Id": query["Id"], "Timestamps": stamps, "Values": [float(value) for value in values]})
        return {"MetricDataResults": results}


@lru_cache(maxsize=None)
def all_types() -> List[Raw]:
    """DescribeInstanceTypes as moto ships it."""
    packed = resources.files("moto").joinpath("ec2", "resources", "instance_types.json.gz").read_bytes()
    types: List[Raw] = list(json.loads(gzip.decompress(packed)).values())
    for each in types:
        each["ProcessorInfo"].pop("SupportedFeatures", None)  # has values that botocore's model doesn't know yet
    return types


def _matches(raw: Raw, request: Raw) -> bool:
    for wanted in request.get("Filters", ()):
        if len(wanted["Values"]) > 200:
            raise AwsError("FilterLimitExceeded", "more than 200 filter values")
        if not set(_values(raw, wanted["Name"])) & set(wanted["Values"]):
            return False
    return True


def _values(raw: Raw, name: str) -> Iterator[Optional[str]]:
    if name.startswith("tag:"):
        yield from (tag["Value"] for tag in raw.get("Tags", ()) if tag["Key"] == name[4:])
    elif name == "instance-state-name":
        yield raw["State"]["Name"]
    elif name == "attachment.instance-id":
        yield from (each["InstanceId"] for each in raw["Attachments"])
    else:
        yield raw[{"instance-id": "InstanceId", "group-name": "GroupName", "instance-type": "InstanceType"}[name]]


class Handler(BaseHTTPRequestHandler):
    """HTTP in front of a FakeAws."""

    protocol_version = "HTTP/1.1"
    aws: FakeAws

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        target = self.headers.get("X-Amz-Target")
        service, operation, request = wire.json_request(target, body) if target else wire.form_request(body)
        number = self.aws.calls[operation]
        self.aws.calls[operation] += 1
        fault = next((each for each in self.aws.faults if each.operation == operation and number in each.calls), None)
        if fault and fault.kind == "hang":
            self.aws.released.wait()
            return
        try:
            if fault and fault.kind not in ("cut", "html"):
                status = 503 if fault.kind in ("RequestLimitExceeded", "Throttling") else 400
                raise AwsError(fault.kind, "as the test wants", status)
            answer = self.aws.answer(service, operation, request, self._caller())
            content, status = self._content(service, operation, answer), 200
        except AwsError as error:
            said = (error.code, str(error))
            content, status = wire.json_error(*said) if target else wire.xml_error(service, *said), error.status
        except AssertionError as error:
            self.aws.problems.append(str(error))
            content, status = b"", 500
        if fault and fault.kind == "html":
            content, status = b"<html>a proxy says hello", 200
        self._send(status, content, fault)

    def _caller(self) -> Tuple[str, str]:
        """The account and region in the signature; an assumed role's key is made of its account."""
        key, _day, region = self.headers["Authorization"].split("Credential=")[1].split("/")[:3]
        return (key[4:] if key.startswith("ASIA") else "111111111111"), region

    @staticmethod
    def _content(service: str, operation: str, answer: Raw) -> bytes:
        if service == "cloudwatch":
            return wire.json_answer(operation, answer)
        return wire.xml_answer(service, operation, answer)

    def _send(self, status: int, content: bytes, fault: Optional[Fault]) -> None:
        self.send_response_only(status)
        now = datetime.now(timezone.utc) + timedelta(seconds=fault.seconds_off if fault else 0)
        self.send_header("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault and fault.kind == "cut":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        self.wfile.write(content)

    def log_message(self, *_what: Any) -> None:
        """Tests say what they need to say."""


class Server(ThreadingHTTPServer):
    """A server whose own errors fail the test."""

    def handle_error(self, _request: Any, _address: Any) -> None:
        """Keep the error for the end of the test."""
        handler: Any = self.RequestHandlerClass
        handler.aws.problems.append(traceback.format_exc())


def serve(aws: FakeAws) -> ThreadingHTTPServer:
    """The server, on a port of its own choice."""
    server = Server(("127.0.0.1", 0), type("FakeHandler", (Handler,), {"aws": aws}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server
