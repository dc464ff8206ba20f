# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No workload harms a host, on every type of the offline table, fresh and tuned by hand before.

The rules are written after docs/workloads.md and docs/host_classes.md and read a plan's actions alone.
"""

from __future__ import annotations

import itertools
import random
from typing import Dict, Iterator, List, Sequence, Set, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS

from tests.support import type_hosts, workload_table
from tests.support.kernel.cpus import numbers
from tests.support.sequences.tenth import tenth
from tests.support.type_hosts import Shape

SHAPES = type_hosts.shapes()
PLANNED = tenth(list(enumerate(SHAPES.items())))
PAIRS = tuple(itertools.permutations(sorted(WORKLOADS), 2))
AT_LEAST = (
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.rps_sock_flow_entries",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "vm.min_free_kbytes",
    "vm.max_map_count",
    "fs.aio-max-nr",
)


def test_every_type_has_a_shape() -> None:
    assert sum(map(len, SHAPES.values())) >= 1401
    assert {shape.cpus for shape in SHAPES} >= {1, 2, 4, 8, 96, 192, 448, 896}


@pytest.mark.parametrize("tuned", [False, True], ids=["fresh", "tuned by hand"])
@pytest.mark.parametrize(("kind", "cpus"), sorted({(shape.kind, shape.cpus) for _number, (shape, _types) in PLANNED}))
def test_no_workload_does_harm(kind: str, cpus: int, tuned: bool) -> None:
    broken: Dict[str, Set[str]] = {}
    for number, (shape, types) in PLANNED:
        if (shape.kind, shape.cpus) != (kind, cpus):
            continue
        host = type_hosts.host(shape, types[0], random.Random(number) if tuned else None)
        facts = workload_table.look(host)
        for workloads in [*((name,) for name in WORKLOADS), *combinations(number, tuned)]:
            actions, findings = workload_table.planned(facts, *workloads)
            for rule in harm(shape, facts, actions, findings):
                broken.setdefault(f"{', '.join(workloads)}: {rule}", set()).add(types[0])
    assert broken == {}, "rule → one type of each shape that breaks it"


def combinations(number: int, tuned: bool) -> Iterator[Tuple[str, ...]]:
    """Lists of workloads for one shape: all ordered pairs over the shapes, and some of three, each shape others."""
    pair = number if tuned else -1 - number
    yield PAIRS[pair % len(PAIRS)]
    yield tuple(random.Random(pair).sample(sorted(WORKLOADS), 3))


def test_each_ordered_pair_of_workloads_is_planned() -> None:
    drawn = {next(combinations(number, tuned)) for number in range(len(SHAPES)) for tuned in (False, True)}
    assert drawn == set(PAIRS)


def harm(shape: Shape, facts: Facts, actions: Sequence[Action], findings: Sequence[Finding]) -> Iterator[str]:
    """The rules that a plan breaks."""
    after = project(facts, actions)
    online = len(after.topology.cpus_online or ()) if after.topology is not None else 0
    if online < min(2, shape.cpus) or (shape.cores == 1 and online < shape.cpus):
        yield f"leaves {online} of {shape.cpus} CPUs on {shape.cores} cores"
    for action in actions:
        yield from _narrowed(action)
        if action.where in ("net.core.busy_poll", "net.core.busy_read") and action.after != "0":
            if shape.burstable:
                yield "polls on a burstable type"
            if online <= 2:
                yield "polls on a host of two CPUs"
        if action.what == "boot.arguments" and action.where == "idle":
            yield "polls instead of idling"
        if action.what == "power.idle_disabled":
            assert isinstance(action.after, dict)
            if all(disabled for state, disabled in action.after.items() if state != "state0"):
                yield "leaves CPUs nothing but to poll"
        if action.what in ("smt.control", "smt.offline") and shape.burstable:
            yield "takes CPUs from a burstable type"
        if action.what == "network.affinity" and shape.burstable:
            yield "moves interrupts of a burstable type"
        if action.what == "network.rps":
            yield from _helpers(after, action)
        if action.what in ("block.nomerges", "block.nr_requests") and action.where.startswith("0000:00:04.0"):
            yield f"{action.what} on an EBS volume"
    statuses: Dict[Tuple[str, ...], Set[str]] = {}
    for finding in findings:
        if finding.status != "advice":
            places = finding.now if isinstance(finding.now, dict) else ()
            statuses.setdefault((finding.concern, finding.knob, finding.where, *places), set()).add(finding.status)
        if "ENA Express" in finding.reason and (shape.driver != "ena" or shape.burstable):
            yield f"speaks of ENA Express without one: {finding.reason}"
    yield from (f"{key} is {statuses_of_key}" for key, statuses_of_key in statuses.items() if len(statuses_of_key) > 1)


def _narrowed(action: Action) -> Iterator[str]:
    before, after = str(action.before).split(), str(action.after).split()
    if action.where in AT_LEAST and any(int(new) < int(old) for old, new in zip(before, after)):
        yield f"lowers {action.where}"
    if action.where == "net.ipv4.tcp_keepalive_time" and int(after[0]) > int(before[0]):
        yield "raises the keep-alive time"
    if action.where == "net.ipv4.ip_local_port_range":
        (low, high), (new_low, new_high) = map(int, before), map(int, after)
        if new_low > low or new_high < high:
            yield "narrows the port range"
    if action.what in ("network.rings", "block.read_ahead_kb") and int(after[0]) < int(before[0]):
        yield f"lowers {action.what}"
    if action.what == "network.rfs":
        assert isinstance(action.before, dict)
        assert isinstance(action.after, dict)
        if any(int(action.after[queue]) < int(flows) for queue, flows in action.before.items()):
            yield "lowers the flows of a queue"


def _helpers(after: Facts, action: Action) -> Iterator[str]:
    """Helping CPUs are on the nodes of the CPUs that handle the queue, and handle no interrupt themselves."""
    assert after.network is not None
    assert after.topology is not None
    assert isinstance(action.after, dict)
    placed = after.network.affinity[action.where]
    effective = after.network.effective[action.where]
    node_of = {cpu: node.id for node in after.topology.nodes for cpu in node.cpus}
    answering: List[int] = []
    for queue in range(len(action.after)):
        found = [effective[label] for label in (str(queue), f"rx-{queue}") if label in effective]
        goal = [placed[label] for label in (str(queue), f"rx-{queue}") if label in placed]
        chosen = goal[0] if goal and goal[0].isdigit() else found[0]
        answering.append(int(chosen))
    for queue, cpu in enumerate(answering):
        helpers = numbers(action.after[f"rx-{queue}"]) if action.after[f"rx-{queue}"] else []
        if any(node_of.get(helper) != node_of.get(cpu) for helper in helpers):
            yield "packets leave the node of the CPU that answers their queue"
        if set(helpers) & set(answering):
            yield "a CPU that answers an interrupt helps too"
