# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuned by the previous version, the present one, the previous one again, then restored: nothing is left.

The previous version is the newest tag. While there is none it is a commit: the one that
NEARMETAL_PREVIOUS names, or the last one before block_storage, of whose journal it knows nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.support.simulated import simulate

PROJECT = Path(__file__).resolve().parents[3]
CAME_AFTER = "plugins/module_utils/_concerns/block_storage/__init__.py"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"

# What the workload sets by a concern that a previous version may not have: it would refuse the journal.
OF_MEMORY = ["memory.overcommit"]


def git(*words: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["git", "-C", str(PROJECT), *words], capture_output=True, check=False)


def previous() -> str:
    """The newest tag before this commit, or the commit that stands for it."""
    tag = git("describe", "--tags", "--abbrev=0", "HEAD~1").stdout.decode().strip()
    added = git("log", "--diff-filter=A", "--format=%H", "--", CAME_AFTER).stdout.decode().split()
    return tag or os.environ.get("NEARMETAL_PREVIOUS") or f"{added[-1] if added else 'HEAD'}~1"


@pytest.fixture
def versions(tmp_path: Path) -> Dict[str, Path]:
    """Where each version of the collection is installed."""
    place = tmp_path / "previous/ansible_collections/nearmetal/ec2"
    place.mkdir(parents=True)
    packed = git("archive", previous(), "plugins", "roles", "playbooks", "meta", "galaxy.yml")
    assert packed.returncode == 0, f"no {previous()} in this clone: fetch its history, or set NEARMETAL_PREVIOUS"
    subprocess.run(["tar", "-x", "-C", str(place)], input=packed.stdout, check=True)
    return {"previous": tmp_path / "previous", "present": PROJECT / ".ansible/collections"}


def unknown_to_previous(versions: Dict[str, Path]) -> List[str]:
    """What the previous version can't set."""
    concerns = versions["previous"] / "ansible_collections/nearmetal/ec2/plugins/module_utils/_concerns"
    return [] if (concerns / "memory.py").exists() else OF_MEMORY


def snapshot(root: Path) -> Dict[str, bytes]:
    """Every file but what an interrupt's delivery shows, which only the next interrupt moves."""
    left_out = ("lock", "effective_affinity_list")
    files = [path for path in root.rglob("*") if path.is_file() and path.name not in left_out]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def run(folder: Path, collections: Path, playbook: str, **variables: Any) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.json", f"nearmetal.ec2.{playbook}"]
    done = subprocess.run(
        [*command, "-e", json.dumps(variables)],
        cwd=folder,
        env={**clean, "ANSIBLE_COLLECTIONS_PATH": str(collections)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["xen_hvm", "metal"])
def test_there_and_back_and_there_again(kind: str, versions: Dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"h": simulate(tmp_path / "h", kind)}}}))
    root = tmp_path / "h/root"
    before = snapshot(root)
    concerns: Dict[str, Any] = {"hugepages": {"thp_defrag": "never"}}
    if not unknown_to_previous(versions):
        concerns["memory"] = {"swappiness": 1}  # which the workload of version 0.2.0 has, and no later one
    wanted = {"tune_workload": "in_memory_database", "tune_concerns": concerns}
    run(tmp_path, versions["previous"], "tune", **wanted)
    assert (root / CLOCK).read_text().strip() == "tsc"
    first = {name: text for name, text in snapshot(root).items() if name.startswith(("sys/", "proc/"))}
    run(tmp_path, versions["present"], "tune", **wanted, tune_exclude=unknown_to_previous(versions))
    second = {name: text for name, text in snapshot(root).items() if name.startswith(("sys/", "proc/"))}
    assert second == first, "both mean the same by the same words"
    run(tmp_path, versions["previous"], "tune", **wanted)
    run(tmp_path, versions["present"], "restore")
    after = snapshot(root)
    assert {name for name in after if after[name] != before.get(name)} == set()
    assert set(before) - set(after) == set()
