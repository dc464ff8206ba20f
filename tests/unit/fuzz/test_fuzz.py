# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded inputs, changed at random: a parser answers or raises our error, and a capture is planned or refused.

Each failure that was found is a plain test elsewhere; CONTRIBUTING.md describes the long campaign.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.capture import capture
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS

from tests.support import hosts
from tests.support.fresh_host import fresh
from tests.unit.fuzz import campaign
from tests.unit.fuzz.inputs import changed, changed_capture, recorded

SHARES = 10
SHOWN = 20  # finds of a test
TEXTS = (campaign.INPUTS - campaign.CAPTURES) // SHARES
HOSTS = [name for name in hosts.names() if name != "container"]
# Wanted values of every kind on the captured host.
WANTED: Dict[str, Any] = {
    "clocksource": {"source": "auto", "persist": True},
    "hugepages": {"thp": "madvise", "pages": [{"size": "2M", "count": 16}]},
    "network_irq": {"policy": "spread"},
    "network_stack": {"somaxconn": 8192, "rings": {"rx": "max"}},
    "smt": {"threads": "disabled"},
}


@pytest.fixture(scope="session")
def texts() -> List[str]:
    """Good texts."""
    return recorded()


@pytest.mark.parametrize("share", range(SHARES))
def test_a_parser_answers_or_raises_our_error(share: int, texts: List[str]) -> None:
    finds = campaign.Finds()
    for number in range(share * TEXTS, (share + 1) * TEXTS):
        random = campaign.random_of(number)
        parser = campaign.ALL[number % len(campaign.ALL)]
        text = changed(random, random.choice(texts))
        with finds.of(number, f"{parser} {text!r}"):
            campaign.parse(parser, text)
    assert not finds.texts, "\n".join(finds.texts[:SHOWN])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_what_a_benchmark_s_tool_prints_is_read_or_refused(name: str) -> None:
    cases = campaign.printed(name)
    finds = campaign.Finds()
    for number in range(max(1, campaign.CAPTURES)):
        random = campaign.random_of(number)
        options, outputs = random.choice(cases)
        outputs = [changed(random, output) if random.random() < 0.7 else output for output in outputs]
        with finds.of(number, f"{name} {options} {outputs!r}"):
            campaign.read(name, options, outputs)
    assert not finds.texts, "\n".join(finds.texts[:SHOWN])


@pytest.mark.parametrize("name", HOSTS)
def test_a_capture_is_planned_or_refused(name: str, tmp_path: Path) -> None:
    whole = {**capture(fresh(tmp_path / "root", name)), "wanted": WANTED}
    finds = campaign.Finds()
    for count in range(max(1, campaign.CAPTURES // len(HOSTS))):
        number = campaign.INPUTS + HOSTS.index(name) + count * len(HOSTS)
        random = campaign.random_of(number)
        text = json.dumps(changed_capture(random, whole))
        text = changed(random, text) if random.random() < 0.02 else text
        with finds.of(number, f"capture of {name}"):
            campaign.plan(tmp_path / "host.json", text)
    assert not finds.texts, "\n".join(finds.texts[:SHOWN])
