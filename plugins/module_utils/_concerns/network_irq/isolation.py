# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments that keep the CPUs which dedicated interrupts leave free of the kernel's own work. Pure. PRIVATE.

They name CPUs of this size of host, so they are an opt-in, and the unit never writes them.
"""

from __future__ import annotations

from typing import FrozenSet, Iterable, Optional, Tuple

from ..._facts.facts import Facts
from ..._facts.network import listed
from ..._plan import Plan, Wanted, joined
from ..._planning.boot_argument import plan_argument
from ..._planning.knob import Knob, boot_argument

NAME = "network_irq"
_REFERENCE = "Linux kernel, core-api/housekeeping; tuned, cpu-partitioning; unmeasured"
_ISOLATED = boot_argument(
    NAME, "isolation", "isolcpus", _REFERENCE, spec={"type": "str", "choices": ["kernel", "enabled"]}
)
_TICKLESS = boot_argument(NAME, "isolation", "nohz_full", _REFERENCE)
_CALLBACKS = boot_argument(NAME, "isolation", "rcu_nocbs", _REFERENCE)
KNOBS = (_ISOLATED, _TICKLESS, _CALLBACKS)
# managed_irq keeps interrupts of NVMe away, too; before Linux 5.6 an unknown flag made the whole argument void.
_MANAGED_IRQ = (5, 6, 0)
_FLAGS = "managed_irq,domain,"


def foreign(facts: Facts) -> str:
    """The CPUs that somebody else keeps free of work; empty where there are none, or where nearmetal isolates them."""
    recorded = facts.boot.arguments
    return "" if any(knob.place in recorded for knob in KNOBS) else facts.network.isolated or ""


def placeable(facts: Facts, wanted: Wanted) -> Facts:
    """The facts for the placement of interrupts: CPUs that we isolate follow from it, so they don't limit it."""
    if _ISOLATED.value(wanted) != "enabled" or foreign(facts):
        return facts
    return facts._replace(network=facts.network._replace(isolated=None))


def plan_isolation(facts: Facts, busy: Optional[FrozenSet[int]], wanted: Wanted) -> Plan:
    """The plan for the arguments; `busy` are CPUs with interrupts of a NIC and their siblings, None without a policy.

    CPU 0 is never isolated: it boots the others, and something has to do the kernel's work.
    """
    requested = _ISOLATED.value(wanted)
    if requested is None:
        return Plan()
    if requested == "kernel":
        reason = "the kernel's own work may run on every CPU"
        return joined(*(plan_argument(facts, wanted, knob, None, reason) for knob in KNOBS))
    others = foreign(facts)
    knob = _ISOLATED.at("")
    if others:
        reason = f"somebody else's isolcpus= or nohz_full= already isolates CPUs {others}"
        return knob.says("refused", reason, others)
    if busy is None:
        return knob.says("refused", "it isolates the CPUs that policy: dedicated leaves: set policy: dedicated too")
    kept = busy | {0} | set(facts.topology.siblings(0))
    chosen = listed(cpu for cpu in facts.online if cpu not in kept)
    if not chosen:
        return knob.says("not_applicable", "interrupts and CPU 0 leave no core to isolate")
    reason = f"the scheduler moves nothing to CPUs {chosen}, and a CPU with one busy thread has no tick"
    plans = [plan_argument(facts, wanted, knob, text, reason) for knob, text in _texts(facts, chosen)]
    return joined(*plans, _advice(facts, chosen))


def _texts(facts: Facts, chosen: str) -> Iterable[Tuple[Knob, str]]:
    version = facts.platform.kernel_version
    flags = _FLAGS if version is not None and version >= _MANAGED_IRQ else ""
    yield _ISOLATED, f"{_ISOLATED.place}={flags}{chosen}"
    if facts.network.tickless:
        yield _TICKLESS, f"{_TICKLESS.place}={chosen}"
    yield _CALLBACKS, f"{_CALLBACKS.place}={chosen}"


def _advice(facts: Facts, chosen: str) -> Plan:
    sentences = [
        f"only bound programs run on CPUs {chosen}: bind the application (compute_units, or CPUAffinity=)",
        "the kernel arguments name CPUs of this size: before this disk starts as another type, set isolation: kernel",
    ]
    if not facts.network.tickless:
        sentences.append("this kernel wasn't built with NO_HZ_FULL: a CPU with one busy thread keeps its tick")
    return _ISOLATED.at("").advises(sentences, chosen)
