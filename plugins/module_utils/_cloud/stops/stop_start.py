# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change what needs a stopped instance: stop, change, start again, look again. Writes. PRIVATE to the collection.

No error code says what AWS did: after each stop the states decide. What ran before is remembered in a tag.
"""

from __future__ import annotations

import itertools
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set

from ..accounts import error_code
from ..api import BRIEF_SECONDS, Located, Raw, attempts, by_target
from .power import STATE_CODES, Outcome, Power, Tags, state_of
from .stop_mark import LEFT_STATES, OUR_STOP, TAG, judge, power_facts

# Before the stop, waiting is cheap to give up: nothing has happened yet.
# For so long an instance is watched that may stop although AWS answered with an error.
_WATCH_SECONDS = 60
_ENDED = ("shutting-down", "terminated")


@dataclass(frozen=True)
class Work:
    """What to do to one instance. One that runs is stopped for the requests."""

    requests: Sequence[Mapping[str, Any]] = ()  # of ModifyInstanceAttribute, without the id
    start: bool = False  # an earlier run stopped it
    tag: Optional[str] = None  # of an earlier run, to be removed


def change_stopped(located: Mapping[str, Located], works: Mapping[str, Work], at_once: int, timeout: int) -> Outcome:
    """Do the work, `at_once` instances at a time; after a failure no further one is stopped.

    First starts what an earlier run left stopped, each whatever became of the others. `timeout` is how many seconds a
    stop, a change or a start may take. Each instance is in `done` or in `failed` afterwards.
    """
    outcome = Outcome()
    left_stopped = [instance_id for instance_id, work in works.items() if work.start]
    others = [instance_id for instance_id in works if instance_id not in left_stopped]
    cause = "another instance failed before it"
    with _signals_held() as received:
        for ids in itertools.chain(([instance_id] for instance_id in left_stopped), _batches(located, others, at_once)):
            if outcome.failed and ids[0] in others:
                break
            if received:
                cause = f"the run was canceled by {signal.Signals(received[0]).name}"
                break
            _Batch(located, {instance_id: works[instance_id] for instance_id in ids}, timeout, outcome).run()
    for instance_id in works:
        if instance_id not in outcome.done:
            outcome.failed.setdefault(instance_id, f"not begun, because {cause}")
    return outcome


@contextmanager
def _signals_held() -> Iterator[List[int]]:
    """Signals to end are collected: a canceled job leaves nothing stopped, and still reports what it did."""
    received: List[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _frame: received.append(number)) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _batches(located: Mapping[str, Located], ids: List[str], at_once: int) -> Iterator[List[str]]:
    """The instances of one account and region that are changed together."""
    for start in range(0, len(ids), at_once):
        part = {instance_id: located[instance_id] for instance_id in ids[start : start + at_once]}
        yield from (list(instances) for _target, instances in by_target(part))


class _Batch:
    """A few instances of one account and region."""

    def __init__(
        self, located: Mapping[str, Located], works: Mapping[str, Work], timeout: int, outcome: Outcome
    ) -> None:
        self.planned: Dict[str, Raw] = {instance_id: located[instance_id].answer for instance_id in works}
        self.works, self.timeout, self.outcome = works, timeout, outcome
        self.power = Power(located[next(iter(works))].target)
        self.brief = min(timeout, BRIEF_SECONDS)
        earlier = {instance_id: work.tag for instance_id, work in works.items() if work.tag}
        self.tags = Tags(self.power, self.brief, outcome, earlier)
        self.unsure: Set[str] = set()  # asked to stop, and not seen stopped
        self.halted = {instance_id for instance_id, work in works.items() if work.start}  # and those seen stopped
        self.modified: Set[str] = set()

    def run(self) -> None:
        """Nothing is stopped before AWS has said that all that follows is permitted, and the tag was seen."""
        stops = [
            instance_id
            for instance_id, work in self.works.items()
            if work.requests and self._planned_state(instance_id) == "running"
        ]
        if stops and not self._permitted(stops):
            return
        running = {instance_id: self._launched(instance_id) for instance_id in stops}
        # This look comes last: between it and the tag another run has the least time to stop the instance.
        if not self._as_planned() or (stops and not self.tags.remember(running)):
            return
        try:
            if self._stop(stops):
                for instance_id, work in self.works.items():
                    self._modify(instance_id, work.requests)
        finally:
            self._start_again([*stops, *(instance_id for instance_id, work in self.works.items() if work.start)])
        answers = self._look_again()
        self._forget(answers)
        self._settle(answers)

    def _planned_state(self, instance_id: str) -> str:
        return state_of(self.planned[instance_id])

    def _state(self, instance_id: str, answer: Optional[Raw]) -> str:
        """The state now. After a stop was seen, an instance runs only since a later start: other answers are older."""
        if answer and instance_id in self.halted and state_of(answer) == "running":
            launched, before = power_facts(answer).launched, self._launched(instance_id)
            return "stopped" if launched and before and launched <= before else "running"
        return state_of(answer)

    def _launched(self, instance_id: str) -> Optional[str]:
        return power_facts(self.planned[instance_id]).launched

    def _as_planned(self) -> bool:
        """Whether each instance is what the plan was made for: the batch may have waited for hours."""
        now = self.power.look(list(self.works))
        good = True
        for instance_id, work in self.works.items():
            before, after = power_facts(self.planned[instance_id]), power_facts(now.get(instance_id, {}))
            if not work.start and judge(after, self.power.target.now()) in LEFT_STATES:
                self.outcome.found_stopped(instance_id, str(after.state))
                good = False
                continue
            if after.state is None:
                reason = "could not be read again"
            elif after.state != before.state and not (work.start and after.state == "stopped"):
                reason = f"is {after.state} now"
            elif (after.tag, after.launched) != (before.tag, before.launched):
                reason = f"was started or has another tag {TAG} now"
            else:
                continue
            self.outcome.fail([instance_id], f"it was {before.state} and {reason}: nothing was done to it; run again")
            good = False
        return good

    def _permitted(self, stops: List[str]) -> bool:
        """Whether AWS would do all that follows a stop, and the stop itself."""
        calls: List[Dict[str, Any]] = [{"operation": "start_instances", "InstanceIds": stops}]
        for instance_id in stops:
            for request in self.works[instance_id].requests:
                calls.append({"operation": "modify_instance_attribute", "InstanceId": instance_id, **request})
        calls.append({"operation": "delete_tags", "Resources": stops, "Tags": [{"Key": TAG}]})
        calls.append({"operation": "stop_instances", "InstanceIds": stops})
        for call in calls:
            reason = self.power.forbidden(self.brief, **call)
            if reason:
                self.outcome.fail(stops, f"{reason}; nothing was stopped")
                return False
        return True

    def _stop(self, stops: List[str]) -> bool:
        """Whether the changes may be made: to those that are not in `failed`."""
        if stops:
            self.unsure.update(stops)
            _answer, error = self.power.call("stop_instances", InstanceIds=stops)
            if error is not None:
                self.outcome.fail(stops, self.power.explain("stop_instances", error))
                return False
        late = [instance_id for instance_id, work in self.works.items() if work.requests]
        for _attempt in attempts(self.timeout):
            answers = self.power.look(late)
            self.tags.restore(answers)
            late = [instance_id for instance_id in late if state_of(answers.get(instance_id)) != "stopped"]
            self._note_stopped(self.unsure.difference(late))
            if not late:
                break
        self.outcome.fail(late, f"it did not stop within stop_timeout: {self.timeout} s")
        return True

    def _note_stopped(self, ids: Iterable[str]) -> None:
        """Note that AWS showed these instances stopped."""
        self.halted.update(ids)
        self.unsure.difference_update(self.halted)

    def _modify(self, instance_id: str, requests: Sequence[Mapping[str, Any]]) -> None:
        for request in requests:
            if instance_id in self.outcome.failed:
                break
            self.modified.add(instance_id)
            error = self._modify_stopped(instance_id, request)
            if error is not None:
                self.outcome.fail([instance_id], self.power.explain("modify_instance_attribute", error))

    def _modify_stopped(self, instance_id: str, request: Mapping[str, Any]) -> Optional[BaseException]:
        """Not every server of AWS knows at once that the instance has stopped."""
        error = None
        for _attempt in attempts(self.brief):
            _answer, error = self.power.repeat(
                self.timeout, "modify_instance_attribute", InstanceId=instance_id, **request
            )
            if error is None or error_code(error) not in STATE_CODES:
                break
            if state_of(self.power.look([instance_id]).get(instance_id)) != "stopped":
                break
        return error

    def _start_again(self, ids: List[str]) -> None:
        """Start what ran before, whatever happened in between and whatever AWS answers, until it runs."""
        if not ids:
            return
        taken: Set[str] = set()
        errors: Dict[str, str] = {}
        answers: Dict[str, Raw] = {}
        states: Dict[str, str] = {}
        watched = time.monotonic() + min(self.timeout, _WATCH_SECONDS)
        for _attempt in attempts(self.timeout):
            answers = self.power.look(ids)
            self._note_stopped(instance_id for instance_id, answer in answers.items() if state_of(answer) == "stopped")
            states = {instance_id: self._state(instance_id, answer) for instance_id, answer in answers.items()}
            for instance_id in [instance_id for instance_id in ids if states.get(instance_id, "stopped") == "stopped"]:
                _answer, error = self.power.call("start_instances", InstanceIds=[instance_id])
                if error is None:
                    taken.add(instance_id)
                else:
                    errors[instance_id] = self.power.explain("start_instances", error)
            settled = all(states.get(instance_id) in ("running", *_ENDED) for instance_id in ids)
            if settled and (not self.unsure or time.monotonic() >= watched):
                break
        for _attempt in attempts(self.brief):
            if all(states.get(instance_id) in ("running", *_ENDED) for instance_id in taken):
                break
            answers = self.power.look(ids)
            states = {instance_id: self._state(instance_id, answer) for instance_id, answer in answers.items()}
        for instance_id in ids:
            state = states.get(instance_id) or "in an unknown state"
            if state in _ENDED:
                self.outcome.fail([instance_id], f"it ran before and is {state} now: nothing can start it")
            elif state != "running":
                self.outcome.left_stopped.append(instance_id)
                facts = power_facts(answers.get(instance_id, {}))
                gave_up = instance_id in taken and facts.reason not in (OUR_STOP, None)
                cause = f"AWS could not start it: {facts.reason}" if gave_up else errors.get(instance_id)
                after = f"after stop_timeout: {self.timeout} s{f': {cause}' if cause else ''}"
                self.outcome.fail([instance_id], f"it ran before and is {state} {after}")
            elif instance_id in self.unsure:
                self.outcome.fail([instance_id], "it is still running; if it stops later, the next run starts it")

    def _look_again(self) -> Dict[str, Raw]:
        """The instances as soon as AWS shows what was done: an answer can be older than the one before it."""
        answers: Dict[str, Raw] = {}
        late = list(self.works)
        for _attempt in attempts(self.brief):
            answers.update(self.power.look(late))
            late = [instance_id for instance_id in late if not self._shown(instance_id, answers.get(instance_id))]
            if not late:
                break
        return answers

    def _shown(self, instance_id: str, answer: Optional[Raw]) -> bool:
        if answer is None:
            return False
        if instance_id in self.outcome.left_stopped:
            return True
        starts = self.works[instance_id].start or self._planned_state(instance_id) == "running"
        if starts and self._state(instance_id, answer) != "running":
            return state_of(answer) in _ENDED
        return instance_id in self.outcome.failed or not self._missing(instance_id, answer)

    def _missing(self, instance_id: str, answer: Raw) -> List[str]:
        """The attributes that AWS does not show as they were to be set."""
        actual = {"EnaSupport": answer.get("EnaSupport") is True, "SriovNetSupport": answer.get("SriovNetSupport")}
        return [name for request in self.works[instance_id].requests for name in request if not actual[name]]

    def _forget(self, answers: Mapping[str, Raw]) -> None:
        """Remove the tags of those that run again, and those of earlier runs that mean nothing any more."""
        self.tags.restore(
            {instance_id: answers[instance_id] for instance_id in self.outcome.left_stopped if instance_id in answers}
        )
        over = [
            instance_id
            for instance_id, work in self.works.items()
            if self.tags.values.get(instance_id) == work.tag and not work.start
        ]
        runs = [
            instance_id
            for instance_id in self.tags.values
            if self._state(instance_id, answers.get(instance_id)) == "running" and instance_id not in self.unsure
        ]
        self.tags.remove(
            [instance_id for instance_id in self.tags.values if instance_id in over or instance_id in runs]
        )

    def _settle(self, answers: Mapping[str, Raw]) -> None:
        """What is done is what AWS shows now."""
        for instance_id, work in self.works.items():
            answer = answers.get(instance_id)
            if answer is None:
                self.outcome.fail([instance_id], "it was changed and could not be read again: run again to check")
                continue
            missing = self._missing(instance_id, answer)
            if missing and instance_id in self.modified and instance_id not in self.outcome.failed:
                reason = f"AWS took the change of {', '.join(missing)} and still shows the old value"
                self.outcome.fail([instance_id], reason)
            waits = (
                instance_id in self.outcome.left_stopped
                if work.start
                else work.tag is not None and instance_id in self.tags.values
            )
            if not missing and not waits:
                self.outcome.done.append(instance_id)
