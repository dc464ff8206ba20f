# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape that lab/README.md adds as its example."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[3] / "lab" / "README.md"
(TEXT,) = re.findall(r"^```toml\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
LINES = TEXT.splitlines()


def example(folder: Path) -> Path:
    """Write the example as a user who adds a shape would."""
    path = folder / "c5_large.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path
