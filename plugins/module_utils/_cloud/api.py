# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every call to AWS: in batches, page by page, with the failure of a batch kept to its instances. Writes. PRIVATE."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .._error import NearmetalError
from .accounts import Target, error_code, not_allowed, targets, title
from .types.facts import TypeFacts, type_facts
from .types.table import offline_types

# A filter takes up to 200 values; an unknown id in a filter is merely absent, in InstanceIds it fails the whole call.
FILTER_VALUES = 200
_STATUS_IDS = 100  # DescribeInstanceStatus takes no filter by id, and at most 100 ids
_CREDIT_IDS = 1000
_TYPES = 100
METRICS = 500  # GetMetricData's most queries
_PAGE = 1000
# Only instances by a filter are as many as an account has: a million of them in one region are a thousand pages. All
# other calls name at most 1,000 things, and the values of 500 metrics over two weeks are some twenty pages.
_MOST_PAGES = 1000
_ID = re.compile(r"i-[0-9a-f]{8,17}", re.ASCII)
BRIEF_SECONDS = 60  # for what takes AWS a few
_FIRST_PAUSE = 2
_LONGEST_PAUSE = 15

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Located:
    """An instance as DescribeInstances shows it, and where it was found."""

    target: Target
    owner: str  # the number of the account
    answer: Raw


@dataclass
class Answers:
    """The answers per instance, and the errors of instances without one."""

    by_id: Dict[str, List[Raw]] = field(default_factory=dict)
    failed: Dict[str, str] = field(default_factory=dict)

    def answer_of(self, instance_id: str) -> Optional[Raw]:
        """The only answer for an instance; None when there is none."""
        answers = self.by_id.get(instance_id)
        return answers[0] if answers else None


@dataclass(frozen=True)
class Series:
    """One metric of one thing, to ask CloudWatch for."""

    namespace: str
    name: str
    dimension: str
    value: str
    statistic: str = "Average"


class Cloud:
    """The accounts and regions of the options. Reads answer in raw form; the caller makes facts of it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.targets, self.errors = targets(options)

    def instances(
        self, ids: Optional[Sequence[str]], filters: Optional[Raw]
    ) -> Tuple[Dict[str, Located], Dict[str, str]]:
        """The instances by id, and for each id that was not found the reason."""
        wanted = list(dict.fromkeys(ids or ()))
        for instance_id in wanted:
            if not _ID.fullmatch(instance_id):
                raise NearmetalError(
                    f"instance_ids: {instance_id[:64]!r} isn't an instance id: expected i- and hexadecimal digits"
                )
        located: Dict[str, Located] = {}
        for target in self.targets:
            if ids is None:
                self._find(target, [_filters(filters or {})], located)
            else:
                remaining = [instance_id for instance_id in wanted if instance_id not in located]
                self._find(target, [{"instance-id": part} for part in parts(remaining, FILTER_VALUES)], located)
        if self.errors and not located:
            raise NearmetalError(self.errors[0])
        missing = {instance_id: self._why_missing() for instance_id in wanted if instance_id not in located}
        if missing and not located:
            raise NearmetalError(f"{', '.join(list(missing)[:5])}: {self._why_missing()}")
        return located, missing

    def _find(self, target: Target, queries: List[Raw], located: Dict[str, Located]) -> None:
        for query in queries:
            request = {
                "Filters": [{"Name": name, "Values": values} for name, values in query.items()],
                "MaxResults": _PAGE,
            }
            reservations, error = pages(target, "ec2", "describe_instances", "Reservations", request)
            for reservation in reservations:
                for answer in reservation.get("Instances", ()):
                    if answer.get("InstanceId"):
                        place = Located(target, reservation.get("OwnerId", ""), answer)
                        located.setdefault(answer["InstanceId"], place)
            if error:
                self.errors.append(error[1])
                return

    def _why_missing(self) -> str:
        targets = ", ".join(target.name for target in self.targets)
        more = f"; not every call was answered: {self.errors[0]}" if self.errors else ""
        return f"unknown instance: not found in {targets or 'any account'}{more}"

    def set_credit_specifications(self, located: Mapping[str, Located], specification: str) -> Dict[str, str]:
        """Change the mode of burstable instances; the errors by instance. Writes."""
        failed: Dict[str, str] = {}
        for target, instance_ids in by_target(located):
            for ids in parts(list(instance_ids), _STATUS_IDS):
                wanted = [{"InstanceId": instance_id, "CpuCredits": specification} for instance_id in ids]
                operation = "modify_instance_credit_specification"
                try:
                    answer = target.call("ec2", operation, InstanceCreditSpecifications=wanted)
                except target.boto.errors as error:
                    reason = target.boto.explain(error, f"{target.name}: ModifyInstanceCreditSpecification")
                    failed.update(dict.fromkeys(ids, reason))
                    continue
                for failure in answer.get("UnsuccessfulInstanceCreditSpecifications", ()):
                    failed[failure["InstanceId"]] = f"{failure['Error'].get('Code')}: {failure['Error'].get('Message')}"
        return failed

    def metrics(self, located: Mapping[str, Located], series: Mapping[str, Sequence[Series]], hours: int) -> Answers:
        """Series of CloudWatch per instance, of the last hours in steps of 5 minutes, oldest value first.

        Each answer has `name`, `dimension` and `values`.
        """
        answers = Answers()
        end = datetime.now(timezone.utc)
        period = {"StartTime": end - timedelta(hours=hours), "EndTime": end, "ScanBy": "TimestampAscending"}
        for target, instance_ids in by_target(located):
            wanted = [
                (instance_id, wanted_series)
                for instance_id in instance_ids
                for wanted_series in series.get(instance_id, ())
            ]
            for part in parts(wanted, METRICS):
                stats = [
                    stat(each.namespace, each.name, {each.dimension: each.value}, 300, each.statistic)
                    for _instance_id, each in part
                ]
                values, error = metric_values(target, stats, period)
                for index, (instance_id, wanted_series) in enumerate(part):
                    if error and index not in values:
                        answers.failed[instance_id] = error[1]
                        continue
                    answer = {
                        "name": wanted_series.name,
                        "dimension": wanted_series.value,
                        "values": values.get(index, []),
                    }
                    answers.by_id.setdefault(instance_id, []).append(answer)
        return answers

    def types(self, names: Iterable[str]) -> Tuple[Dict[str, TypeFacts], str]:
        """Facts of types, and the API's error if some facts are from the offline table; else an empty text."""
        wanted = list(dict.fromkeys(names))
        known_types: Dict[str, TypeFacts] = {}
        trouble = ""
        for target in self.targets:
            for part in parts([name for name in wanted if name not in known_types], _TYPES):
                request = {"Filters": [{"Name": "instance-type", "Values": part}], "MaxResults": _TYPES}
                answers, error = pages(target, "ec2", "describe_instance_types", "InstanceTypes", request)
                known_types.update((answer["InstanceType"], type_facts(answer)) for answer in answers)
                trouble = error[1] if error else trouble
        unsaid = [name for name in wanted if name not in known_types]
        table = offline_types()
        known_types.update((name, table[name]) for name in unsaid if name in table)
        return known_types, trouble if unsaid else ""


class Question(NamedTuple):
    """A call that describes something of many instances."""

    operation: str
    key: str  # of the items in an answer
    at_once: int  # names in one call
    request: Callable[[List[str]], Dict[str, Any]]
    names: Callable[[Raw], List[str]]  # to which an item belongs
    service: str = "ec2"


STATUSES = Question(
    "describe_instance_status",
    "InstanceStatuses",
    _STATUS_IDS,
    lambda ids: {"InstanceIds": ids, "IncludeAllInstances": True},
    lambda answer: [answer["InstanceId"]],
)
# Their status announces an interruption.
SPOT_REQUESTS = Question(
    "describe_spot_instance_requests",
    "SpotInstanceRequests",
    FILTER_VALUES,
    lambda ids: {"Filters": [{"Name": "instance-id", "Values": ids}], "MaxResults": _PAGE},
    lambda answer: [answer.get("InstanceId", "")],
)
# A volume of several instances counts for each.
VOLUMES = Question(
    "describe_volumes",
    "Volumes",
    FILTER_VALUES,
    lambda ids: {"Filters": [{"Name": "attachment.instance-id", "Values": ids}], "MaxResults": _PAGE},
    lambda answer: [attachment.get("InstanceId", "") for attachment in answer.get("Attachments", ())],
)
CREDIT_SPECIFICATIONS = Question(
    "describe_instance_credit_specifications",
    "InstanceCreditSpecifications",
    _CREDIT_IDS,
    lambda ids: {"InstanceIds": ids},
    lambda answer: [answer["InstanceId"]],
)
PLACEMENT_GROUPS = Question(
    "describe_placement_groups",
    "PlacementGroups",
    FILTER_VALUES,
    lambda groups: {"Filters": [{"Name": "group-name", "Values": groups}]},
    lambda group: [group["GroupName"]],
)


def ask(question: Question, located: Mapping[str, Located], names: Optional[Mapping[str, str]] = None) -> Answers:
    """The answers per instance, which AWS knows by their ids, or by `names`; what has none isn't asked for."""
    answers = Answers()
    for target, instances in by_target(located):
        members: Dict[str, List[str]] = {}
        for instance_id in instances:
            name = instance_id if names is None else names.get(instance_id)
            if name:
                members.setdefault(name, []).append(instance_id)
        for batch in parts(list(members), question.at_once):
            items, error = _items(target, question, batch)
            terminated = _terminated(error, batch)
            answers.failed.update(dict.fromkeys(terminated, "the instance was terminated during the run"))
            part = [name for name in batch if name not in terminated]
            if terminated and part:
                items, error = _items(target, question, part)
            for item in items:
                for instance_id in (member for name in question.names(item) for member in members.get(name, ())):
                    answers.by_id.setdefault(instance_id, []).append(item)
            if error and part:
                asked = (instance_id for name in part for instance_id in members[name])
                lost = [instance_id for instance_id in asked if instance_id not in answers.by_id]
                answers.failed.update(dict.fromkeys(lost, error[1]))
    return answers


def _items(
    target: Target, question: Question, names: List[str]
) -> Tuple[List[Raw], Optional[Tuple[BaseException, str]]]:
    return pages(target, question.service, question.operation, question.key, question.request(names))


def pages(
    target: Target, service: str, operation: str, key: str, request: Raw
) -> Tuple[List[Raw], Optional[Tuple[BaseException, str]]]:
    """The items of all pages; after an error, the items of the pages before it, and the error."""
    items: List[Raw] = []
    token: Dict[str, str] = {}
    tokens: Set[str] = set()
    name = f"{target.name}: {title(operation)}"
    while True:
        try:
            answer = target.read(service, operation, **request, **token)
        except target.boto.errors as error:
            half = f" after {len(items)} answers" if items else ""
            return items, (error, target.boto.explain(error, f"{name}{half}"))
        items.extend(answer.get(key, ()))
        if not answer.get("NextToken"):
            return items, None
        again = answer["NextToken"] in tokens
        token = {"NextToken": answer["NextToken"]}
        tokens.add(answer["NextToken"])
        if again or len(tokens) >= _MOST_PAGES:
            which = (
                "the same page comes again and again" if again else f"after {_MOST_PAGES} pages there are still more"
            )
            trouble = f"{name}: {which}: check the endpoint and any proxy"
            return items, (NearmetalError(trouble), trouble)


def stat(namespace: str, name: str, dimensions: Mapping[str, str], period: int, statistic: str) -> Dict[str, Any]:
    """One series of CloudWatch as GetMetricData asks for it; `period` is the seconds of a value."""
    named = [{"Name": dimension, "Value": value} for dimension, value in dimensions.items()]
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": named}
    return {"Metric": metric, "Period": period, "Stat": statistic}


def metric_values(
    target: Target, stats: Sequence[Raw], period: Raw
) -> Tuple[Dict[int, List[float]], Optional[Tuple[BaseException, str]]]:
    """The values of at most METRICS series, by their place in `stats`; after an error those that came before it."""
    queries = [{"Id": f"m{place}", "MetricStat": each} for place, each in enumerate(stats)]
    request = {**period, "MetricDataQueries": queries}
    results, error = pages(target, "cloudwatch", "get_metric_data", "MetricDataResults", request)
    values: Dict[int, List[float]] = {}
    for result in results:  # a series may go on on the next page
        values.setdefault(int(result["Id"][1:]), []).extend(result["Values"])
    return values, error


def parts(values: List[Any], size: int) -> Iterator[List[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def by_target(located: Mapping[str, Located]) -> List[Tuple[Target, Dict[str, Located]]]:
    """The instances of each account and region."""
    grouped: Dict[str, Tuple[Target, Dict[str, Located]]] = {}
    for instance_id, place in located.items():
        grouped.setdefault(place.target.name, (place.target, {}))[1][instance_id] = place
    return list(grouped.values())


def attempts(seconds: float) -> Iterator[None]:
    """Yield at once, then after growing pauses, the last time when the seconds are over."""
    until, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        yield
        left = until - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


class Calls:
    """Calls that change something in one account and region, repeated while AWS stumbles."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def call(self, operation: str, **request: Any) -> Tuple[Raw, Optional[BaseException]]:
        """One call; what boto made of it when it failed. AWS may have carried it out all the same."""
        try:
            return self.target.call("ec2", operation, **request), None
        except self.target.boto.errors as error:
            return {}, error

    def repeat(self, seconds: float, operation: str, **request: Any) -> Tuple[Raw, Optional[BaseException]]:
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
        name = title(operation)
        permission = f"; the permission is ec2:{name}" if not_allowed(error) else ""
        return self.target.boto.explain(error, f"{self.target.name}: {name}") + permission


def _filters(filters: Raw) -> Dict[str, List[str]]:
    chosen = {
        str(name): [str(value) for value in (values if isinstance(values, list) else [values])]
        for name, values in filters.items()
    }
    # Terminated instances stay visible for an hour; a filter by state still finds them.
    chosen.setdefault("instance-state-name", ["pending", "running", "stopping", "stopped"])
    return chosen


def _terminated(error: Optional[Tuple[BaseException, str]], part: List[str]) -> List[str]:
    if not error or error_code(error[0]) != "InvalidInstanceID.NotFound":
        return []
    named = _ID.findall(str(error[0]))
    return [instance_id for instance_id in part if instance_id in named]
