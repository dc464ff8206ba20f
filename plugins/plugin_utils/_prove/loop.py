# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run from its first measurement to its end: the record decides each next step. PRIVATE to the collection."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics import metrics
from ...module_utils._prove.statistics.guards import PASSING, Firing
from ...module_utils._prove.statistics.history import history_of
from ...module_utils._prove.statistics.order import UNTUNED
from ...module_utils._prove.statistics.record import SHAM, SOAK, WARM_UP, End, Measurement, Sample
from ...module_utils._prove.statistics.rules import UNSAFE
from ...module_utils._prove.statistics.settings import Settings
from ...module_utils._prove.statistics.step import DECIDE, Step, next_step
from ...module_utils._prove.statistics.verdict import Verdict, verdict
from ...module_utils._words import clipped, printable, sentence
from .log import Log

_LONGEST = 1000  # characters of an error in the record
_LONGEST_VERSION = 300  # and of the load's version
UNKNOWN_FORM = "the host's answer has a form that this version of nearmetal doesn't know"


class Answer(NamedTuple):
    """A host's answer to one measurement; untrusted."""

    load: Mapping[str, Any]
    before: Any
    after: Any
    taken_back: Tuple[str, ...] = ()
    switch_seconds: float = 0.0
    generator_busy: Tuple[float, ...] = ()
    unhealthy: str = ""  # what failed after the switch, so that no load ran
    ended: str = ""  # the same of programs that ended
    client_before: Sequence[Any] = ()
    client_after: Sequence[Any] = ()


class HostControl(ABC):
    """What a run does to a host. Each method raises NearmetalError when the host can't be reached or the step fails."""

    @abstractmethod
    def measure(self, state: str, without: str, stays: bool = False) -> Answer:
        """Bring the host to the state, let it settle, and run the load once.

        If `without` names a concern, the untuned state is the whole tuning without that concern. If the host `stays`
        in its state, it isn't brought there by way of the other, and needn't settle.
        """

    @abstractmethod
    def reboot_into(self, state: str) -> float:
        """Let the host boot into the state, and return after how many seconds it was back."""

    @abstractmethod
    def wait_for_quiet(self, disturbances: Sequence[Firing]) -> None:
        """Return when other programs disturb the host no longer, or when it has waited as long as it may."""

    @abstractmethod
    def profile(self) -> None:
        """Compare where the time goes in both states, if the run is to."""

    @abstractmethod
    def keep(self) -> bool:
        """End the experiment with the host tuned; False if only some settings were compared, so it was restored."""

    @abstractmethod
    def restore(self) -> None:
        """End the experiment with the host as it was before."""


def run_to_verdict(log: Log, control: HostControl, report: Callable[[Log, Measurement], None], limit: float) -> Verdict:
    """Measure until there is a verdict, then keep or restore, and record that; a load may take `limit` seconds."""
    stays = False  # the first step may be that of a run that was interrupted, whose host was taken back
    while True:
        step = next_step(log.record)
        if step.action == DECIDE:
            return _decide(log, control)
        last = history_of(log.record).judged[-1:]
        if last and any(firing.guard.endswith(PASSING) for firing in last[0][1]):
            control.wait_for_quiet(last[0][1])
        log.append(_measure(step, control, limit, log.record.start.settings, stays and step.stays))
        stays = True
        report(log, log.record.measurements[-1])


def _decide(log: Log, control: HostControl) -> Verdict:
    result = verdict(log.record)
    kept = False
    if result.pairs and result.verdict != UNSAFE:
        control.profile()
    if result.keep:
        kept = control.keep()
    else:
        control.restore()
    log.append(End("kept" if kept else "restored", result.verdict, time.time()))
    return result


def _measure(step: Step, control: HostControl, limit: float, settings: Settings, stays: bool) -> Measurement:
    began = time.time()
    seconds: Optional[float] = None
    if settings.reboot and step.phase != WARM_UP and not stays:
        seconds = control.reboot_into(step.switch_to)
    answer = control.measure(step.switch_to, step.concern, stays)
    # The first loads of a boot find cold caches. A stay that an interrupted run began is one of a fresh switch now.
    passed = step.attempt - 1 if step.phase == SOAK and not stays else 0
    for _uncounted in range(settings.burn_in if seconds is not None else min(settings.burn_in, passed)):
        if not answer.unhealthy and not answer.ended:
            answer = control.measure(step.switch_to, step.concern, stays=True)
    ended = time.time()
    metrics, error = _metrics(answer.load, limit, settings.timed)
    if answer.unhealthy or answer.ended:
        metrics, error = (), clipped(printable(answer.unhealthy or answer.ended), _LONGEST)
    return Measurement(
        phase=step.phase,
        pair=step.pair,
        attempt=step.attempt,
        state=step.state,
        began=began,
        ended=ended,
        metrics=metrics,
        error=error,
        state_lost=clipped(printable("; ".join(answer.taken_back)), _LONGEST),
        generator_busy=answer.generator_busy,
        switch_seconds=answer.switch_seconds if seconds is None else seconds,
        before=_sample(answer.before),
        after=_sample(answer.after),
        concern=step.concern,
        unhealthy=bool(answer.unhealthy),
        sham_state=step.switch_to if step.phase == SHAM else UNTUNED,
        program_ended=bool(answer.ended and not answer.unhealthy),
        client_before=_samples(answer.client_before),
        client_after=_samples(answer.client_after),
        load_version=clipped(printable(str(answer.load.get("version") or "")), _LONGEST_VERSION),
    )


def _metrics(load: Mapping[str, Any], limit: float, timed: bool) -> "Tuple[Tuple[metrics.Metric, ...], str]":
    """The metrics that the command printed, or its time if `timed`, and an empty text; or none, and why it failed."""
    code, end, message = load.get("code"), load.get("end"), str(load.get("message") or "").strip().splitlines()
    if end == "time":
        last_message = f"; its last message is {message[-1]}" if message else ""
        return (), sentence(
            f"the command was stopped after {limit:g} s: set prove_seconds to the time that one measurement"
            f" takes{last_message}"
        )
    if end or isinstance(code, bool) or not isinstance(code, int):
        return (), "the command was stopped because the experiment ended"
    if code:
        how = f"ended with code {code}" if code > 0 else f"was stopped by signal {-code}"
        return (), sentence(f"the command {how}: {message[-1] if message else 'no message'}")
    if timed:
        seconds = load.get("seconds")
        if not isinstance(seconds, float) or not metrics.SMALLEST <= seconds <= metrics.LARGEST:
            return (), "the time that the command took isn't known"
        return (metrics.Metric("time", seconds, "s", metrics.SMALLER),), ""
    output = str(load.get("output") or "")
    if not output.strip():
        last_message = f"; its last message is {message[-1]}" if message else ""
        return (), sentence(
            f"the command printed no figure: set prove_timed if the figure is the time that it takes{last_message}"
        )
    try:
        return metrics.metrics_of(output.encode("utf-8", "replace")), ""
    except NearmetalError as error:
        return (), sentence(str(error))


def _samples(raws: Sequence[Any]) -> Tuple[Sample, ...]:
    """The samples of all clients; none where one is missing."""
    samples = [_sample(raw) for raw in raws]
    return tuple(sample for sample in samples if sample) if None not in samples else ()


def _sample(raw: Any) -> Optional[Sample]:
    """The sample, unchecked: the record checks values before it writes them."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise NearmetalError(UNKNOWN_FORM)
    unknown: List[str] = [name for name in raw if name not in Sample._fields]
    if unknown or "boot_id" not in raw or "host_seconds" not in raw:
        raise NearmetalError(UNKNOWN_FORM)
    return Sample(**{str(name): value for name, value in raw.items()})
