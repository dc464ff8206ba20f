# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random runs of which each wants other knobs than the one before, on a host that somebody had set up by hand."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Run, plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS

from tests.support.fake_kernel import FakeKernel
from tests.support.sequences.wanted import drawn_options
from tests.support.sequences.world import World, files_below, removed

# Knobs of a concern of which one limits or resets another.
DEPENDENT: Mapping[str, Sequence[str]] = {
    "block_storage": ("scheduler", "nr_requests"),
    "cpu_power": ("governor", "energy_performance_preference"),
    "network_irq": ("policy", "queues", "rps"),
    "network_stack": ("rx_ring", "adaptive_rx", "rx_usecs", "mtu"),
}
# What somebody may have set: none is what the kernel chooses with another scheduler.
_BY_HAND: Mapping[str, Sequence[str]] = {
    "sys/block/*/queue/nr_requests": ("16", "60", "100"),
    "sys/block/*/queue/scheduler": ("none", "mq-deadline", "kyber"),
    "sys/devices/system/cpu/cpufreq/policy*/scaling_governor": ("performance", "powersave", "schedutil"),
    "sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference": ("power", "balance_power"),
    "proc/irq/*/smp_affinity_list": ("1", "3", "0-1"),
}
# nearmetal's own files, what the kernel chooses among CPUs, and what it remembers and shows nobody.
_OURS = ("var/lib/nearmetal", "run/nearmetal", "usr/local/lib/nearmetal")
_HIDDEN = ("effective_affinity_list", ".kept")


class Wish(NamedTuple):
    """What a run wants."""

    workloads: Tuple[str, ...]
    concerns: Mapping[str, Mapping[str, Any]]


def wishes(rng: random.Random, name: str) -> List[Wish]:
    """Four to six runs, of workloads or of one concern; on Xen most often of disks, whose queues are short there."""
    concern = rng.choice([*DEPENDENT, *["block_storage"] * (6 if name.startswith("xen") else 0)])
    found = [_wish(rng, concern, few=rng.choice([0.0, 0.15, 0.5])) for _run in range(rng.randint(4, 6))]
    return [wish for wish in found if wish.workloads or wish.concerns]


def _wish(rng: random.Random, concern: str, few: float) -> Wish:
    if rng.random() < 0.3:
        return Wish((rng.choice(sorted(WORKLOADS)),), {})
    # Where the kernel delivers an interrupt that may go to several CPUs, which xps follows, nobody knows before.
    spec = {name: rule for name, rule in CONCERNS[concern].options.items() if name not in ("xps", "interfaces")}
    options = drawn_options(rng, spec, few)
    for name in DEPENDENT[concern]:
        if rng.random() < 0.6:
            options.update(drawn_options(rng, {name: spec[name]}, few=1))
    return Wish((), {concern: options} if any("default" not in spec[name] for name in options) else {})


def failure(seed: int, folder: Path, name: str) -> str:
    """What is wrong with the runs of this seed on a host; empty when nothing is."""
    rng = random.Random(f"{seed} {name}")
    wanted, by_hand = wishes(rng, name), rng.random()
    host = _made(folder / "tuned", name, by_hand)
    before = _state(host)
    done: List[Wish] = []
    for number, wish in enumerate(wanted):
        if _trouble(_made(folder / f"fresh{number}", name, by_hand), wish):
            continue  # the host can't be as wanted, whatever ran before
        done.append(wish)
        story = f"seed {seed} on {name}: {' then '.join(map(str, done))}"
        trouble = _trouble(host, wish)
        if trouble:
            return f"{story}: {trouble}"
        left = [action for outcome in _tuned(host, wish, check=True).outcomes for action in outcome.plan.actions]
        if left:
            return f"{story}: a second run has more to do: {left}"
    restored = run(host, lambda known: restore_requests(None, known))
    after = _state(host)
    found = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    found += [outcome.error for outcome in restored.outcomes if outcome.error]
    removed(folder)
    return f"seed {seed} on {name}: {' then '.join(map(str, done))}: restore leaves {found[:4]}" if found else ""


def _made(folder: Path, name: str, by_hand: float) -> FakeKernel:
    host, rng = World(folder, name).host, random.Random(by_hand)
    for pattern, words in _BY_HAND.items() if by_hand < 0.5 else ():
        for place in sorted(Path(host.root).glob(pattern)):
            if rng.random() < 0.5:
                with suppress(OSError):
                    host.write_value(f"/{place.relative_to(host.root)}", f"{rng.choice(words)}\n")
    return host


def _tuned(host: FakeKernel, wish: Wish, check: bool = False) -> Run:
    common = {"owner_conflict": "take_over"}
    return (plan_run if check else run)(
        host, lambda known: tune_requests(wish.workloads, wish.concerns, common, known, prune=True)
    )


def _trouble(host: FakeKernel, wish: Wish) -> str:
    try:
        return "; ".join(outcome.error for outcome in _tuned(host, wish).outcomes if outcome.error)
    except NearmetalError as error:
        return str(error)


def _state(host: FakeKernel) -> Dict[str, bytes]:
    files = files_below(Path(host.root))
    return {path: data for path, data in files.items() if not path.startswith(_OURS) and not path.endswith(_HIDDEN)}
