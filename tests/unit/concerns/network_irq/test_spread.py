# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spreading queues on hosts that don't exist: 1 to 448 CPUs, 1 to 8 nodes, holes, up to 15 NICs of up to 128 queues."""

from __future__ import annotations

from collections import Counter
from typing import Dict, FrozenSet, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq import table
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq.spread import Demand, spread
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.interrupts import Vector
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.nic import Nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import Node, TopologyFacts
from hypothesis import given
from hypothesis import strategies as st

Found = Dict[str, Dict[int, int]]


def machine(cores: List[Tuple[int, ...]], node_of: Dict[int, int]) -> TopologyFacts:
    """Facts of a host with these cores; `node_of` is by CPU."""
    online = tuple(sorted(cpu for core in cores for cpu in core))
    ids = sorted(set(node_of.values()))
    nodes = tuple(
        Node(
            id=node,
            cpus=tuple(cpu for cpu in online if node_of[cpu] == node),
            cpulist="",
            memory=None,
            distances=tuple(10 if other == node else 20 + abs(other - node) for other in ids),
        )
        for node in ids
    )
    return TopologyFacts(online, (), online, online, (online,), tuple(cores), (), nodes, None)


@st.composite
def machines(draw: st.DrawFn) -> TopologyFacts:
    """Cores of 1, 2 or 4 threads, half-way numbered or adjacent, with single CPUs offline."""
    threads = draw(st.sampled_from((1, 2, 4)))
    count = draw(st.integers(1, 448 // threads))
    nodes = draw(st.integers(1, 8))
    adjacent = draw(st.booleans())
    offline = draw(st.frozensets(st.integers(0, count * threads - 1), max_size=8))
    cores, node_of = [], {}
    for core in range(count):
        numbers = [core * threads + thread if adjacent else core + thread * count for thread in range(threads)]
        alive = tuple(cpu for cpu in numbers if cpu not in offline)
        if alive:
            cores.append(alive)
            node_of.update(dict.fromkeys(alive, core * nodes // count))
    if not cores:
        cores, node_of = [(0,)], {0: 0}
    return machine(cores, node_of)


DEMANDS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 7)), st.integers(1, 128)), min_size=1, max_size=15
).map(lambda pairs: [Demand(f"nic{number}", node, queues, {}) for number, (node, queues) in enumerate(pairs)])


def allowed(cpus: TopologyFacts) -> FrozenSet[int]:
    return frozenset(cpus.cpus_online or ())


def rank(cpus: TopologyFacts, cpu: int) -> int:
    """0 for the first thread of a core."""
    return cpus.siblings(cpu).index(cpu)


@given(machines(), DEMANDS)
def test_every_queue_gets_an_online_cpu_and_no_cpu_gets_two_before_all_have_one(
    cpus: TopologyFacts, demands: List[Demand]
) -> None:
    found = spread(cpus, allowed(cpus), demands)
    for require in demands:
        assert sorted(found[require.place]) == list(range(require.queues))
    load = Counter(cpu for queues in found.values() for cpu in queues.values())
    assert set(load) <= allowed(cpus)
    assert max(load.values()) - min(load[cpu] for cpu in allowed(cpus)) <= 1


@given(machines(), DEMANDS)
def test_no_second_thread_is_used_while_a_core_is_free(cpus: TopologyFacts, demands: List[Demand]) -> None:
    found = spread(cpus, allowed(cpus), demands)
    load = Counter(cpu for queues in found.values() for cpu in queues.values())
    firsts = [cpu for cpu in allowed(cpus) if rank(cpus, cpu) == 0]
    if min(load[cpu] for cpu in firsts) == 0:
        assert all(rank(cpus, cpu) == 0 for cpu in load)


@given(machines(), st.integers(0, 7), st.integers(1, 128))
def test_cores_of_the_nic_s_node_come_first(cpus: TopologyFacts, node: int, queues: int) -> None:
    found = spread(cpus, allowed(cpus), [Demand("nic", node, queues, {})])["nic"]
    local = [cpu for numa_node in cpus.nodes if numa_node.id == node for cpu in numa_node.cpus if rank(cpus, cpu) == 0]
    used = set(found.values())
    if local and not used >= set(local):
        assert used <= set(local)


@given(machines(), DEMANDS)
def test_equal_facts_give_equal_plans_and_a_second_plan_changes_nothing(
    cpus: TopologyFacts, demands: List[Demand]
) -> None:
    found = spread(cpus, allowed(cpus), demands)
    assert spread(cpus, allowed(cpus), demands) == found
    assert spread(cpus, allowed(cpus), standing(demands, found)) == found


@given(machines(), DEMANDS, st.integers(1, 128))
def test_another_nic_moves_no_queue(cpus: TopologyFacts, demands: List[Demand], queues: int) -> None:
    found = spread(cpus, allowed(cpus), demands)
    more = spread(cpus, allowed(cpus), [*standing(demands, found), Demand("new", 0, queues, {})])
    assert {place: more[place] for place in found} == found


@given(machines(), st.integers(1, 128))
def test_another_cpu_moves_only_the_queues_that_it_takes(cpus: TopologyFacts, queues: int) -> None:
    number = max(cpus.cpus_online or ()) + 1
    before = spread(cpus, allowed(cpus), [Demand("nic", 0, queues, {})])["nic"]
    larger = machine([*(cpus.cores or ()), (number,)], {**nodes_of(cpus), number: 0})
    after = spread(larger, allowed(larger), [Demand("nic", 0, queues, before)])["nic"]
    moved_queues = [queue for queue in before if after[queue] != before[queue]]
    assert len(moved_queues) <= sum(cpu == number for cpu in after.values())


@given(machines(), DEMANDS)
def test_a_cpu_that_goes_offline_moves_only_its_own_queues(cpus: TopologyFacts, demands: List[Demand]) -> None:
    require = demands[0]
    before = spread(cpus, allowed(cpus), [require])
    rest = allowed(cpus) - {max(allowed(cpus))}
    if not rest:
        return
    after = spread(cpus, rest, standing([require], before))[require.place]
    stays = [queue for queue, cpu in before[require.place].items() if cpu in rest]
    assert all(after[queue] == before[require.place][queue] for queue in stays)


def standing(demands: List[Demand], found: Found) -> List[Demand]:
    """The demands once the plan is done."""
    return [Demand(require.place, require.node, require.queues, found[require.place]) for require in demands]


def nodes_of(cpus: TopologyFacts) -> Dict[int, int]:
    return {cpu: node.id for node in cpus.nodes for cpu in node.cpus}


# Nitro, 8 vCPUs of 4 cores, siblings half-way; what an operator would draw on paper.
EIGHT = machine([(0, 4), (1, 5), (2, 6), (3, 7)], dict.fromkeys(range(8), 0))
TWO_NODES = machine([(0, 4), (1, 5), (2, 6), (3, 7)], {0: 0, 4: 0, 1: 0, 5: 0, 2: 1, 6: 1, 3: 1, 7: 1})


@pytest.mark.parametrize(
    ("cpus", "demands", "expected"),
    [
        (EIGHT, [("a", None, 4)], {"a": [0, 1, 2, 3]}),
        (EIGHT, [("a", None, 8)], {"a": [0, 1, 2, 3, 4, 5, 6, 7]}),
        (EIGHT, [("a", None, 2), ("b", None, 2)], {"a": [0, 1], "b": [2, 3]}),
        (EIGHT, [("a", None, 10)], {"a": [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]}),
        (TWO_NODES, [("a", 1, 2), ("b", 1, 2)], {"a": [2, 3], "b": [0, 1]}),
        (TWO_NODES, [("a", 1, 6)], {"a": [2, 3, 0, 1, 6, 7]}),
        (TWO_NODES, [("a", 7, 2)], {"a": [0, 1]}),
    ],
)
def test_as_drawn_on_paper(
    cpus: TopologyFacts, demands: List[Tuple[str, int, int]], expected: Dict[str, List[int]]
) -> None:
    wanted = [Demand(place, node, queues, {}) for place, node, queues in demands]
    found = spread(cpus, allowed(cpus), wanted)
    assert {place: list(queues.values()) for place, queues in found.items()} == expected


@pytest.mark.parametrize(
    ("driver", "queues", "labels"),
    [
        ("virtio_net", 3, ["rx-0", "rx-1", "rx-2", "tx-0", "tx-1", "tx-2"]),
        ("igb", 2, ["rx-0", "rx-1", "tx-0", "tx-1"]),
        ("igb", 3, ["0", "1", "2", "rx-0", "rx-1", "rx-2", "tx-0", "tx-1", "tx-2"]),
    ],
)
def test_a_driver_that_names_its_interrupts_anew_gets_a_cpu_for_each_name(
    driver: str, queues: int, labels: List[str]
) -> None:
    vectors = tuple(Vector(number, kind, number % 2) for number, kind in enumerate(("rx", "rx", "tx", "tx")))
    nic = Nic("eth0", "0000:00:05.0", 2, True, driver, None, (0, 1), (0, 1), vectors, ())
    assert table(nic, {queue: queue + 4 for queue in range(queues)}) == {
        label: str(int(label[-1]) + 4) for label in labels
    }
