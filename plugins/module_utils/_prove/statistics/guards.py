# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a measurement counts: judged by the host's counters, never by what was measured.

Pure. PRIVATE to the collection. A pair in which a guard fires is repeated with a new coin; nothing is dropped.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .metrics import Metric, other_kinds
from .record import SOAK, WARM_UP, Measurement, Sample
from .settings import Settings

STEAL_SHARE = 0.01  # of all CPUs' time
FOREIGN_SHARE = 0.05  # of all CPUs' time
SWAPPED_PAGES = 10.0  # a second: 40 KiB, which a host that is at rest reads back of what it once wrote out
CLOCK_SHARE = 0.005
CLOCK_SLACK = 0.25  # seconds: how much longer one answer may take than another
LONGEST_PAUSE = 900.0  # seconds, where abandon_after sets none
OFTEN = 20  # loads; a job that comes back sooner would void more than a tenth of the pairs, and belongs to the host
SATURATED_SHARE = 0.9  # of its busiest CPU; beyond it the load generator is what is measured
GENERATOR_SHARE = 0.5  # the same in records of before, whose loads from elsewhere had to leave half of each CPU idle

# What each guard says of a host, after "because of".
_OF_A_HOST: Mapping[str, str] = {
    "reboot": "reboots of the host",
    "steal": "CPU time that the hypervisor gave to others (steal above 1 %; on a T type, the CPU credits are gone)",
    "throttled": "CPU time that a cgroup's limit held back (nr_throttled)",
    "foreign_cpu": "other processes that used more than 5 % of the CPUs",
    "swap": "swapping (more than 10 pages a second)",
    "clock": "a clock that differed from the controller's by more than 0.5 %",
    "allowance": "exceeded network or disk allowances of the instance",
    "timers": "jobs that cron or a timer of systemd started meanwhile",
}
CLIENT = "client_"
GUARDS: Mapping[str, str] = {
    "load": "loads that failed",
    "health": "a host that wasn't healthy after a switch",
    "program": "programs that serve the load and ended at a switch",
    "state": "knobs that another program set back",
    "generator": "a load generator with a CPU that was busy for more than half of the time",
    "saturated": "a load generator at its limit (a CPU busy for more than 90 % by the load itself): add a client to"
    " prove_on, or offer a fixed rate",
    "pause": "pauses within a pair that were longer than abandon_after",
    "same_boot": "measurements without a reboot before them",
    **_OF_A_HOST,
    **{CLIENT + guard: f"{words}, on the client host" for guard, words in _OF_A_HOST.items()},
}
PASSING = ("steal", "foreign_cpu", "swap", "timers")  # what comes from elsewhere, and may soon be over
# Guards of limits that hide a gain, wherever the limit is, and what is said of them.
LIMITS: Mapping[str, str] = {
    **dict.fromkeys(("allowance", CLIENT + "allowance"), "an instance's network or disk allowance was exceeded"),
    "saturated": "the load generator was at its limit",
}

Around = Tuple[Optional[Sample], Optional[Sample]]  # the counters of a host before and after the load


class Firing(NamedTuple):
    """A guard that fired."""

    guard: str  # a key of GUARDS
    state: str  # the state in which it did; empty where it belongs to both
    detail: str  # what was seen


class Job(NamedTuple):
    """What is known of a job, or of what starts jobs."""

    mark: str  # the last one that wasn't empty
    at: Optional[float]  # when the mark was seen to change, by the controller's clock; None: never yet


Jobs = Mapping[str, Job]


class Reference(NamedTuple):
    """What a measurement is compared with."""

    kinds: Tuple[Metric, ...] = ()  # the metrics of the run's first measurement
    previous: Optional[Measurement] = None
    # Of the host under test, and of each client:
    clocks: Tuple[Optional[Measurement], ...] = ()  # since which its clock and boot are taken to be the same
    jobs: Tuple[Jobs, ...] = ()
    clients: Tuple[str, ...] = ()  # their names
    generator_share: float = SATURATED_SHARE

    def with_measurement(self, measurement: Measurement, firings: Sequence[Firing]) -> "Reference":
        """The reference after one more measurement. A clock that was set is compared with its new time."""
        guards = {firing.guard for firing in firings}
        clocks, jobs = [], []
        for number in range(max(len(self.clocks), 1 + len(measurement.client_after))):
            before, after = _around(measurement, number)
            was_set = (CLIENT if number else "") + "clock" in guards
            clocks.append(_clock_reference(self.clock_of(number), measurement, was_set, number))
            known = _seen(self.jobs_of(number), before, measurement.began)
            jobs.append(_seen(known, after, measurement.ended))
        return self._replace(
            kinds=self.kinds or measurement.metrics, previous=measurement, clocks=tuple(clocks), jobs=tuple(jobs)
        )

    def clock_of(self, number: int) -> Optional[Measurement]:
        """The measurement since which the clock of the host under test (0), or of a client, is the same."""
        return self.clocks[number] if number < len(self.clocks) else None

    def jobs_of(self, number: int) -> Jobs:
        """What is known of the jobs of such a host."""
        return self.jobs[number] if number < len(self.jobs) else MappingProxyType({})


def _clock_reference(
    reference: Optional[Measurement], measurement: Measurement, was_set: bool, number: int
) -> Optional[Measurement]:
    """The measurement since which the clock of a host is taken to be the same."""
    after = _around(measurement, number)[1]
    if after is None:
        return reference
    earlier = _around(reference, number)[1] if reference else None
    return measurement if earlier is None or earlier.boot_id != after.boot_id or was_set else reference


def _around(measurement: Measurement, number: int) -> Around:
    """The counters of the host under test (0), or of a client."""
    if not number:
        return measurement.before, measurement.after
    before, after = measurement.client_before[number - 1 : number], measurement.client_after[number - 1 : number]
    return (before[0] if before else None), (after[0] if after else None)


def firings_of(measurement: Measurement, reference: Reference, settings: Settings) -> Tuple[Firing, ...]:
    """All guards that fired in a measurement."""
    firings: List[Tuple[str, str]] = []
    if measurement.error:
        named = "program" if measurement.program_ended else "load"
        firings.append(("health" if measurement.unhealthy else named, measurement.error))
    elif reference.kinds and other_kinds(reference.kinds, measurement.metrics):
        difference = other_kinds(reference.kinds, measurement.metrics)
        firings.append(("load", f"the command printed other metrics than before: {difference}"))
    if measurement.state_lost:
        firings.append(("state", measurement.state_lost))
    previous = reference.previous
    if previous is not None and _pair_of(previous) != _pair_of(measurement):
        previous = None
    # Where another host times the load, the clock of the host under test has nothing to do with it.
    not_timed_here = settings.timed and bool(measurement.generator_busy)
    for number in range(1 + max(len(measurement.client_after), len(measurement.generator_busy))):
        since = None if not_timed_here and not number else reference.clock_of(number)
        before, after = _around(measurement, number)
        of_host = find_disturbances(before, after)
        if previous and (number or not settings.reboot):
            of_host += _reboot_firings(_around(previous, number)[1], before)
        of_host += _clock_firings(since, measurement, settings, number) if since else []
        of_host += _job_firings(reference.jobs_of(number), measurement, (before, after))
        name = f"{reference.clients[number - 1]}: " if number and len(reference.clients) >= max(2, number) else ""
        if number and "foreign_cpu" not in [guard for guard, _detail in of_host]:
            firings += [(guard, name + detail) for guard, detail in _generator_firings(measurement, reference, number)]
        firings += [((CLIENT if number else "") + guard, name + detail) for guard, detail in of_host]
    firings += _pause_firings(previous, measurement, settings) if previous else []
    began = reference.clock_of(0)
    firings += _same_boot_firings(began, measurement) if settings.reboot and began else []
    return tuple(Firing(guard, measurement.host_state, detail) for guard, detail in firings)


def _generator_firings(measurement: Measurement, reference: Reference, number: int) -> List[Tuple[str, str]]:
    """Whether the load, and nobody else, kept a CPU busy where it ran: then it may be what is measured."""
    busy = measurement.generator_busy[number - 1 : number]
    if not busy or busy[0] <= reference.generator_share:
        return []
    return [("saturated" if reference.generator_share == SATURATED_SHARE else "generator", f"{busy[0]:.0%} busy")]


def find_disturbances(before: Optional[Sample], after: Optional[Sample]) -> List[Tuple[str, str]]:
    """What the counters of a host say about the time between them, such as that of the load."""
    if before is None or after is None:
        return []
    if before.boot_id != after.boot_id:
        return [("reboot", "the host has another boot id after the load")]
    firings = []
    for guard, first, last, limit in (
        ("steal", before.cpu_steal, after.cpu_steal, STEAL_SHARE),
        ("foreign_cpu", before.cpu_foreign, after.cpu_foreign, FOREIGN_SHARE),
    ):
        share = _share(first, last, before.cpu_total, after.cpu_total)
        if share is not None and share > limit:
            firings.append((guard, f"{share:.1%} of the CPUs' time"))
    seconds = max(0.0, after.host_seconds - before.host_seconds)
    for guard, first_count, last_count, most in (
        ("throttled", before.throttled, after.throttled, 0.0),
        ("swap", before.swapped, after.swapped, SWAPPED_PAGES * seconds),
    ):
        if first_count is not None and last_count is not None and last_count - first_count > most:
            firings.append((guard, f"{last_count - first_count} more"))
    exceeded = [name for name, count in after.allowances.items() if count > before.allowances.get(name, count)]
    if exceeded:
        firings.append(("allowance", ", ".join(sorted(exceeded))))
    return firings


def _seen(jobs: Jobs, sample: Optional[Sample], at: float) -> Jobs:
    """What is known of the jobs after one more sample."""
    seen = dict(jobs)
    for name, mark in sample.jobs.items() if sample else ():
        known = seen.get(name)
        if known is None or (mark and mark != known.mark):
            seen[name] = Job(mark, at if known else None)
    return seen


def _job_firings(jobs: Jobs, measurement: Measurement, around: Around) -> List[Tuple[str, str]]:
    """The jobs that were started during the load, except those that come back again and again."""
    before, after = around
    if before is None or after is None:
        return []
    seconds = after.host_seconds - before.host_seconds
    known = _seen(jobs, before, measurement.began)
    started = []
    for name, mark in after.jobs.items():
        if not mark or name not in before.jobs or mark == before.jobs[name]:
            continue
        last = known[name].at
        if last is None or measurement.ended - last >= OFTEN * seconds:
            started.append(name)
    return [("timers", ", ".join(sorted(started)))] if started else []


def _share(
    first: Optional[float], last: Optional[float], total_first: Optional[float], total_last: Optional[float]
) -> Optional[float]:
    if first is None or last is None or total_first is None or total_last is None or total_last <= total_first:
        return None
    return (last - first) / (total_last - total_first)


def _pause_firings(first: Measurement, second: Measurement, settings: Settings) -> List[Tuple[str, str]]:
    pause = second.began - first.ended
    if 0 <= pause <= (settings.abandon_after or LONGEST_PAUSE):
        return []
    return [("pause", f"{pause:.0f} s between its measurements")]


def _reboot_firings(after: Optional[Sample], before: Optional[Sample]) -> List[Tuple[str, str]]:
    """Whether a host was rebooted between the two measurements of a pair."""
    if after is None or before is None or after.boot_id == before.boot_id:
        return []
    return [("reboot", "the host has another boot id than before")]


def _same_boot_firings(last: Measurement, measurement: Measurement) -> List[Tuple[str, str]]:
    """Whether a measurement that needs a boot of its own isn't known to have one; `last` has the last known boot."""
    if measurement.phase in (WARM_UP, SOAK) or _reboot_firings(last.after, measurement.before):
        return []
    return [("same_boot", "nothing shows that the host was rebooted: a boot id is missing, or is the same as before")]


def _clock_firings(first: Measurement, last: Measurement, settings: Settings, number: int) -> List[Tuple[str, str]]:
    """Whether the clock of a host moved against the controller's since the first measurement.

    However long the answers took: what a single one hides behind them shows in time.
    """
    bounds = []
    begun = _around(first, number)[1]
    for measurement in (first, last):
        before, after = _around(measurement, number)
        if before is None or after is None or (begun and begun.boot_id != after.boot_id):
            return []
        # Asked after `began` and answered before `ended`: so much is the host's clock ahead, at least and at most.
        earliest = measurement.began + measurement.switch_seconds + settings.settle
        bounds.append((after.host_seconds - measurement.ended, before.host_seconds - earliest))
    (low, high), (low_now, high_now) = bounds
    apart, seconds = max(low_now - high, low - high_now), abs(last.ended - first.ended)
    return (
        [("clock", f"{apart:.1f} s apart after {seconds:.0f} s")] if apart > CLOCK_SHARE * seconds + CLOCK_SLACK else []
    )


def _pair_of(measurement: Measurement) -> Tuple[str, int, int, str]:
    return (measurement.phase, measurement.pair, measurement.attempt, measurement.concern)


def unwatched_guards(measurements: Sequence[Measurement]) -> Tuple[str, ...]:
    """The guards for which no measurement had what they need, so that they couldn't fire."""
    of_client = [sample for measurement in measurements for sample in measurement.client_after]
    of_host = [measurement.after for measurement in measurements if measurement.after]
    unwatched = _unwatched(of_host)
    return (*unwatched, *(CLIENT + guard for guard in (_unwatched(of_client) if of_client else ())))


def _unwatched(samples: Sequence[Sample]) -> Tuple[str, ...]:
    needs: Mapping[str, Sequence[object]] = {
        "steal": [sample.cpu_steal for sample in samples],
        "throttled": [sample.throttled for sample in samples],
        "foreign_cpu": [sample.cpu_foreign for sample in samples],
        "swap": [sample.swapped for sample in samples],
        "allowance": [sample.allowances or None for sample in samples],
        "timers": [sample.jobs or None for sample in samples],
    }
    return tuple(guard for guard, values in needs.items() if all(value is None for value in values))
