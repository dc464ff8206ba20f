# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that `auto` recognized, kept on the host between runs. PRIVATE to the collection.

A program that is down for a while doesn't change the choice: its workload, and what its maintainers ask for, apply
until somebody names others.
"""

from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple

from .._concerns.registry import CONCERNS
from .._error import Damaged, OfHost
from .._host.host import WritableHost
from .._memory.stored import CHOICE, PATH, Stored, StoredWanted
from .._plan import Plan
from .._planning.concern import Concern
from .._planning.knob import Knob
from .._planning.programs import PAGE, SIGNS
from .._planning.waivers import REFERENCE
from .._words import shown

KNOB = "workload"
WORKLOAD = Knob(CHOICE, KNOB, reference=REFERENCE)
PROGRAM = Knob(CHOICE, "program", reference=PAGE)
_PROGRAMS, _ASKING = "programs", "asking"

# It lets the finding of the choice be excluded and waived like any other.
_CONCERN = Concern(CHOICE, {}, (), lambda _facts, _wanted: Plan(), knobs=(WORKLOAD, PROGRAM))


def with_choice() -> Dict[str, Concern]:
    """The concerns of the registry, and the choice of workloads."""
    return {**CONCERNS, CHOICE: _CONCERN}


def recognized_before(host: WritableHost) -> Tuple[str, ...]:
    """The programs by which earlier runs chose workloads, in the order of SIGNS.

    Raises NearmetalError for a program that this version doesn't recognize.
    """
    programs = _kept(StoredWanted(host).get(CHOICE), _PROGRAMS)
    if any(program not in SIGNS for program in programs):
        raise OfHost(
            f"{PATH}: {shown(programs)} aren't programs that auto recognizes in this version; name the host's workload"
            " in tune_workload"
        )
    return tuple(program for program in SIGNS if program in programs)


def asking_before(host: WritableHost) -> Tuple[str, ...]:
    """The programs, as in tune_program, whose wishes an earlier run applied. Raises NearmetalError for no list."""
    return tuple(_kept(StoredWanted(host).get(CHOICE), _ASKING))


def stored_choice(
    earlier: Optional[Stored], programs: Optional[Sequence[str]], asking: Optional[Sequence[str]]
) -> Optional[Stored]:
    """What is stored for a choice by these programs, of which None are those of an `earlier` run; None without any."""
    if earlier is not None and earlier.damage:
        if programs is None and asking is None:
            return earlier
        earlier = None
    kept = list(_kept(earlier, _PROGRAMS) if programs is None else programs)
    kept_asking = list(_kept(earlier, _ASKING) if asking is None else asking)
    if not kept and not kept_asking:
        return None
    return Stored({_PROGRAMS: kept, **({_ASKING: kept_asking} if kept_asking else {})})


def _kept(stored: Optional[Stored], name: str) -> Sequence[str]:
    if stored is not None and stored.damage:
        raise Damaged(stored.damage)
    words = stored.options.get(name, ()) if stored is not None else ()
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise OfHost(f"{PATH}: {shown(words)} are no names of programs")
    return words
