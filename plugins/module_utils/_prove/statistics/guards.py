# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a measurement counts: judged by the host's counters, never by what was measured.

Pure. PRIVATE to the collection. A pair in which a guard fires is repeated with a new coin; nothing is dropped.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

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
GENERATOR_SHARE = 0.5  # of its busiest CPU; beyond it the load generator may be what is measured

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
    "pause": "pauses within a pair that were longer than abandon_after",
    "same_boot": "measurements without a reboot before them",
    **_OF_A_HOST,
    **{CLIENT + guard: f"{words}, on the client host" for guard, words in _OF_A_HOST.items()},
}
PASSING = ("steal", "foreign_cpu", "swap", "timers")  # what comes from elsewhere, and may soon be over
ALLOWANCES = ("allowance", CLIENT + "allowance")  # guards that hide a gain, wherever the limit is

Around = Tuple[Optional[Sample], Optional[Sample]]  # the counters of a host before and after the load
Samples = Callable[[Measurement], Around]


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
    clock: Optional[Measurement] = None  # since which the host's clock and boot are taken to be the same
    client_clock: Optional[Measurement] = None  # the same of the client host
    jobs: Jobs = MappingProxyType({})
    client_jobs: Jobs = MappingProxyType({})

    def with_measurement(self, measurement: Measurement, firings: Sequence[Firing]) -> "Reference":
        """The reference after one more measurement. A clock that was set is compared with its new time."""
        guards = {firing.guard for firing in firings}
        return Reference(
            self.kinds or measurement.metrics,
            measurement,
            _clock_reference(self.clock, measurement, "clock" in guards, _around_host),
            _clock_reference(self.client_clock, measurement, CLIENT + "clock" in guards, _around_client),
            _seen(_seen(self.jobs, measurement.before, measurement.began), measurement.after, measurement.ended),
            _seen(
                _seen(self.client_jobs, measurement.client_before, measurement.began),
                measurement.client_after,
                measurement.ended,
            ),
        )


def _clock_reference(
    reference: Optional[Measurement], measurement: Measurement, was_set: bool, samples: Samples
) -> Optional[Measurement]:
    """The measurement since which the clock of a host is taken to be the same."""
    after = samples(measurement)[1]
    if after is None:
        return reference
    earlier = samples(reference)[1] if reference else None
    return measurement if earlier is None or earlier.boot_id != after.boot_id or was_set else reference


def _around_host(measurement: Measurement) -> Around:
    return measurement.before, measurement.after


def _around_client(measurement: Measurement) -> Around:
    return measurement.client_before, measurement.client_after


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
    if measurement.generator_busy is not None and measurement.generator_busy > GENERATOR_SHARE:
        firings.append(("generator", f"{measurement.generator_busy:.0%} busy"))
    previous = reference.previous
    if previous is not None and _pair_of(previous) != _pair_of(measurement):
        previous = None
    # Where another host times the load, the clock of the host under test has nothing to do with it.
    clock = None if settings.timed and measurement.generator_busy is not None else reference.clock
    for prefix, samples, since, jobs in (
        ("", _around_host, clock, reference.jobs),
        (CLIENT, _around_client, reference.client_clock, reference.client_jobs),
    ):
        of_host = find_disturbances(*samples(measurement))
        if previous and (prefix or not settings.reboot):
            of_host += _reboot_firings(samples(previous)[1], samples(measurement)[0])
        of_host += _clock_firings(since, measurement, settings, samples) if since else []
        of_host += _job_firings(jobs, measurement, samples)
        firings += [(prefix + guard, detail) for guard, detail in of_host]
    firings += _pause_firings(previous, measurement, settings) if previous else []
    firings += _same_boot_firings(reference.clock, measurement) if settings.reboot and reference.clock else []
    return tuple(Firing(guard, measurement.host_state, detail) for guard, detail in firings)


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


def _job_firings(jobs: Jobs, measurement: Measurement, samples: Samples) -> List[Tuple[str, str]]:
    """The jobs that were started during the load, except those that come back again and again."""
    before, after = samples(measurement)
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


def _clock_firings(
    first: Measurement, last: Measurement, settings: Settings, samples: Samples
) -> List[Tuple[str, str]]:
    """Whether the clock of a host moved against the controller's since the first measurement.

    However long the answers took: what a single one hides behind them shows in time.
    """
    bounds = []
    begun = samples(first)[1]
    for measurement in (first, last):
        before, after = samples(measurement)
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
    of_client = [sample for sample in (_around_client(measurement)[1] for measurement in measurements) if sample]
    of_host = [sample for sample in (_around_host(measurement)[1] for measurement in measurements) if sample]
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
