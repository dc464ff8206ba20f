# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change what needs a stopped instance: stop, change, start again, look again. Writes. PRIVATE to the collection."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.api import Located
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import Target, error_code

_POLL_SECONDS = 5
# What may pass when an instance is to be started: no answer at all, still stopping, no room at the moment.
_PASSING = ("", "IncorrectInstanceState", "InsufficientInstanceCapacity")

# Instance id → requests of ModifyInstanceAttribute, without the id.
Requests = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass
class Outcome:
    """What became of the instances."""

    done: List[str] = field(default_factory=list)
    failed: Dict[str, str] = field(default_factory=dict)
    left_stopped: List[str] = field(default_factory=list)  # were running, and are not


def change_stopped(found: Mapping[str, Located], requests: Requests, at_once: int, patience: int) -> Outcome:
    """Carry out the requests, `at_once` instances at a time; after a failure no further one is stopped.

    `patience` is how many seconds a stop or a start may take. Each instance is in `done` or in `failed` afterwards.
    """
    outcome = Outcome()
    for target, part in _batches(found, list(requests), at_once):
        with _to_its_end():
            _Batch(target, part, patience, outcome).run(found, requests)
        if outcome.failed:
            break
    for each in requests:
        if each not in outcome.done:
            outcome.failed.setdefault(each, "not begun, because another instance failed before it")
    return outcome


@contextmanager
def _to_its_end() -> Iterator[None]:
    """Who tells us to end is heard when what has begun is done: a job that is cancelled leaves nothing stopped."""
    heard: List[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda said, _frame: heard.append(said)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


def _batches(found: Mapping[str, Located], ids: List[str], at_once: int) -> Iterator[Tuple[Target, List[str]]]:
    """The instances of one account and region that are changed together."""
    for start in range(0, len(ids), at_once):
        batch = ids[start : start + at_once]
        for target in {found[each].target.name: found[each].target for each in batch}.values():
            yield target, [each for each in batch if found[each].target is target]


class _Batch:
    """A few instances of one account and region."""

    def __init__(self, target: Target, ids: List[str], patience: int, outcome: Outcome) -> None:
        self.target, self.ids, self.patience, self.outcome = target, ids, patience, outcome

    def run(self, found: Mapping[str, Located], requests: Requests) -> None:
        """Nothing is done when an instance isn't what the plan was made for: the batch may have waited for hours."""
        planned = {each: found[each].answer["State"]["Name"] for each in self.ids}
        now = self._states(self.ids)
        moved = [each for each in self.ids if now.get(each) != planned[each]]
        for each in moved:
            state = f"is {now[each]} now" if each in now else "could not be looked at again"
            self._fail([each], f"it was {planned[each]} and {state}: nothing was done to it; run again")
        if moved:
            return
        running = [each for each in self.ids if planned[each] == "running"]
        error = self._error("stop_instances", InstanceIds=running) if running else None
        if error is not None:
            self._fail(running, self._explain("stop_instances", error))
            if not error_code(error):
                self._start(running)  # without an answer, some may be stopping; when AWS refused, all still run
            return
        try:
            stopped, late = self._wait(self.ids, "stopped")
            self._fail(late, f"it did not stop within stop_timeout: {self.patience} s")
            for each in stopped:
                for request in requests[each]:
                    if not self._try([each], "modify_instance_attribute", InstanceId=each, **request):
                        break
        finally:
            self._start(running)
        self._look_again(requests)

    def _start(self, ids: List[str]) -> None:
        """Start what ran before, whatever happened in between. An instance that still runs stays as it is."""
        left = list(ids)
        until = time.monotonic() + self.patience
        while left:
            for each in list(left):
                error = self._error("start_instances", InstanceIds=[each])
                if error is None:
                    left.remove(each)
                elif error_code(error) not in _PASSING or time.monotonic() > until:
                    left.remove(each)
                    self.outcome.left_stopped.append(each)
                    self._fail([each], f"it could not be started again: {self._explain('start_instances', error)}")
            if left:
                time.sleep(_POLL_SECONDS)
        started = [each for each in ids if each not in self.outcome.left_stopped]
        _running, late = self._wait(started, "running")
        self._fail(late, f"it was started but does not run after stop_timeout: {self.patience} s")
        self.outcome.left_stopped.extend(late)

    def _wait(self, ids: List[str], state: str) -> Tuple[List[str], List[str]]:
        """Those that came into the state, and those that did not in time."""
        until = time.monotonic() + self.patience
        while True:
            states = self._states(ids)
            late = [each for each in ids if states.get(each) != state]
            if not late or time.monotonic() > until:
                return [each for each in ids if each not in late], late
            time.sleep(_POLL_SECONDS)

    def _look_again(self, requests: Requests) -> None:
        seen = self._describe(self.ids)
        for each in self.ids:
            if each in self.outcome.failed:
                continue
            answer = seen.get(each)
            if answer is None:
                self._fail([each], "it was changed but could not be looked at again: run again to see")
                continue
            held = {"EnaSupport": answer.get("EnaSupport") is True, "SriovNetSupport": answer.get("SriovNetSupport")}
            missing = [name for request in requests[each] for name in request if not held[name]]
            if missing:
                self._fail([each], f"AWS took the change of {', '.join(missing)} and still shows the old value")
            else:
                self.outcome.done.append(each)

    def _states(self, ids: List[str]) -> Dict[str, str]:
        return {each: answer["State"]["Name"] for each, answer in self._describe(ids).items()}

    def _describe(self, ids: List[str]) -> Dict[str, Mapping[str, Any]]:
        """The instances now; empty when AWS does not answer: then the next look may."""
        if not ids:
            return {}
        try:
            answer = self.target.read(
                "ec2", "describe_instances", Filters=[{"Name": "instance-id", "Values": ids}], MaxResults=1000
            )
        except self.target.boto.errors:
            return {}
        return {each["InstanceId"]: each for part in answer["Reservations"] for each in part["Instances"]}

    def _try(self, ids: List[str], operation: str, **request: Any) -> bool:
        error = self._error(operation, **request)
        if error is not None:
            self._fail(ids, self._explain(operation, error))
        return error is None

    def _error(self, operation: str, **request: Any) -> Any:
        try:
            self.target.call("ec2", operation, **request)
        except self.target.boto.errors as error:
            return error
        return None

    def _explain(self, operation: str, error: BaseException) -> str:
        return self.target.boto.explain(error, f"{self.target.name}: {operation}")

    def _fail(self, ids: List[str], reason: str) -> None:
        for each in ids:
            self.outcome.failed.setdefault(each, reason)
