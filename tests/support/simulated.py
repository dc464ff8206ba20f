# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of tests/hosts for ansible-playbook: each has an interpreter of its own that sees its own fake kernel."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, Dict

from tests.support.hosts import files_of, lay_out

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ROOT / ".cache" / "simulated"

# Accepts what Ansible and Mitogen give to sudo (-H -S -n -p PROMPT -u root -- COMMAND), but doesn't make anybody root.
_SUDO = """#!/bin/sh
while [ "$1" != "" ]; do
    case "$1" in
    -u | -p) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
NEARMETAL_BECAME=root exec "$@"
"""
# The agent runs an isolated Python without site-packages, which would find the machine that runs the test.
_PYTHON = """#!/bin/sh
while [ "$1" = -I ] || [ "$1" = -S ]; do shift; done
{given} exec {python} "$@"
"""


def simulate(folder: Path, kind: str, user: str = "") -> Dict[str, Any]:
    """Lay out a host below the folder; its inventory variables for a local connection, by default as who runs it."""
    root = folder / "root"
    lay_out(root, {"/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n", **files_of(kind)})
    COMPILED.mkdir(parents=True, exist_ok=True)
    variables: Dict[str, Any] = {
        "NEARMETAL_SIMULATED": root,
        "NEARMETAL_PYTHON": folder / "python",
        "NEARMETAL_COMPILED": COMPILED,
        "PYTHONPATH": f"{ROOT / 'tests/support/stand_in'}:{ROOT}",
    }
    if user:
        variables["NEARMETAL_USER"] = user
    given = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())
    _script(folder / "python", _PYTHON.format(given=given, python=shlex.quote(sys.executable)))
    _script(folder / "sudo", _SUDO)
    return {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(folder / "python"),
        "ansible_become_exe": str(folder / "sudo"),
    }


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
