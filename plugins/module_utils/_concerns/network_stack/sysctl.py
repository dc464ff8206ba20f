# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters of the network: what each option means in /proc/sys. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._parameters import NETWORK_STACK
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import widened
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import may_be_burstable
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import Knob
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

NAME = "network_stack"
KNOBS = tuple(
    Knob(
        NAME,
        parameter.option,
        "sysctl",
        parameter.reference,
        parameter.spec,
        place=parameter.key,
        reason=parameter.reason,
        bound=parameter.bound,
    )
    for parameter in NETWORK_STACK
)
(_KEEP_ALIVE,) = (knob for knob in KNOBS if knob.name == "keepalive_time")
(_MIN_FREE,) = (knob for knob in KNOBS if knob.name == "min_free_kbytes")
# The largest share of the memory to keep free for packets: programs would miss more.
_MOST_FREE = 0.05


def plan_parameters(facts: Facts, wanted: Wanted) -> Tuple[Plan, Dict[str, str]]:
    """The plan for the kernel parameters, and those that a file sets at boot: parameter → value.

    It asks for another plan at each boot (`replan`) when no file may set a parameter.
    Raises NearmetalError for a value that no kernel takes.
    """
    plans = []
    at_boot: Dict[str, str] = {}
    for knob in KNOBS:
        if knob.value(wanted) is None:
            continue
        now, value = (facts.sysctl or {}).get(knob.place), _value(knob, knob.value(wanted))
        obstacle = _obstacle(facts, wanted, knob, now, value)
        if obstacle is not None:
            plans.append(knob.says(*obstacle, now, value))
            continue
        goal, reason = widened(knob, wanted, value, str(facts.host_value("sysctl", knob.place, now)), knob.reason)
        # The goal depends on this host's memory or own value, so no file may set it on another type.
        if knob is _MIN_FREE or goal != value:
            plans.append(Plan(replan=True))
        else:
            at_boot[knob.place] = goal
        plans.append(knob.change(wanted, now, goal, reason))
    plans.append(_late_keep_alives(facts, wanted))
    return joined(*plans), at_boot


def _late_keep_alives(facts: Facts, wanted: Wanted) -> Plan:
    """Advice about keep-alives that nobody manages."""
    now = (facts.sysctl or {}).get(_KEEP_ALIVE.place)
    if _KEEP_ALIVE.value(wanted) is None and now is not None and now.isdigit() and int(now) >= 350:
        reason = (
            f"keep-alives start after {now} s, but the newest types' security groups forget an idle"
            " connection after 350 s"
        )
        return _KEEP_ALIVE.at("").says("advice", reason, now)
    return Plan()


def _obstacle(facts: Facts, wanted: Wanted, knob: Knob, now: Optional[str], goal: str) -> Optional[Tuple[str, str]]:
    """Status and reason for a parameter that isn't to be set."""
    if now is None:
        return "not_applicable", f"this kernel has no {knob.place}"
    if knob is _MIN_FREE and _too_much(facts, int(goal)):
        return "refused", f"{goal} kB is more than {_MOST_FREE:.0%} of this host's memory"
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
        return "refused", f"this may be a burstable type, on which polling spends CPU credits: {request}"
    if 0 < online <= 2:
        cpu_words = "one CPU" if online == 1 else "two CPUs"
        return "refused", f"this host has {cpu_words}: a thread that polls keeps the others from running; {opt_in}"
    return None


def _value(knob: Knob, requested: Any) -> str:
    """The option as the kernel writes it."""
    spec = knob.spec or {}
    if "choices" in spec:
        return str(spec["choices"].index(requested))
    words = str(requested).split()
    if "range" not in spec:
        if len(words) != 1 or not words[0].replace("_", "").isalnum() or not words[0].isascii():
            raise NearmetalError(
                f"network_stack.{knob.name} is a name of letters, digits and _, not {shown(requested)}"
            )
        return words[0]
    numbers = [int(word) for word in words if word.isdigit() and word.isascii()]
    count, (least, most) = spec.get("numbers", 1), spec["range"]
    fits = all(least <= number <= most for number in numbers)
    if len(numbers) != len(words) or len(numbers) != count or not fits or numbers != sorted(numbers):
        wanted = "a number" if count == 1 else f"{count} ascending numbers"
        raise NearmetalError(f"network_stack.{knob.name}: {shown(requested)} is not {wanted} from {least} to {most}")
    return " ".join(map(str, numbers))


def _too_much(facts: Facts, kilobytes: int) -> bool:
    memory: Optional[int] = facts.topology.memory if facts.topology is not None else None
    return memory is not None and kilobytes * 1024 > memory * _MOST_FREE
