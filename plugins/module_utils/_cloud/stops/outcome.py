# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the instances that a run was to change. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Sequence

from .stop_mark import TAG


@dataclass
class Outcome:
    """What became of the instances. One that was changed and has a failure too is in both."""

    done: List[str] = field(default_factory=list)
    failed: Dict[str, str] = field(default_factory=dict)
    left_stopped: List[str] = field(default_factory=list)  # ran before, and are not known to run now

    def fail(self, ids: Sequence[str], reason: str) -> None:
        """Note what else went wrong for these instances."""
        for instance_id in ids:
            self.failed[instance_id] = f"{self.failed[instance_id]}; {reason}" if instance_id in self.failed else reason

    def found_stopped(self, instance_id: str, state: str) -> None:
        """An instance that was to be stopped already is: by a run whose stop AWS hadn't shown, or by a person."""
        self.left_stopped.append(instance_id)
        reason = (
            f"it was running at the beginning of this run and is {state} now: an earlier run or somebody stopped it;"
            f" to keep it stopped, delete its tag {TAG}"
        )
        self.fail([instance_id], reason)
