# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random steps of a life of a host: the wanted values, the faults, and the changes of other programs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import NAMES
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS

from tests.support.files.processes import process

# Words and numbers for options whose spec lists none; a host refuses those that it can't have.
VALUES: Mapping[str, List[Any]] = {
    "source": ["auto", "kernel", "tsc", "hpet", "acpi_pm"],
    "max_exit_latency_us": [0, 2, 10, 100],
    "governor": ["performance", "powersave", "schedutil", "kernel"],
    "energy_performance_preference": ["performance", "balance_performance", "power"],
    "energy_perf_bias": [0, 6],
    "platform_profile": ["performance", "balanced"],
    "size": ["2M", "1G"],
    "count": [0, 1, 5, 64],
    "percent_of_memory": [1, 10],
    "path": ["/mnt/huge", "/srv/huge-pages"],
    "group": ["1001"],
    "zone_reclaim_mode": [0, 1],
    "unit": ["app.service", "database@1.service"],
    "nodes": ["0", "1", "spread"],
    "near_interface": ["ens5", "ens3"],
    "near_device": ["nvme1n1"],
    "rx_ring": ["max", "kernel", "512", "2048"],
    "tx_ring": ["max", "kernel", "256", "512"],
    "rx_usecs": [0, 20, 64],
    "tx_usecs": [0, 64, 128],
    "defer_hard_irqs": [0, 2, 100],
    "gro_flush_timeout": [0, 20000, 200000],
    "mtu": [1500, 9001],
    "length": [500, 1000, 5000],
    "somaxconn": [1024, 4096, 65535],
    "max_syn_backlog": [512, 8192],
    "netdev_max_backlog": [1000, 16384],
    "netdev_budget": [300, 600],
    "rmem_max": [212992, 16777216],
    "wmem_max": [212992, 16777216],
    "tcp_rmem": ["4096 87380 16777216"],
    "tcp_wmem": ["4096 65536 16777216"],
    "tcp_mem": ["94119 125494 188238", "200000 300000 400000"],
    "syn_retries": [3, 6],
    "conntrack_max": [262144, 1048576],
    "conntrack_buckets": [65536, 100000],
    "neighbor_gc_thresh1": [1024],
    "neighbor_gc_thresh2": [4096],
    "neighbor_gc_thresh3": [8192],
    "keepalive_time": [7200, 300],
    "port_range": ["1024 65535"],
    "busy_poll": [0, 50],
    "qdisc": ["fq", "pfifo_fast"],
    "congestion_control": ["cubic", "reno"],
    "swappiness": [1, 60],
    "vfs_cache_pressure": [50, 2000],
    "max_ptes_none": [0, 64],
    "thp_sizes": [
        [{"size": "64K", "thp": "always"}],
        [{"size": "16K", "thp": "inherit"}, {"size": "64K", "thp": "never"}],
    ],
    "reserved_ports": ["auto", "10250", "8080-8082,30000-32767"],
    "services": ["app.service", "database@1.service"],
    "review_after": ["2026-01-31", "2030-01-31"],
    "dirty": ["20%", "40 %", "268435456"],
    "dirty_background": ["5%", "67108864"],
    "aio_max_nr": [65536, 1048576],
    "max_map_count": [262144],
    "min_free_kbytes": [67584, 262144],
    "name": ["ens5", "ens6", "ens3", "eth0"],
    "lpc_size": ["4"],
    "queues": ["1", "2", "4", "max"],
    "rps": ["auto", "none", "0-1", "1", "kernel"],
    "rfs": ["auto", "0", "4096", "32768", "kernel"],
    "xps": ["auto", "kernel", "0-1"],
    "irq_cpus": ["0", "0-1", "2"],
    "compute_units": ["app.service"],
    "io_timeout": ["max", "60", "kernel"],
    "scheduler": ["none", "mq-deadline", "kyber", "kernel"],
    "read_ahead_kb": [0, 256, 4096],
    "nr_requests": [64, 512],
    "max_sectors_kb": [256, 1280],
    "indirect_segments": [64, 256],
    "device": ["nvme1n1", "xvda", "nvme0n1"],
    "mount": ["/data", "/"],
    "poll_queues": [1, 2],
    "minimum_kernel": ["3.10"],
    "maximum_steal_percent": [1],
    "instance_type": ["m5.metal"],
}
# What may run on a host, by which `auto` recognizes workloads.
PROGRAMS: Mapping[str, Dict[str, str]] = {
    "nginx": process(70, "nginx", "/usr/sbin/nginx", ports=[80, 443]),
    "redis": process(812, "redis-server", "/usr/bin/redis-check-rdb", ports=[6379]),
    "bash": process(99, "bash", "/usr/bin/bash"),
}
FAULTS = ("kill", "kill", "kill", "EIO", "ENOSPC", "EROFS")


@dataclass(frozen=True)
class Step:
    """An event, with everything that was drawn for it."""

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    fault: Optional[Mapping[str, Any]] = None

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in self.given.items())
        return f"{self.name}({options})" + (f" while {dict(self.fault)}" if self.fault else "")


def steps(rng: random.Random) -> List[Step]:
    """A life of four to eight steps; the first one tunes."""
    life = [_tune(rng, fault=rng.random() < 0.4)]
    names, weights = zip(*_CHOICES.items())
    for _number in range(rng.randint(3, 7)):
        life.append(_step(rng, rng.choices(names, weights)[0]))
    return life


_CHOICES = {
    "tune": 30,
    "restore": 12,
    "reapply": 8,
    "reboot": 14,
    "somebody": 16,
    "their_file": 5,
    "unplug": 5,
    "plug": 5,
    "rename": 5,
    "programs": 6,
    "confirm": 3,
    "dead_man": 3,
    "newer": 3,
    "older": 3,
}


def interrupted_steps(rng: random.Random) -> List[Step]:
    """A life of one or two concerns: after the first run, one that is interrupted, an event, perhaps both once more."""
    concerns = {concern.name: concern for concern in CONCERNS.values() if not concern.checks or concern.by_place}
    names = rng.sample(sorted(concerns), rng.choice([1, 1, 2]))

    def step(name: str, interrupted: float) -> Step:
        if name != "tune":
            return _step(rng, name, names, interrupted)
        wanted = {name: drawn_options(rng, concerns[name].options, few=rng.choice([0.25, 0.5, 0.9])) for name in names}
        given = {"prune": rng.random() < 0.3, "confirm_within": rng.choice([0, 0, 0, 120]), "concerns": wanted}
        return Step("tune", given, _fault(rng) if rng.random() < interrupted else None)

    life = [step("tune", interrupted=0.2)]
    for _number in range(rng.choice([1, 1, 2])):
        life.append(step(rng.choice(["tune", "restore", "restore", "reapply"]), interrupted=1))
        life.append(step(rng.choice(_EVENTS), interrupted=0.3))
    return life


_EVENTS = ("reboot", "reboot", "reboot", "tune", "unplug", "plug", "somebody", "dead_man")


def _step(rng: random.Random, name: str, concerns: Sequence[str] = tuple(CONCERNS), interrupted: float = 0.3) -> Step:
    if name == "tune":
        return _tune(rng, fault=rng.random() < 0.4)
    if name in ("restore", "reapply"):
        given = {"concern": rng.choice([None, None, rng.choice(concerns)])} if name == "restore" else {}
        return Step(name, given, _fault(rng) if rng.random() < interrupted else None)
    if name == "reboot":
        return Step(name, {"unit": rng.random() < 0.6}, _fault(rng) if rng.random() < 0.2 else None)
    if name == "programs":
        return Step(name, {"names": rng.sample(sorted(PROGRAMS), rng.randint(0, 2))})
    return Step(name, {"draw": rng.random(), "other": rng.random()})


def _fault(rng: random.Random) -> Dict[str, Any]:
    """The run dies at a write, before or after it; or writes fail for a while."""
    at = rng.choice([rng.randint(1, 10), rng.randint(5, 25), rng.randint(5, 60), rng.randint(10, 150)])
    return {"kind": rng.choice(FAULTS), "at": at, "length": rng.choice([1, 3, 1000]), "after": rng.random() < 0.5}


def _tune(rng: random.Random, fault: bool) -> Step:
    given: Dict[str, Any] = {"prune": rng.random() < 0.25, "confirm_within": rng.choice([0, 0, 0, 120])}
    if rng.random() < 0.35:
        given["workloads"] = rng.choice([*[rng.sample(sorted(WORKLOADS), rng.choice([1, 1, 2, 3]))] * 2, ["auto"]])
        given["workload_auto"] = rng.choice(["apply", "apply", "advise"])
    if rng.random() < 0.15:
        given["program"] = rng.choice([rng.sample(NAMES, rng.choice([1, 2])), ["mongodb=8.0"], ["auto"]])
    few = rng.random()
    concerns = {}
    for concern in CONCERNS.values():
        if rng.random() < (0.2 if few < 0.6 else 0.7):
            concerns[concern.name] = drawn_options(rng, concern.options, few=0.25 if few < 0.6 else 0.5)
    if not concerns and "workloads" not in given:
        concern = rng.choice([concern for concern in CONCERNS.values() if not concern.checks or concern.by_place])
        concerns[concern.name] = drawn_options(rng, concern.options, few=0.5)
    given["concerns"] = concerns
    return Step("tune", given, _fault(rng) if fault else None)


def drawn_options(rng: random.Random, spec: Mapping[str, Mapping[str, Any]], few: float) -> Dict[str, Any]:
    """Options of a concern, or of an entry of a list option, each with the probability `few`."""
    found = {}
    for name, rule in spec.items():
        if name.startswith("allow_") or name == "restart_irqbalance":
            found[name] = rng.random() < 0.8
        elif rule.get("required") or rng.random() < few:
            found[name] = _value(rng, name, rule)
    return found


def _value(rng: random.Random, name: str, rule: Mapping[str, Any]) -> Any:
    kind = rule.get("type", "str")
    if kind == "bool":
        return rng.random() < 0.6
    if "or_word" in rule:
        return rng.choice((True, True, False, rule["or_word"]))
    if kind == "dict":
        return drawn_options(rng, rule["options"], few=0.5)
    if kind == "list":
        element = {**rule, "type": rule["elements"]}
        return [_value(rng, name, element) for _number in range(rng.choice([1, 1, 2]))]
    return rng.choice(values_of(name, rule))


def values_of(name: str, rule: Mapping[str, Any]) -> List[Any]:
    """Values of an option: its choices, those of VALUES, or else two numbers within its range, or two rows of them."""
    found: List[Any] = list(rule.get("choices") or VALUES.get(name) or ())
    if not found:
        least, most = rule["range"]
        found = [least, min(most, 2 * least + 1)]
        if "numbers" in rule:
            found = [" ".join(str(min(most, number + place)) for place in range(rule["numbers"])) for number in found]
    return found
