# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schemas of what nearmetal writes, as its own tests ask for them."""

from __future__ import annotations

from typing import Any


def strict(schema: Any) -> Any:
    """The schema in which no object may have a key that isn't described."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: strict(value) for name, value in schema.items()}
    return {"additionalProperties": False, **inner} if "properties" in schema and "type" in schema else inner
