# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""memory: swap, limits of dirty file cache, overcommit, KSM. Pure. PRIVATE to the collection."""

from __future__ import annotations

from functools import partial

from .._error import NearmetalError
from .._facts.facts import Facts
from .._facts.memory import dirty_parameter
from .._facts.sys_files import KSM
from .._number import is_number
from .._parameters import MEMORY
from .._plan import Plan, Wanted, joined
from .._planning.knob import Knob
from .._planning.native import sysctl_d, tmpfiles
from .._planning.options import PERSIST, SWITCH
from .._planning.parameters import HELD, Obstacle, knobs_of, plan_parameters
from .._planning.skeleton import per_knob, tuning
from .._words import shown

NAME = "memory"
_SHARES = {str(percent): f"{percent}%" for percent in range(1, 101)}


def _limit(name: str, reason: str) -> Knob:
    ratio, size = f"vm.{name}_ratio", f"vm.{name}_bytes"
    return Knob(
        NAME,
        name,
        "memory.dirty",
        "Linux kernel, sysctl/vm",
        {"type": "str"},
        place=name,
        takes_effect="limit",
        reason=reason,
        tuned=(ratio, size, f"sysctl.{ratio}", f"sysctl.{size}"),
        tuned_words={ratio: _SHARES, f"sysctl.{ratio}": _SHARES},
        comparable=True,
    )


_PARAMETERS = knobs_of(NAME, MEMORY, overcommit={"kubelet": True})
_LIMITS = (
    _limit("dirty", "how much dirty file cache there may be before a program that writes has to wait for the disk"),
    _limit("dirty_background", "how much dirty file cache there may be before the kernel begins to write it to disk"),
)
_KSM = Knob(
    NAME,
    "ksm",
    KSM.lever,
    "Linux kernel, ksm",
    SWITCH,
    takes_effect="slowly",
    at_boot=KSM.at_boot,
    tuned=(f"sysfs.{KSM.paths[0]}",),
    comparable=True,
)
KNOBS = (*_PARAMETERS, *_LIMITS, _KSM)

# The largest share of the memory to keep free: programs would miss more.
_MOST_FREE = 0.05
# What `overcommit: never` must leave to be promised, or no login and no way back could start.
_LEAST_PROMISE = 512 * 1024 * 1024
# Less could be one page of a kernel with pages of 64 KiB; more has no host.
_LEAST_BYTES, _MOST_BYTES = 1024 * 1024, 1 << 44


def _obstacle(facts: Facts, wanted: Wanted, knob: Knob, goal: str) -> Obstacle:
    """Status and reason for a parameter that isn't to be set."""
    memory = facts.topology.memory
    if knob.name == "min_free_kbytes" and memory is not None and int(goal) * 1024 > memory * _MOST_FREE:
        return "refused", f"{goal} kB is more than {_MOST_FREE:.0%} of this host's memory"
    kernel = facts.platform.kernel_version
    if knob.name == "swappiness" and int(goal) > 100 and (kernel is None or kernel < (5, 8)):
        now, sentence = facts.sysctl.get(knob.place), "memory.swappiness: before Linux 5.8 it is at most 100"
        return "not_applicable", knob.impossible(wanted, sentence, now, goal).findings[0].reason
    if knob.name == "overcommit":
        return _promises(facts, wanted, knob, goal)
    return None


def _promises(facts: Facts, wanted: Wanted, knob: Knob, goal: str) -> Obstacle:
    """Status and reason for a mode of promises that isn't to be set."""
    now = facts.sysctl.get(knob.place)
    if goal == "2":
        return _no_promises_left(facts) if now != goal else None
    if knob.wanted_by(wanted) == "workload" and facts.host_value("sysctl", knob.place, now) == "2":
        return HELD, "somebody else set never on this host: set memory.overcommit yourself to change that"
    return None


def _no_promises_left(facts: Facts) -> Obstacle:
    """Status and reason on a host whose programs were promised nearly all that `never` allows; None elsewhere."""
    if facts.memory.promised is None or facts.memory.most_promised is None:
        return HELD, "this kernel doesn't say how much memory is promised: programs might fail at once"
    available = facts.memory.most_promised - facts.memory.promised
    if available < _LEAST_PROMISE:
        most, promised = (number // 2**20 for number in (facts.memory.most_promised, facts.memory.promised))
        return HELD, (
            f"programs might fail at once: they were promised {promised} MiB, and with never the kernel promises at"
            f" most {most} MiB here (a higher vm.overcommit_ratio or more swap raises that)"
        )
    return None


def _dirty(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for the limits of dirty file cache; of their two parameters a file sets the one that is used."""
    plans = []
    for knob in _LIMITS:
        if knob.value(wanted) is None:
            continue
        goal = _limit_of(knob, knob.value(wanted))
        now = facts.memory.dirty.get(knob.place)
        if now is None:
            plans.append(knob.says("not_applicable", f"this kernel has no vm.{knob.place}_ratio", None, goal))
            continue
        change = knob.change(wanted, now, goal, knob.reason)
        plans.append(change._replace(at_boot=dict([dirty_parameter(knob.place, goal)])))
    return joined(*plans)


def _limit_of(knob: Knob, requested: str) -> str:
    """The option without spaces. Raises NearmetalError for what is neither a share nor a number of bytes."""
    text = requested.replace(" ", "")
    number = text[:-1] if text.endswith("%") else text
    least, most = (1, 100) if number != text else (_LEAST_BYTES, _MOST_BYTES)
    if not (is_number(number) and least <= int(number) <= most):
        raise NearmetalError(
            f"{NAME}.{knob.name} must be a share of the memory, 1% to 100%, or a number of bytes from {_LEAST_BYTES} to"
            f" {_MOST_BYTES}, not {shown(requested)}"
        )
    return text.replace(number, str(int(number)))


def _merging(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    """The plan for KSM."""
    now = facts.memory.ksm
    if now is None:
        return _KSM.says("not_applicable", "this kernel doesn't merge pages (it has no KSM)", None, requested)
    if requested == "enabled":
        goal, reason = "1", "equal pages of programs that ask for it, such as virtual machines, take memory once"
    else:
        goal = "2" if now == "2" else "0"  # 2 has also separated everything, so it is off
        reason = "the kernel doesn't search for equal pages; pages that are merged already stay merged"
    return _KSM.change(wanted, now, goal, reason)


CONCERN = tuning(
    NAME,
    sysctl_d,
    tmpfiles,
    knobs=KNOBS,
    manner={"persist": PERSIST},
    domains=("platform", "topology", "memory", "sysctl", "unit", "files"),
    decide=[partial(plan_parameters, knobs=_PARAMETERS, obstacle=_obstacle), _dirty, per_knob((_KSM, _merging))],
    by_place=True,
)
