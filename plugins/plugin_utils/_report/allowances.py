# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ENA allowances: when EC2 itself queues or drops packets, tuning can't help. Pure. PRIVATE to the collection.

A host reports two or more samples of `ethtool -S` per interface:
  {interface: ens5, seconds: 1234.5, packets: 7, counters: {pps_allowance_exceeded: 0, …}}
which `read_samples` makes from the facts of the module network_facts.
`seconds` is a clock that never jumps between the samples of a host. `packets`, sent and received in all queues, may be
absent. The counters start at 0 when the driver resets, so only differences mean anything.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional

from ...module_utils._facts.ethtool import CONNTRACK_AVAILABLE
from .._clean import mapping

# Counter → what EC2 limits, and what to do.
LIMITS = {
    "bw_in_allowance_exceeded": ("inbound bandwidth", "use a larger size, or spread the load over more instances"),
    "bw_out_allowance_exceeded": ("outbound bandwidth", "use a larger size, or spread the load over more instances"),
    "pps_allowance_exceeded": ("packets per second", "use a larger size, larger packets, or more instances"),
    "conntrack_allowance_exceeded": (
        "tracked connections",
        "use a larger size, shorter idle timeouts, or security group rules that need no tracking",
    ),
    "linklocal_allowance_exceeded": (
        "packets per second to DNS, instance metadata and NTP",
        "cache names on the host and ask the metadata service less often",
    ),
}
INTERFACE = 64  # characters; Linux allows 15
LARGEST = 2**64  # of a counter or clock; the difference of any two is a number in JSON
SHORTEST = 0.001  # least seconds between two samples for a rate


def budget_ns(packets_per_second: float) -> float:
    """Nanoseconds for one packet; 500 at 2 M packets per second."""
    return 1e9 / packets_per_second


def read_samples(result: Any, now: float) -> List[Dict[str, Any]]:
    """The samples in a result of network_facts; `now` is the controller's clock, in seconds.

    With `sample_seconds` the result has differences, which make two samples. Without it, the result has the counters
    since the driver's reset: one sample, to be compared with that of an earlier report.
    """
    facts = result
    for name in ("ansible_facts", "nearmetal", "network", "sample"):
        facts = mapping(mapping(facts).get(name))
    seconds = float(facts["seconds"]) if _number(facts.get("seconds")) else 0.0
    packets = mapping(facts.get("packets"))
    samples: List[Dict[str, Any]] = []
    for interface, counters in mapping(facts.get("allowances")).items():
        sample = {"interface": interface, "seconds": now, "packets": packets.get(interface), "counters": counters}
        if seconds > 0:
            samples.append({**sample, "seconds": now - seconds, "packets": 0, "counters": dict.fromkeys(LIMITS, 0)})
        samples.append(sample)
    return samples


def select_samples(earlier: Iterable[Any], today: Iterable[Any]) -> List[Mapping[str, Any]]:
    """The earlier samples of the interfaces that have a sample today."""
    names = {sample["interface"] for sample in today if _usable(sample)}
    return [sample for sample in earlier if _usable(sample) and sample["interface"] in names]


def verdicts(samples: Iterable[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """One verdict per interface that has two samples: the difference of the last two.

    Each is {interface, seconds, deltas: {counter: events}, packets_per_second, sentence}; the sentence
    is empty when no limit was hit. Samples of another form are ignored.
    """
    by_interface: Dict[str, List[Mapping[str, Any]]] = {}
    for sample in samples:
        if _usable(sample):
            by_interface.setdefault(sample["interface"], []).append(sample)
    return [
        verdict(interface, ordered[-2], ordered[-1])
        for interface, of_interface in sorted(by_interface.items())
        if len(ordered := sorted(of_interface, key=lambda sample: float(sample["seconds"]))) > 1
    ]


def verdict(interface: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Dict[str, Any]:
    """The verdict of two samples of one interface; see verdicts()."""
    seconds = float(after["seconds"]) - float(before["seconds"])
    reset = any(_count(after, name) < _count(before, name) for name in LIMITS)
    # After a driver reset the counters start at 0: what they show now is a minimum.
    deltas = {
        name: _count(after, name) - (0 if reset else _count(before, name))
        for name in LIMITS
        if name in after["counters"]
    }
    rate = _rate(before, after, seconds)
    return {
        "interface": interface,
        "seconds": round(seconds, 3),
        "deltas": deltas,
        "conntrack_available": after["counters"].get(CONNTRACK_AVAILABLE),
        "packets_per_second": rate,
        "sentence": _sentence(interface, deltas, seconds, rate),
    }


def _sentence(interface: str, deltas: Mapping[str, int], seconds: float, rate: Optional[float]) -> str:
    hit = [name for name, events in deltas.items() if events > 0]
    if not hit:
        return ""
    limits_hit = "; ".join(f"{LIMITS[name][0]}: {deltas[name]:,} packets over it in {seconds:,.0f} s" for name in hit)
    helps = "; ".join(dict.fromkeys(LIMITS[name][1] for name in hit))
    at = ""
    if rate:
        at = f" At {rate:,.0f} packets/s the host has {budget_ns(rate):,.0f} ns for each packet."
    return f"{interface} is at EC2's limit ({limits_hit}): tuning can't help; {helps}.{at}"


def _usable(sample: Any) -> bool:
    return (
        isinstance(sample, Mapping)
        and isinstance(sample.get("interface"), str)
        and 0 < len(sample["interface"]) <= INTERFACE
        and _number(sample.get("seconds"))
        and isinstance(sample.get("counters"), Mapping)
        and all(_number(sample["counters"].get(name, 0)) for name in (*LIMITS, CONNTRACK_AVAILABLE))
    )


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST < value < LARGEST


def _count(sample: Mapping[str, Any], name: str) -> int:
    return int(sample["counters"].get(name, 0))


def _rate(before: Mapping[str, Any], after: Mapping[str, Any], seconds: float) -> Optional[float]:
    if seconds < SHORTEST or not _number(before.get("packets")) or not _number(after.get("packets")):
        return None
    packets = float(after["packets"]) - float(before["packets"])
    return round(packets / seconds, 1) if packets >= 0 else None
