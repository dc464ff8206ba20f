# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters of the network. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Tuple

from ..._facts.facts import Facts
from ..._facts.listening import listed, shown_ports
from ..._number import is_number
from ..._parameters import NETWORK_STACK
from ..._plan import Plan, Wanted, joined
from ..._planning.gate import loses_time, may_be_burstable
from ..._planning.knob import Knob
from ..._planning.parameters import HELD, Obstacle, knobs_of
from ..._planning.parameters import plan_parameters as planned

NAME = "network_stack"
# The least that a page has; RHEL 8 on arm64 has 64 KiB.
_PAGE = 4096
_BY_CHANCE = range(32768, 61000)  # the kernel's own range for outgoing connections, and for a bind to port 0
KNOBS = knobs_of(NAME, NETWORK_STACK)
_KEEP_ALIVE, _RANGE, _RESERVED = (
    knob for knob in KNOBS if knob.name in ("keepalive_time", "port_range", "reserved_ports")
)


def plan_parameters(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for the kernel parameters. Raises NearmetalError for a value that no kernel takes."""
    plan = planned(facts, _with_ports(facts, wanted), KNOBS, _obstacle)
    if _RESERVED.value(wanted) == "auto" and plan.at_boot.get(_RESERVED.place) == "":
        # No port is reserved without a line either.
        plan = plan._replace(at_boot={key: value for key, value in plan.at_boot.items() if key != _RESERVED.place})
    return joined(plan, _late_keep_alives(facts, wanted))


def _with_ports(facts: Facts, wanted: Wanted) -> Wanted:
    """What is wanted, with `auto` as the ports on which something listens, beside those that are reserved already.

    A service that is down keeps its port, so the list only grows. A port of the kernel's own range is left out: a
    program that names no port got it, and gets another one the next time. The range that the host had before isn't
    known any more once it is widened, so it can't decide.
    """
    if _RESERVED.value(wanted) != "auto":
        return wanted
    low, high = (_RANGE.value(wanted) or facts.sysctl.get(_RANGE.place, "32768 60999")).split()
    ports = {port for port in facts.listening if int(low) <= port <= int(high) and port not in _BY_CHANCE}
    reserved = {*ports, *listed(facts.sysctl.get(_RESERVED.place, ""))}
    return wanted._replace(options={**wanted.options, _RESERVED.base: shown_ports(reserved)})


def _late_keep_alives(facts: Facts, wanted: Wanted) -> Plan:
    """Advice about keep-alives that nobody manages."""
    now = facts.sysctl.get(_KEEP_ALIVE.place)
    if _KEEP_ALIVE.value(wanted) is None and now is not None and is_number(now) and int(now) >= 350:
        reason = (
            f"keep-alives start after {now} s, but the newest types' security groups forget an idle"
            " connection after 350 s"
        )
        return _KEEP_ALIVE.at("").says("advice", reason, now)
    return Plan()


def _obstacle(facts: Facts, wanted: Wanted, knob: Knob, goal: str) -> Obstacle:
    """Status and reason for a parameter that isn't to be set."""
    memory = facts.topology.memory
    if knob.name == "tcp_mem" and memory is not None and int(goal.split()[-1]) * _PAGE > memory:
        return "refused", f"{goal.split()[-1]} pages are more than the whole memory of this host"
    if knob.name == "busy_poll" and goal != "0" and knob.wanted_by(wanted) == "workload":
        return _no_cpu_to_burn(facts)
    return None


def _no_cpu_to_burn(facts: Facts) -> Optional[Tuple[str, str]]:
    """Status and reason on a host where a thread that polls takes CPU time that others need; None elsewhere."""
    online = len(facts.online)
    opt_in = "set network_stack.busy_poll yourself if you want that"
    if facts.burstable:
        return "refused", f"polling spends CPU credits while nothing arrives, and this is a burstable type; {opt_in}"
    request = may_be_burstable(facts)
    if request:
        status = HELD if loses_time(facts) else "refused"
        return status, f"this may be a burstable type, on which polling spends CPU credits: {request}"
    if 0 < online <= 2:
        cpu_words = "one CPU" if online == 1 else "two CPUs"
        return "refused", f"this host has {cpu_words}: a thread that polls keeps the others from running; {opt_in}"
    return None
