# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters of the network: what each option means in /proc/sys. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.native import plan_file, sysctl_d
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_choice import Knob, joined, knob_maker
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted

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
    reason: str = ""
    reference: str = "S4-16; ec2.md 2.10"


_SWITCH = ("disabled", "enabled")
RULES: Mapping[str, Rule] = {
    "somaxconn": Rule("net.core.somaxconn", 1, reason="how many connections wait to be accepted", reference="S4-08"),
    "max_syn_backlog": Rule("net.ipv4.tcp_max_syn_backlog", 1, reason="how many connections are half open"),
    "netdev_max_backlog": Rule("net.core.netdev_max_backlog", 1, reason="packets that wait for a CPU when RPS is on"),
    "netdev_budget": Rule("net.core.netdev_budget", 1, 10000, reason="packets per round of NAPI", reference="S4-14"),
    "rmem_max": Rule("net.core.rmem_max", 2304, reason="the largest receive buffer that a program may ask for"),
    "wmem_max": Rule("net.core.wmem_max", 4608, reason="the largest send buffer that a program may ask for"),
    "tcp_rmem": Rule("net.ipv4.tcp_rmem", 1, count=3, reason="the receive window, least first and most"),
    "tcp_wmem": Rule("net.ipv4.tcp_wmem", 1, count=3, reason="the send buffer, least first and most"),
    "slow_start_after_idle": Rule(
        "net.ipv4.tcp_slow_start_after_idle", words=_SWITCH, reason="whether a connection forgets its window when idle"
    ),
    "mtu_probing": Rule(
        "net.ipv4.tcp_mtu_probing",
        words=("disabled", "on_black_hole", "enabled"),
        reason="finds the path's MTU where ICMP is dropped",
    ),
    "keepalive_time": Rule(
        "net.ipv4.tcp_keepalive_time", 1, 32767, reason="the newest types forget a connection that is idle for 350 s"
    ),
    "port_range": Rule("net.ipv4.ip_local_port_range", 1024, 65535, 2, reason="ports for connections to elsewhere"),
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
        spec[name] = {"type": "str" if rule.words or rule.text or rule.count > 1 else "int"}
        if rule.words:
            spec[name]["choices"] = list(rule.words)
    return spec


def plan_sysctls(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for the kernel parameters, and for the file that sets them at boot.

    Raises NearmetalError for a value that no kernel takes.
    """
    plans = []
    kept: Dict[str, str] = {}
    make = knob_maker(NAME, wanted)
    for name, rule in RULES.items():
        asked = wanted.get(name)
        if asked is None:
            continue
        goal = _value(name, rule, asked)
        knob = make(name, "sysctl", rule.reference)
        for key in (rule.key, *rule.also):
            now = (facts.sysctl or {}).get(key)
            stop = _stop(facts, name, key, now, goal)
            if stop is not None:
                plans.append(Plan(findings=(replace(knob.told(None, *stop, now, goal), where=key),)))
                continue
            if not rule.by_memory:
                kept[key] = goal
            status = "ok" if now == goal else "would_change"
            told = replace(knob.told(None, status, rule.reason, now, goal), where=key)
            actions = () if now == goal else (knob.action(key, now, goal, rule.reason),)
            plans.append(Plan(actions, (told,)))
    path, text = sysctl_d(NAME, kept)
    lasting = text if kept and wanted.get("persist") else None
    return joined([*plans, plan_file(NAME, facts, path, lasting, "user")])


def left_to_the_unit(parameters: Plan) -> bool:
    """Whether the plan for the parameters has one that no file sets at boot."""
    names = [name for name, rule in RULES.items() if rule.by_memory]
    return any(told.knob in names and told.status in ("ok", "would_change") for told in parameters.findings)


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


def _stop(facts: Facts, name: str, key: str, now: Optional[str], goal: str) -> Optional[Tuple[str, str]]:
    """Status and reason for a parameter that isn't to be set."""
    if now is None:
        return "not_applicable", f"this kernel has no {key}"
    if RULES[name].by_memory and _too_much(facts, int(goal)):
        return "refused", f"{goal} kB is more than {_MOST_FREE:.0%} of this host's memory"
    return None


def _value(name: str, rule: Rule, asked: Any) -> str:
    """The option as the kernel writes it."""
    if rule.words:
        return str(rule.words.index(asked))
    words = str(asked).split()
    if rule.text:
        if len(words) != 1 or not words[0].replace("_", "").isalnum() or not words[0].isascii():
            raise NearmetalError(f"network_stack.{name}: {asked!r} is no name")
        return words[0]
    numbers = [int(word) for word in words if word.isdigit() and word.isascii()]
    fits = all(rule.low <= number <= rule.high for number in numbers)
    if len(numbers) != len(words) or len(numbers) != rule.count or not fits or numbers != sorted(numbers):
        wanted = "a number" if rule.count == 1 else f"{rule.count} ascending numbers"
        raise NearmetalError(f"network_stack.{name}: {asked!r} is not {wanted} from {rule.low} to {rule.high}")
    return " ".join(map(str, numbers))


def _too_much(facts: Facts, kilobytes: int) -> bool:
    memory: Optional[int] = facts.topology.memory if facts.topology is not None else None
    return memory is not None and kilobytes * 1024 > memory * _MOST_FREE
