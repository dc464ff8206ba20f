# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of one run on one host: JSON lines that are only ever appended. Pure. PRIVATE to the collection.

The first line is a Start, then come Measurements, at last an End. Everything that is decided follows from them,
so that a run can be resumed, replayed and doubted.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Tuple, Union

from .metrics import Metric
from .order import UNTUNED
from .settings import Settings

FORMAT = 7  # of the lines, and of the rules by which one step follows from those before it
# Of 0.2.0: without stays, small wagers, `jobs` that a guard watches, and what only explains a verdict; a load generator
# may use half of its busiest CPU. No release wrote the formats between.
FORMAT_3 = 3
READABLE = (FORMAT_3, FORMAT)

# The phases of a run, in their order.
WARM_UP, SHAM, PAIR, SOAK, EACH = "warm_up", "sham", "pair", "soak", "each"
PHASES = (WARM_UP, SHAM, PAIR, SOAK, EACH)


class Place(NamedTuple):
    """A place in which the two states differ."""

    setting: str  # "network_stack.backlog"
    where: str  # which device or queue; empty where there is only one place
    untuned: Any  # its value in each state; plain JSON
    tuned: Any


class Start(NamedTuple):
    """What the run is about. Only `settings` and `host` influence what is decided."""

    settings: Settings
    host: str  # as the inventory names it; part of the coin
    began: float  # seconds since 1970, by the controller's clock
    load: str = ""  # the command
    load_on: str = ""  # where it runs: the host itself, the controller, or clients, divided by ", "
    version: str = ""  # of nearmetal
    tested: Tuple[str, ...] = ()  # the knobs that differ between the states: "network_stack.backlog"
    not_tested: Tuple[str, ...] = ()  # sentences: which knobs were left out, and why
    programs: Tuple[str, ...] = ()  # those that run already and serve the load
    only: Tuple[str, ...] = ()  # the knobs to which the comparison was limited
    states: str = ""  # a digest of the values between which the host is switched
    restart: str = ""  # the units or the command that start what serves the load anew with each switch
    health: str = ""  # the command that says after each switch whether the host does its work
    against: str = ""  # the tuning that stands in for the untuned state, in words; empty: the host untuned
    format: int = FORMAT  # of the record, and of its rules
    places: Tuple[Place, ...] = ()  # where the states differ, with both values
    tolerate: Tuple[str, ...] = ()  # programs that run here all the time, whatever they use
    machine: Mapping[str, str] = {}  # kernel, instance type, CPUs, image …; empty where the host doesn't say


class Sample(NamedTuple):
    """Counters of a host at one moment. None or {}: the host doesn't say, so that guard can't watch."""

    boot_id: str
    host_seconds: float  # seconds since 1970 by the host's own clock
    cpu_total: Optional[float] = None  # seconds of all CPUs since boot, idle ones too (/proc/stat)
    cpu_steal: Optional[float] = None  # of them, those that the hypervisor gave to others
    cpu_foreign: Optional[float] = None  # of them, used by processes that aren't part of the load
    throttled: Optional[int] = None  # nr_throttled of the cgroups of the load and its programs
    swapped: Optional[int] = None  # pages swapped in and out since boot
    allowances: Mapping[str, int] = {}  # ENA's and EBS's "exceeded" counters by name
    cpu_softirq: Optional[float] = None  # seconds of work that interrupts left for later
    context_switches: Optional[int] = None  # since boot
    interrupts: Mapping[str, int] = {}  # a device's interrupt → how often it came since boot
    jobs: Mapping[str, str] = {}  # what starts jobs by a timetable → a mark that changes when it did; empty: none runs


class Measurement(NamedTuple):
    """One run of the load in one state; written down when it has ended, whatever came of it."""

    phase: str  # one of PHASES
    pair: int  # from 1; in WARM_UP the number of the measurement, in SOAK that of the pair of stays
    attempt: int  # from 1; a pair that is repeated has the next one; in SOAK the number of the load in its stay
    state: str  # untuned | tuned; in SHAM the label of the sham switch
    began: float  # seconds since 1970 by the controller's clock, before the switch
    ended: float  # the same when the answer with `after` was there
    metrics: Tuple[Metric, ...] = ()  # empty when the load failed
    error: str = ""  # why the load failed or its output can't be read: one sentence
    state_lost: str = ""  # which knob wasn't in force after the load, and what it was: one sentence
    generator_busy: Tuple[float, ...] = ()  # 0 to 1: of the busiest CPU where the load runs, if not on the host itself
    switch_seconds: float = 0.0  # what the switch cost, without settling
    before: Optional[Sample] = None  # right before the load
    after: Optional[Sample] = None  # right after it
    concern: str = ""  # in EACH, where `untuned` is tuned but for this concern
    unhealthy: bool = False  # the host was, after the switch, so that no load ran; `error` says what failed
    client_before: Tuple[Sample, ...] = ()  # of each client on which the load ran
    client_after: Tuple[Sample, ...] = ()
    load_version: str = ""  # of the programs that ran, as far as it is known
    sham_state: str = UNTUNED  # in SHAM the state under both labels
    program_ended: bool = False  # one that serves the load, at the switch, so that no load ran; `error` names it

    @property
    def host_state(self) -> str:
        """The state in which the host was: in SHAM it is the same under either label."""
        return self.state if self.phase in (PAIR, SOAK, EACH) else self.sham_state


class End(NamedTuple):
    """What was done after the verdict. A record with an End isn't resumed."""

    outcome: str  # kept | restored
    verdict: str
    at: float  # seconds since 1970


Entry = Union[Start, Measurement, End]


class Record(NamedTuple):
    """All entries of one run, in their order."""

    start: Start
    measurements: Tuple[Measurement, ...] = ()
    end: Optional[End] = None


def with_entry(record: Record, entry: Entry) -> Record:
    """The record after one more entry."""
    if isinstance(entry, Measurement):
        return record._replace(measurements=(*record.measurements, entry))
    if isinstance(entry, End):
        return record._replace(end=entry)
    return Record(entry)
