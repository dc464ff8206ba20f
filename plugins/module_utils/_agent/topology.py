# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal topology`: a picture of this host, or of a captured one before and after its tuning. PRIVATE."""

from __future__ import annotations

from typing import Optional

from .._facts.facts import DOMAINS, observe, project
from .._facts.host import Host
from .captured import read
from .captured_host import CapturedHost
from .output import print_error, print_line
from .picture.host import picture
from .replay import planned

_DRAWN = ("platform", "topology", "network", "block")


def draw(host: Host) -> int:
    """Print the picture of this host. Needs no root, and changes nothing."""
    print_line(picture([("now", observe(host, _DRAWN))]))
    return 0


def draw_from(path: str, workload: Optional[str]) -> int:
    """Print the picture of a captured host, and with workloads also as it would be after their tuning."""
    captured = read(path)
    failed = False
    host = CapturedHost(captured)
    panels = [("now", observe(host, DOMAINS if workload else _DRAWN))]
    if workload:
        chosen, done = planned(host, workload, {})
        actions = [action for outcome in done.outcomes if not outcome.error for action in outcome.plan.actions]
        panels.append((f"after {', '.join(chosen.names)}", project(panels[0][1], actions)))
        for outcome in done.outcomes:
            if outcome.error:
                print_error(f"{outcome.name}: {outcome.error}")
                failed = True
    print_line(picture(panels))
    return int(failed)
