# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An error as an operator reads it."""

from __future__ import annotations

import re
from typing import Any, Dict

from ansible_collections.nearmetal.ec2.plugins.module_utils._words import LONGEST_SENTENCE

# What an operator must ask back about: whose, and who.
UNCLEAR = re.compile(r"\b(?:anew|ours|theirs|told|whom)\b")


def require_sentence(result: Dict[str, Any], sentence: str) -> None:
    """Fail unless the result is a failure whose message begins so and is one sentence that can be printed."""
    assert result.get("failed"), result["msg"]
    assert result["msg"].startswith(sentence)
    assert len(result["msg"]) <= LONGEST_SENTENCE
    assert result["msg"].isprintable()
    assert max(map(len, result["msg"].split())) <= 300, "a value of more than 300 characters"
    assert not UNCLEAR.search(result["msg"])
    assert "exception" not in result
