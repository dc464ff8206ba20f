# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools for working on the collection: set-up, tests, gates, mutations, benchmarks.

Nothing here is part of what users install. `make` lists the commands.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
