# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fact modules' real main(): what they document is what they return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.modules import host_facts, network_facts, topology_facts

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of, names
from tests.unit.facts import large

Call = Callable[..., Dict[str, Any]]
PROJECT = Path(__file__).resolve().parents[3]
MODULES = (topology_facts, host_facts, network_facts)
TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


def is_of(name: str, value: Any) -> bool:
    """Whether the value has the type; for Python a bool is an int, for a reader of facts it isn't."""
    return isinstance(value, TYPES[name]) and (name == "bool") == isinstance(value, bool)


def conforms(value: Any, documented: Dict[str, Any], where: str) -> None:
    """Each value has its documented type or is null; nothing is left out, nothing is undocumented."""
    if value is None:
        return
    assert is_of(documented["type"], value), where
    contains = documented.get("contains")
    for item in value if documented["type"] == "list" else [value]:
        if contains is None:
            assert documented["type"] != "list" or is_of(documented["elements"], item), where
            continue
        assert set(item) == set(contains), where
        for name, inner in item.items():
            conforms(inner, contains[name], f"{where}.{name}")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize("name", names())
def test_the_result_is_what_is_documented(module: ModuleType, name: str, tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of(name))
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    result = call(module.main, host)
    assert result["changed"] is False
    conforms(result["ansible_facts"], yaml.safe_load(module.RETURN)["ansible_facts"], "ansible_facts")
    assert call(module.main, host, check=True)["ansible_facts"] == result["ansible_facts"]
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_the_result_of_a_large_host_is_small(tmp_path: Path, call: Call) -> None:
    result = call(topology_facts.main, FakeKernel(tmp_path, large.host(384)))
    assert result["ansible_facts"]["nearmetal"]["topology"]["cores_count"] == 192
    assert len(json.dumps(result)) < 64 * 1024


PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - nearmetal.ec2.topology_facts:
    - nearmetal.ec2.host_facts:
    - nearmetal.ec2.host_facts:
      delegate_to: other
      delegate_facts: true
    - ansible.builtin.copy:
        content: "{{ [ansible_facts.nearmetal | list, hostvars.other.ansible_facts.nearmetal | list] | to_json }}"
        dest: "{{ playbook_dir }}/known.json"
"""


def test_a_fact_module_keeps_what_another_found_on_the_same_host(tmp_path: Path) -> None:
    play = tmp_path / "play.yml"
    play.write_text(PLAY)
    python = f"ansible_python_interpreter={sys.executable}"
    subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,other", "-c", "local", "-e", python, str(play)],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / ".ansible" / "collections")},
    )
    known, other = json.loads((tmp_path / "known.json").read_text())
    assert sorted(known) == ["clock", "cpu", "platform", "topology"]
    assert sorted(other) == ["clock", "cpu", "platform"]
