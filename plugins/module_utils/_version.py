# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's version, as galaxy.yml has it, for what stays on a host. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Optional, Tuple

VERSION = "0.2.0"

_FORM = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(?:[-+][A-Za-z0-9.+-]{1,32})?", re.ASCII)


def numbers(text: object) -> Optional[Tuple[int, int, int]]:
    """The three numbers of a version, to be compared; None for anything else."""
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
