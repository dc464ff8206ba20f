# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each file that a managed host gets can be imported there, whatever Python the host has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COLLECTIONS = ROOT / ".ansible" / "collections"
IMPORT = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"


def test_every_module_and_what_it_imports(tmp_path: Path) -> None:
    """With the controller's ansible-core, of which a payload has what its module imports, and nothing else."""
    (ansible,) = ROOT.glob(".venv/lib/python3.*/site-packages/ansible")
    (tmp_path / "ansible").symlink_to(ansible)
    names = [
        "ansible_collections.nearmetal.ec2." + path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for folder in ("modules", "module_utils")
        for path in sorted((ROOT / "plugins" / folder).rglob("*.py"))
        if path.stem != "__main__"
    ]
    assert len(names) > 200
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, *names],
        env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": f"{COLLECTIONS}{os.pathsep}{tmp_path}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
