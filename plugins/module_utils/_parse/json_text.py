# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that a stranger may have written. PRIVATE to the collection.

At its recursion limit Python 3.8 may end the process, without a word: when the garbage it happens to collect there has
finalizers. So the decoder never gets that far.
"""

from __future__ import annotations

import json
import re
from typing import Any

_DEEPEST = 64  # levels; nothing that nearmetal or EC2 writes has ten

_TOKEN = re.compile(r'\\.|["\[\]{}]', re.DOTALL)


def parse(text: str) -> Any:
    """What the text says. Raises ValueError when it is no JSON, or nested deeper than anything honest."""
    depth, quoted = 0, False
    for token in _TOKEN.findall(text):
        if token == '"':
            quoted = not quoted
        elif token in "[{" and not quoted:
            depth += 1
        elif token in "]}" and not quoted:
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError(f"nested deeper than {_DEEPEST} levels")
    return json.loads(text)
