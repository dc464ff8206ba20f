# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/facts.md: its play runs on this machine, which has every fact that the tables name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "facts.md").read_text(encoding="utf-8")


def test_the_play_runs_and_the_host_has_each_fact_of_the_tables(tmp_path: Path) -> None:
    (play,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    keep = "{content: '{{ ansible_facts.nearmetal | to_json }}', dest: facts.json}"
    (tmp_path / "facts.yml").write_text(f"{play}    - ansible.builtin.copy: {keep}\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "-c", "local", "facts.yml"],
        cwd=tmp_path,
        env={**os.environ, "ANSIBLE_PYTHON_INTERPRETER": sys.executable, "ANSIBLE_STDOUT_CALLBACK": "default"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert f"{facts['topology']['cores_count']} cores on " in done.stdout
    rows = [row for row in PAGE.splitlines() if row.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`((?:topology|network|platform|clock|cpu)\.\w+)`", row)]
    assert len(names) > 20
    for name in names:
        room, _dot, fact = name.partition(".")
        assert fact in facts[room], name
