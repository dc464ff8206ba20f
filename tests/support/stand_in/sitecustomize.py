# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read by the Python of a simulated host when it starts. Python would go on after an error, as this very machine."""

from __future__ import annotations

from importlib import import_module

try:
    import_module("simulated_host")
except Exception as error:
    raise SystemExit(f"without its simulated host this Python would tune this machine: {error!r}") from error
