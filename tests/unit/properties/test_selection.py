# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On every host, for every setting of every workload: `only` does it alone, `exclude` and a waiver do all the others.

So it is where the workload's values are given to single devices, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Set, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import plan_run
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.unit import NAME as UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import values

from tests.support import hosts
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh, nics_of

Changes = Dict[Tuple[str, str], Any]  # knob and place → the value it gets
# The list option of a concern, and how an entry names a device.
LISTS = {"block_storage": "disks", "network_irq": "interfaces", "network_stack": "interfaces"}
FILES = ("persist", "wanted")  # of all values of a concern
# What comes with a knob, and knobs that are planned for the queues and CPUs which another leaves them.
COMES_WITH = {"method": ("threads", "idle", "thp", "pages", "io_timeout")}
COMES_WITH.update(dict.fromkeys(("irqbalance", "compute_cpus"), ("policy",)))
STEERING = ("rps", "rfs", "xps")
FOLLOWS = {"policy": ("queues",), **dict.fromkeys(STEERING, ("queues", "policy"))}
_SETTING = re.compile(r"ATTR\{queue/(?!scheduler\}==)|^[a-z/][\w./*-]* = |^w! ")


class Planned(NamedTuple):
    """The changes of a run by knob and place, and the settings in the files that it writes for the next boot."""

    changes: Changes
    settings: Set[str]

    def of(self, knob: str) -> Changes:
        return {key: value for key, value in self.changes.items() if knob in (key[0], *COMES_WITH.get(key[0], ()))}

    def beside(self, knob: str) -> Changes:
        """The changes that neither are of the knob nor follow it."""
        own = self.of(knob)
        return {key: value for key, value in self.changes.items() if key not in own and knob not in _leaders(key[0])}


def _leaders(knob: str) -> Tuple[str, ...]:
    return FOLLOWS.get(knob, ())


def planned(host: FakeKernel, concern: str, options: Mapping[str, Any], **asked: Any) -> Planned:
    given = {"workload_concerns": {concern: options}, **asked}
    run = plan_run(host, lambda known: tune_requests([], {}, {"allow_not_ec2": True}, known, **given))
    actions = [action for outcome in run.outcomes for action in outcome.plan.actions if outcome.name != UNIT]
    files = [str(action.after) for action in actions if action.knob in FILES and action.what == "files"]
    return Planned(
        {(action.knob, action.where): action.after for action in actions if action.knob not in FILES},
        {line for text in files for line in text.splitlines() if _SETTING.search(line)},
    )


def for_devices(host: FakeKernel, concern: str, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The same values, each given to every NIC or disk by an entry of its own."""
    knobs = [knob for knob in CONCERNS[concern].knobs if knob.within]
    within = {(knob.option or knob.name).partition(".")[0] for knob in knobs}
    entry = {option: value for option, value in options.items() if option in within}
    names = sorted(path.name for path in Path(host.root).glob("sys/block/*"))
    selectors = [{"device": name} for name in names if name.startswith(("nvme", "xvd", "vd"))]
    if LISTS[concern] == "interfaces":
        selectors = [{"name": name} for name in nics_of(host.hardware)]
    rest = {option: value for option, value in options.items() if option not in (*within, LISTS[concern])}
    return {**rest, LISTS[concern]: [{**selector, **entry} for selector in selectors]} if entry else {}


def wishes(host: FakeKernel) -> Iterable[Tuple[str, Mapping[str, Any]]]:
    """Concern and options, each once, of every workload."""
    seen: List[Tuple[str, Mapping[str, Any]]] = []
    for workload in WORKLOADS:
        for concern, options in values(WORKLOADS[workload]).items():
            variants = [options, for_devices(host, concern, options)] if concern in LISTS else [options]
            seen += [(concern, given) for given in variants if given and (concern, given) not in seen]
    return seen


def everything_of(options: Mapping[str, Any]) -> Set[str]:
    """The options, and those of the entries."""
    entries = [entry for name in LISTS.values() for entry in options.get(name, ())]
    return {*options, *(option for entry in entries for option in entry)}


@pytest.mark.parametrize("name", hosts.names())
def test_a_selection_is_of_settings_wherever_they_are_given(name: str, tmp_path: Path) -> None:
    host = fresh(tmp_path, name)
    for concern, options in wishes(host):
        everything = planned(host, concern, options)
        for knob in sorted({knob for knob, _where in everything.changes} - {*COMES_WITH}):
            about = f"{concern}.{knob} of {options}"
            alone = planned(host, concern, options, only=[f"{concern}.{knob}"])
            rest = planned(host, concern, options, exclude=[f"{concern}.{knob}"])
            waiver = {"knob": f"{concern}.{knob}", "reason": "measured", "expires": "2999-12-31"}
            waived = planned(host, concern, options, waivers=[waiver])
            assert alone.changes == alone.of(knob), about
            assert rest.of(knob) == {}, about
            if not set(_leaders(knob)).intersection(everything_of(options)):
                assert alone.changes == everything.of(knob), about
            assert rest.beside(knob) == everything.beside(knob), about
            assert waived == rest, about
            assert alone.settings | rest.settings == everything.settings, about
            assert not alone.settings & rest.settings, about
