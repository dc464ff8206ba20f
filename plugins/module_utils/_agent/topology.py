# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal topology`: a picture of this host, or of a captured one before and after its tuning. PRIVATE."""

from __future__ import annotations

from typing import List, Optional, Tuple

from .._facts.facts import DOMAINS, Facts, observe, project
from .._facts.host import Host
from .._facts.layout import layout, queue_map
from .._facts.platform import PlatformFacts
from .captured import CapturedHost, read
from .output import print_error, print_line
from .picture.drawing import stack, svg, text
from .picture.host import LOOKS, panels
from .picture.scene import scene_of, sentences, summary
from .replay import planned

_DRAWN = ("platform", "topology", "network", "block")


def show(host: Host, path: Optional[str], workload: Optional[str], in_words: bool) -> int:
    """Print the picture of this host, or of a captured one, or the same in words. Needs no root, and changes nothing.

    With workloads a captured host is also shown as it would be after their tuning.
    """
    failed = False
    captured = CapturedHost(read(path)) if path else None
    states = [("now", observe(captured or host, DOMAINS if workload else _DRAWN))]
    if captured and workload:
        chosen, done = planned(captured, workload, {})
        actions = [action for outcome in done.outcomes if not outcome.error for action in outcome.plan.actions]
        states.append((f"after {', '.join(chosen.names)}", project(states[0][1], actions)))
        for outcome in done.outcomes:
            if outcome.error:
                print_error(f"{outcome.name}: {outcome.error}")
                failed = True
    print_line(_picture(states, in_words))
    return int(failed)


def _picture(states: List[Tuple[str, Facts]], in_words: bool) -> str:
    """The host in one state or several, each with its name. Their topology and platform must be observed."""
    scenes = [(name, scene_of(layout(facts), queue_map(facts, facts))) for name, facts in states]
    title, counts = _title(states[0][1].platform), summary(scenes[0][1])
    if in_words:
        lines = [line for name, scene in scenes for line in (f"{name}:", *(f"  {text}" for text in sentences(scene)))]
        return "\n".join([title, counts, *lines, "To draw it: nearmetal topology > host.svg"])
    drawn = stack([text(title, "title"), text(counts, "muted"), *panels(scenes)], "page")
    description = " ".join(f"{name}: {'. '.join(sentences(scene))}." for name, scene in scenes)
    return svg(title, f"{counts}. {description}", drawn, LOOKS)


def _title(known: Optional[PlatformFacts]) -> str:
    """The type of the host, or its class, with its architecture and kernel."""
    if known is None:
        return "Topology of a host"
    kind = known.instance_type or f"a host of class {known.host_class}"
    return " · ".join(filter(None, (f"Topology of {kind}", known.architecture, known.kernel)))
