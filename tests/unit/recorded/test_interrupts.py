# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/interrupts and /proc/irq of machines this project has never seen, against what lsirq says of them."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import interrupts as facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import interrupts

from tests.unit.recorded import machines

IRQ = re.compile(r"proc/interrupts|proc/irq/.*")


def text_of(key: str, root: Path) -> str:
    """The recording, whether it is packed alone or with the whole machine."""
    folder = machines.MACHINES / key
    if (folder / "interrupts.xz").exists():
        return lzma.decompress((folder / "interrupts.xz").read_bytes()).decode()
    if (folder / "interrupts").exists():
        return (folder / "interrupts").read_text()
    machines.lay_out(key, root, IRQ)
    return (root / "proc/interrupts").read_text()


@pytest.mark.parametrize("key", machines.with_answer("expected-lsirq.json"))
def test_totals_and_names(key: str, root: Path) -> None:
    answer: Dict[str, Any] = json.loads((machines.MACHINES / key / "expected-lsirq.json").read_text())
    parsed = {line.label: line for line in interrupts.parse(text_of(key, root)).lines}
    for expected in answer["interrupts"]:
        line = parsed[expected["irq"]]
        assert sum(line.counters) == expected["total"], line
        assert line.description == " ".join((expected["name"] or "").split())


@pytest.mark.parametrize("key", machines.with_answer("expected-irq-affinity.tsv"))
def test_affinity_of_each_interrupt(key: str, root: Path) -> None:
    machines.lay_out(key, root, IRQ)
    host = Host(str(root))
    rows = (machines.MACHINES / key / "expected-irq-affinity.tsv").read_text().splitlines()
    lines = {line.number: line for line in facts.observe(host).lines}
    for row in rows:
        if not row.startswith("#"):
            number, total, name, wanted, effective, _node = row.split("\t")
            line = lines[int(number)]
            assert (sum(line.counters), line.description) == (int(total), name)
            assert facts.affinity(host, int(number)) == facts.Affinity(wanted, effective)


@pytest.mark.parametrize("key", machines.with_answer("expected-irq-affinity.tsv"))
def test_queues_are_numbered_without_gaps(key: str, root: Path) -> None:
    parsed = interrupts.parse(text_of(key, root))
    found = facts.queues(parsed)
    assert found, "each of these machines has a NIC with queues"
    for vectors in found.values():
        for kind in {vector.kind for vector in vectors}:
            assert [vector.queue for vector in vectors if vector.kind == kind] == list(
                range(sum(vector.kind == kind for vector in vectors))
            )
