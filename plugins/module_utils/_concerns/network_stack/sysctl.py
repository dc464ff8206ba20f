# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters of the network: what each option means in /proc/sys. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import (
    LEAST,
    MOST,
    WIDEST,
    binds,
    bounded,
    kept_reason,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import may_be_burstable
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import plan_file, sysctl_d
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.network_choice import Knob, joined, knob_maker
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

NAME = "network_stack"
_INT = 2147483647


@dataclass(frozen=True)
class Rule:
    """One option: its key, how many numbers it takes and within what, or the words that stand for numbers."""

    key: str
    low: int = 0
    high: int = _INT
    count: int = 1
    words: Tuple[str, ...] = ()  # their position is the kernel's number
    text: bool = False
    also: Tuple[str, ...] = ()  # keys that get the same value
    by_memory: bool = False  # whether it fits follows from the host's memory, so no file may set it on another type
    bound: str = ""  # how a workload's value and the host's own are brought together; empty: the workload's is exact
    reason: str = ""
    reference: str = "S4-16; ec2.md 2.10"


_SWITCH = ("disabled", "enabled")
RULES: Mapping[str, Rule] = {
    "somaxconn": Rule(
        "net.core.somaxconn", 1, bound=LEAST, reason="how many connections wait to be accepted", reference="S4-08"
    ),
    "max_syn_backlog": Rule(
        "net.ipv4.tcp_max_syn_backlog", 1, bound=LEAST, reason="how many connections are half open"
    ),
    "netdev_max_backlog": Rule(
        "net.core.netdev_max_backlog", 1, bound=LEAST, reason="packets that wait for a CPU when RPS is on"
    ),
    "netdev_budget": Rule(
        "net.core.netdev_budget", 1, 10000, bound=LEAST, reason="packets per round of NAPI", reference="S4-14"
    ),
    "rmem_max": Rule(
        "net.core.rmem_max", 2304, bound=LEAST, reason="the largest receive buffer that a program may ask for"
    ),
    "wmem_max": Rule(
        "net.core.wmem_max", 4608, bound=LEAST, reason="the largest send buffer that a program may ask for"
    ),
    "tcp_rmem": Rule("net.ipv4.tcp_rmem", 1, count=3, bound=LEAST, reason="the receive window, least first and most"),
    "tcp_wmem": Rule("net.ipv4.tcp_wmem", 1, count=3, bound=LEAST, reason="the send buffer, least first and most"),
    "slow_start_after_idle": Rule(
        "net.ipv4.tcp_slow_start_after_idle", words=_SWITCH, reason="whether a connection forgets its window when idle"
    ),
    "mtu_probing": Rule(
        "net.ipv4.tcp_mtu_probing",
        words=("disabled", "on_black_hole", "enabled"),
        reason="finds the path's MTU where ICMP is dropped",
    ),
    "keepalive_time": Rule(
        "net.ipv4.tcp_keepalive_time",
        1,
        32767,
        bound=MOST,
        reason="the newest types forget a connection that is idle for 350 s",
    ),
    "port_range": Rule(
        "net.ipv4.ip_local_port_range", 1024, 65535, 2, bound=WIDEST, reason="ports for connections to elsewhere"
    ),
    "busy_poll": Rule(
        "net.core.busy_poll",
        0,
        1000,
        also=("net.core.busy_read",),
        reason="microseconds of polling in poll() and read(), latency for CPU",
    ),
    "qdisc": Rule("net.core.default_qdisc", text=True, reason="the queueing discipline of interfaces that come up"),
    "congestion_control": Rule(
        "net.ipv4.tcp_congestion_control", text=True, reason="how a connection finds its speed; opt-in"
    ),
    "min_free_kbytes": Rule(
        "vm.min_free_kbytes",
        1024,
        by_memory=True,
        bound=LEAST,
        reason="memory kept free so that packets find a page",
        reference="ec2.md 2.8",
    ),
}
# At most this share of the memory is kept free for packets: more is missing elsewhere.
_MOST_FREE = 0.05


def argspec() -> Dict[str, Dict[str, Any]]:
    """The options in the form of an Ansible argument spec."""
    spec: Dict[str, Dict[str, Any]] = {}
    for name, rule in RULES.items():
        if rule.words:
            spec[name] = {"type": "str", "choices": list(rule.words)}
        elif rule.text or rule.count > 1:
            spec[name] = {"type": "str"}
        else:
            spec[name] = {"type": "int", "range": (rule.low, rule.high)}
    return spec


def bounds() -> Dict[str, str]:
    """The options of which a workload's value is a bound, each with its kind."""
    return {name: rule.bound for name, rule in RULES.items() if rule.bound}


def plan_sysctls(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for the kernel parameters, and for the file that sets them at boot.

    It asks for another plan at each boot (`replan`) when a parameter is to last and no file may set it.
    Raises NearmetalError for a value that no kernel takes.
    """
    plans = []
    kept: Dict[str, str] = {}
    unkept = False
    make = knob_maker(NAME, wanted)
    for name, rule in RULES.items():
        asked = wanted.get(name)
        if asked is None:
            continue
        value = _value(name, rule, asked)
        knob = make(name, "sysctl", rule.reference)
        for key in (rule.key, *rule.also):
            now = (facts.sysctl or {}).get(key)
            stop = _stop(facts, wanted, name, key, now, value)
            if stop is not None:
                plans.append(Plan(findings=(replace(knob.told(None, *stop, now, value), where=key),)))
                continue
            own = str(facts.own("sysctl", key, now))
            goal = bounded(rule.bound, value, own) if rule.bound and binds(wanted, name) else value
            reason = rule.reason if goal == value else kept_reason(rule.bound, value, own, goal, rule.reason)
            if rule.by_memory or goal != value:
                unkept = True
            else:
                kept[key] = goal
            status = "ok" if now == goal else "would_change"
            finding = replace(knob.told(None, status, reason, now, goal), where=key)
            actions = () if now == goal else (knob.action(key, now, goal, reason),)
            plans.append(Plan(actions, (finding,)))
    path, text = sysctl_d(NAME, kept)
    lasting = text if kept and wanted.get("persist") else None
    both = joined([*plans, plan_file(NAME, facts, path, lasting, "user")])
    return replace(both, replan=unkept and bool(wanted.get("persist")))


def advice(facts: Facts, wanted: Wanted) -> Tuple[Finding, ...]:
    """What the operator should know of parameters that nobody manages."""
    knob = Knob(NAME, "keepalive_time", "sysctl", "ec2.md 2.10")
    now = (facts.sysctl or {}).get("net.ipv4.tcp_keepalive_time")
    if wanted.get("keepalive_time") is None and now is not None and now.isdigit() and int(now) >= 350:
        reason = (
            f"keep-alives come after {now} s; the newest types' security groups forget an idle connection after 350 s"
        )
        return (knob.told(None, "advice", reason, now),)
    return ()


def _stop(
    facts: Facts, wanted: Wanted, name: str, key: str, now: Optional[str], goal: str
) -> Optional[Tuple[str, str]]:
    """Status and reason for a parameter that isn't to be set."""
    if now is None:
        return "not_applicable", f"this kernel has no {key}"
    if RULES[name].by_memory and _too_much(facts, int(goal)):
        return "refused", f"{goal} kB is more than {_MOST_FREE:.0%} of this host's memory"
    if name == "busy_poll" and goal != "0" and wanted.wanted_by(name) == "workload":
        return _no_cpu_to_burn(facts)
    return None


def _no_cpu_to_burn(facts: Facts) -> Optional[Tuple[str, str]]:
    """Status and reason on a host where a thread that polls takes the CPU that others need."""
    online = len(facts.topology.cpus_online or ()) if facts.topology is not None else 0
    yourself = "set network_stack.busy_poll yourself if you want that"
    if facts.platform is not None and facts.platform.burstable:
        return "refused", f"polling spends CPU credits while nothing arrives, and this is a burstable type; {yourself}"
    asked = may_be_burstable(facts)
    if asked:
        return "refused", f"this may be a burstable type, on which polling spends CPU credits: {asked}"
    if 0 < online <= 2:
        few = "one CPU" if online == 1 else "two CPUs"
        return "refused", f"this host has {few}: a thread that polls keeps the others from running; {yourself}"
    return None


def _value(name: str, rule: Rule, asked: Any) -> str:
    """The option as the kernel writes it."""
    if rule.words:
        return str(rule.words.index(asked))
    words = str(asked).split()
    if rule.text:
        if len(words) != 1 or not words[0].replace("_", "").isalnum() or not words[0].isascii():
            raise NearmetalError(f"network_stack.{name}: {shown(asked)} is no name")
        return words[0]
    numbers = [int(word) for word in words if word.isdigit() and word.isascii()]
    fits = all(rule.low <= number <= rule.high for number in numbers)
    if len(numbers) != len(words) or len(numbers) != rule.count or not fits or numbers != sorted(numbers):
        wanted = "a number" if rule.count == 1 else f"{rule.count} ascending numbers"
        raise NearmetalError(f"network_stack.{name}: {shown(asked)} is not {wanted} from {rule.low} to {rule.high}")
    return " ".join(map(str, numbers))


def _too_much(facts: Facts, kilobytes: int) -> bool:
    memory: Optional[int] = facts.topology.memory if facts.topology is not None else None
    return memory is not None and kilobytes * 1024 > memory * _MOST_FREE
