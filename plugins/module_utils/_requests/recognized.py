# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs by which `auto` chose workloads, kept on the host between runs. PRIVATE to the collection.

A program that is down for a while doesn't change the choice: its workload applies until somebody names others.
"""

from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple

from .._concerns.registry import CONCERNS
from .._error import NearmetalError
from .._host.host import WritableHost
from .._memory.stored import CHOICE, PATH, Stored, StoredWanted
from .._plan import Plan
from .._planning.concern import Concern
from .._planning.knob import Knob
from .._planning.programs import SIGNS
from .._words import shown

KNOB = "workload"
_PROGRAMS = "programs"

# It lets the finding of the choice be excluded and waived like any other.
_CONCERN = Concern(CHOICE, {}, (), lambda _facts, _wanted: Plan(), knobs=(Knob(CHOICE, KNOB),))


def with_choice() -> Dict[str, Concern]:
    """The concerns of the registry, and the choice of workloads."""
    return {**CONCERNS, CHOICE: _CONCERN}


def recognized_before(host: WritableHost) -> Tuple[str, ...]:
    """The programs by which earlier runs chose workloads, in the order of SIGNS.

    Raises NearmetalError for a program that this version doesn't recognize.
    """
    stored = StoredWanted(host).get(CHOICE)
    if stored is not None and stored.damage:
        raise NearmetalError(stored.damage)
    programs = stored.options.get(_PROGRAMS) if stored is not None else ()
    if not isinstance(programs, (list, tuple)) or any(program not in SIGNS for program in programs):
        raise NearmetalError(
            f"{PATH}: {shown(programs)} aren't programs that auto recognizes in this version; name the host's workload"
            " in tune_workload"
        )
    return tuple(program for program in SIGNS if program in programs)


def stored_choice(programs: Sequence[str]) -> Optional[Stored]:
    """What is stored for a choice by these programs; None without any."""
    return Stored({_PROGRAMS: list(programs)}) if programs else None
