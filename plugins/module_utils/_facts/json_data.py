# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts as plain JSON data, as modules return them. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping


def json_data(value: Any) -> Any:
    """A named tuple as a table of its fields, another tuple as a list."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: json_data(inner) for key, inner in value.items()}
    return [json_data(inner) for inner in value] if isinstance(value, (tuple, list)) else value
