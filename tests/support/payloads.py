# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables with which the programs of Ansible that tests start share packed and compiled modules."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

ROOT = Path(__file__).resolve().parents[2]
ON_START = ROOT / "tests" / "support" / "on_start"
COMPILED = ROOT / ".cache" / "simulated"


def variables(packed: Path) -> Dict[str, str]:
    """For the environment; the folder takes what is packed."""
    COMPILED.mkdir(parents=True, exist_ok=True)
    return {"PYTHONPATH": str(ON_START), "PAYLOADS_PACKED": str(packed), "PAYLOADS_COMPILED": str(COMPILED)}
