# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small AWS on loopback: what moto lacks, AWS's limits on requests, and faults on demand.

It counts calls where they arrive. fake_http.py speaks HTTP for it, with answers that wire.py checks against botocore's
service model; fake_session.py stands in for boto3's session where thousands of runs are made.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from tests.support.aws.fake_error import AwsError
from tests.support.aws.fake_interfaces import GROUP, SUBNET, VPC, all_types
from tests.support.aws.fake_services import FakeServices, Raw


class LostAnswer(Exception):
    """AWS carried the request out, but its response was lost."""


class Killed(BaseException):
    """The requesting process has ended: none of its code runs any more."""


# Seconds until a stop or a start takes effect; the lost ones have no answer.
DELAYS = {"late": 40, "latest": 150, "lost_late": 40, "lost_latest": 150}
# What AWS answers with these statuses, boto tries again.
_STATUS = {
    "InternalError": 500,
    "RequestLimitExceeded": 503,
    "ServiceUnavailable": 503,
    "Throttling": 503,
    "Unavailable": 503,
}


@dataclass(frozen=True)
class Fault:
    """A fault of an operation.

    `kind` is an error's code, or lost (carried out, no answer), partial (an error, yet carried out in the zone of the
    first instance), a key of DELAYS (it takes effect so many seconds later), back (started, and stopped again), killed,
    and over HTTP hang, cut or html.
    """

    operation: str  # "StopInstances DryRun" for the calls that only ask
    kind: str
    calls: range  # which calls of the operation, counted from 0
    seconds_off: int = 0  # difference between the answer's Date and this machine's clock
    applied: bool = False  # the operation is carried out nevertheless


class FakeAws(FakeServices):
    """The state of the account, and the server."""

    def __init__(self) -> None:
        super().__init__()
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
        self.forgotten: Dict[str, str] = {}  # operation → an instance that is terminated after it
        self.stuck: List[str] = []  # instances that never stop
        self.due: List[Tuple[datetime, str, str]] = []  # when an instance reaches a state, and the reason
        self.elapsed: Callable[[], float] = lambda: 0.0  # seconds by which a test's clock advanced
        self.killed = False
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
            "LaunchTime": datetime(2026, 1, 1, tzinfo=timezone.utc),
            "VirtualizationType": "hvm",
            "Hypervisor": "xen",  # AWS reports xen for Nitro too
            "EnaSupport": True,
            "EbsOptimized": True,
            "RootDeviceType": "ebs",
            "Placement": {"AvailabilityZone": f"{region}a", "Tenancy": "default", "GroupName": ""},
            "NetworkInterfaces": [
                {
                    "NetworkInterfaceId": f"eni-{number:017x}",
                    "SubnetId": SUBNET,
                    "VpcId": VPC,
                    "Groups": [{"GroupId": GROUP}],
                    "Attachment": {"DeviceIndex": 0},
                }
            ],
            **more,
        }
        return instance_id

    def fault(
        self,
        operation: str,
        kind: str,
        first: int = 0,
        times: int = 10**6,
        seconds_off: int = 0,
        applied: bool = False,
    ) -> None:
        """Let calls of an operation fail."""
        self.faults.append(Fault(operation, kind, range(first, first + times), seconds_off, applied))

    def forget_after(self, operation: str, instance_id: str) -> None:
        """Let an instance vanish after the next call of an operation."""
        self.forgotten[operation] = instance_id

    def now(self) -> datetime:
        """This AWS's clock."""
        return datetime.now(timezone.utc) + timedelta(seconds=self.elapsed())

    def count(self, operation: str, request: Raw) -> Optional[Fault]:
        """Count a call and return its fault."""
        name = f"{operation} DryRun" if request.get("DryRun") else operation
        number = self.calls[name]
        self.calls[name] += 1
        return next((fault for fault in self.faults if fault.operation == name and number in fault.calls), None)

    def respond(self, operation: str, request: Raw, caller: Tuple[str, str], fault: Optional[Fault]) -> Raw:
        """The answer of an operation; `caller` is the account and the region of the request."""
        kind = fault.kind if fault else ""
        if kind == "killed" or self.killed:
            self.killed = True
            raise Killed
        if fault and kind not in ("lost", "partial", "back", "cut", "html", *DELAYS):
            if fault.applied:
                self._carry_out(operation, request, caller, "")
            raise AwsError(kind, "as the test wants", _STATUS.get(kind, 400))
        answer = self._carry_out(operation, request, caller, kind)
        if kind.startswith("lost"):
            raise LostAnswer
        if kind == "partial":
            raise AwsError("InternalError", "as the test wants", 500)
        return answer

    def _carry_out(self, operation: str, request: Raw, caller: Tuple[str, str], kind: str) -> Raw:
        with self._lock:
            self.advance()
            self.requests.append((operation, request))
            if request.get("DryRun"):
                raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
            if kind == "partial":
                zones = {
                    instance_id: self.instances[instance_id]["Placement"]["AvailabilityZone"]
                    for instance_id in request["InstanceIds"]
                }
                first = zones[request["InstanceIds"][0]]
                request = {
                    **request,
                    "InstanceIds": [instance_id for instance_id in zones if zones[instance_id] == first],
                }
            method = getattr(self, operation, None)
            if method is None:
                raise AwsError("InvalidAction", f"the fake has no {operation}")
            before = copy.deepcopy(self.instances) if kind in ("back", *DELAYS) else {}
            answer: Raw = method(request, caller)
            for instance_id in request.get("InstanceIds", ()) if kind in ("back", *DELAYS) else ():
                self._delay(instance_id, kind, before)
            if operation in self.forgotten:
                self.instances.pop(self.forgotten.pop(operation))
            return answer

    def _delay(self, instance_id: str, kind: str, before: Dict[str, Raw]) -> None:
        raw = self.instances[instance_id]
        if kind in DELAYS and raw["State"] != before[instance_id]["State"]:
            self.instances[instance_id] = before[instance_id]
            self.due.append((self.now() + timedelta(seconds=DELAYS[kind]), instance_id, raw["State"]["Name"]))
        if kind == "back" and raw["State"] != before[instance_id]["State"]:  # AWS leaves one that runs alone
            raw["State"] = {"Code": 0, "Name": "pending"}
            self.due.append((self.now() + timedelta(seconds=5), instance_id, "failed start"))

    def advance(self) -> None:
        """Carry out all changes that are due by now."""
        for when, instance_id, event in [change for change in self.due if change[0] <= self.now()]:
            self.due.remove((when, instance_id, event))
            if event == "failed start" and self.instances[instance_id]["State"]["Name"] == "pending":
                self._enter(instance_id, (80, "stopped"), when)
                self.instances[instance_id]["StateReason"] = {"Code": "Client.InternalError", "Message": ""}
                self.instances[instance_id]["StateTransitionReason"] = ""
            elif event == "stopped":
                self._enter(instance_id, (80, event), when)
            elif event == "running":
                self._enter(instance_id, (16, event), when)

    def _enter(self, instance_id: str, state: Tuple[int, str], when: datetime) -> None:
        raw = self.instances[instance_id]
        raw["State"] = {"Code": state[0], "Name": state[1]}
        if state[1] in ("running", "pending"):
            raw.update(LaunchTime=when, StateTransitionReason="")
            raw.pop("StateReason", None)
        else:
            code = "Client.UserInitiatedShutdown"
            raw["StateReason"] = {"Code": code, "Message": f"{code}: User initiated shutdown"}
            raw["StateTransitionReason"] = f"User initiated ({when:%Y-%m-%d %H:%M:%S} GMT)"

    def _visible(self, caller: Tuple[str, str]) -> Dict[str, Raw]:
        return {instance_id: raw for instance_id, raw in self.instances.items() if self.owners[instance_id] == caller}

    def _existing(self, ids: List[str], caller: Tuple[str, str]) -> List[Raw]:
        visible = self._visible(caller)
        missing = [instance_id for instance_id in ids if instance_id not in visible]
        if missing:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance IDs '{', '.join(missing)}' do not exist")
        return [visible[instance_id] for instance_id in ids]

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
        existing = self._existing(request["InstanceIds"], caller)
        statuses = [{"InstanceId": raw["InstanceId"], **self.statuses.get(raw["InstanceId"], {})} for raw in existing]
        return self._paged(statuses, request, "InstanceStatuses")

    def DescribeSpotInstanceRequests(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        return self._paged(
            [raw for raw in self.spot_requests if _matches(raw, request)], request, "SpotInstanceRequests"
        )

    def DescribeVolumes(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        volumes = [raw for raw in self.volumes if self.owners[raw["Attachments"][0]["InstanceId"]] == caller]
        return self._paged([raw for raw in volumes if _matches(raw, request)], request, "Volumes")

    def DescribePlacementGroups(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        return {"PlacementGroups": [raw for raw in self.groups if _matches(raw, request)]}

    def DescribeInstanceTypes(self, request: Raw, _caller: Tuple[str, str]) -> Raw:
        if request.get("MaxResults", 0) > 100:
            raise AwsError("InvalidParameterValue", "MaxResults is more than 100")
        return self._paged([raw for raw in all_types() if _matches(raw, request)], request, "InstanceTypes")

    def DescribeInstanceCreditSpecifications(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        existing = self._existing(request["InstanceIds"], caller)
        for raw in existing:
            if not raw["InstanceType"].startswith("t"):
                raise AwsError("InvalidParameterValue", f"{raw['InstanceType']} is not burstable")
        found = [{"InstanceId": raw["InstanceId"], "CpuCredits": self.credits[raw["InstanceId"]]} for raw in existing]
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
        self, request: Raw, caller: Tuple[str, str], must: str, to: Tuple[int, str], interim: Tuple[int, str]
    ) -> List[Raw]:
        changes = []
        for raw in self._existing(request["InstanceIds"], caller):
            if raw["State"]["Name"] == to[1]:
                continue
            if raw["State"]["Name"] != must:
                raise AwsError("IncorrectInstanceState", f"{raw['InstanceId']} is {raw['State']['Name']}")
            self._enter(raw["InstanceId"], interim if raw["InstanceId"] in self.stuck else to, self.now())
            current = {"Code": interim[0], "Name": interim[1]}
            changes.append({"InstanceId": raw["InstanceId"], "CurrentState": current})
        return changes

    def CreateTags(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        for raw in self._existing(request["Resources"], caller):
            keys = {tag["Key"] for tag in request["Tags"]}
            raw["Tags"] = [tag for tag in raw.get("Tags", ()) if tag["Key"] not in keys] + request["Tags"]
            if len(raw["Tags"]) > 50:
                raise AwsError("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
        return {}

    def DeleteTags(self, request: Raw, caller: Tuple[str, str]) -> Raw:
        assert request["Tags"], "without a key, AWS deletes all tags"
        for raw in self._existing(request["Resources"], caller):
            for wanted in request["Tags"]:
                # Without a value, any value matches.
                raw["Tags"] = [
                    tag
                    for tag in raw.get("Tags", ())
                    if tag["Key"] != wanted["Key"] or wanted.get("Value", tag["Value"]) != tag["Value"]
                ]
        return {}

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
        return self._paged(results, request, "MetricDataResults")


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
    elif name == "tag-key":
        yield from (tag["Key"] for tag in raw.get("Tags", ()))
    elif name == "instance-state-name":
        yield raw["State"]["Name"]
    elif name == "attachment.instance-id":
        yield from (attachment["InstanceId"] for attachment in raw["Attachments"])
    else:
        yield raw[{"instance-id": "InstanceId", "group-name": "GroupName", "instance-type": "InstanceType"}[name]]
