# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock source files of sysfs. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Optional, Tuple

# kernel/time/clocksource.c keeps a name in 32 bytes (CS_NAME_LEN).
_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,31}", re.ASCII)


def available(text: str) -> Tuple[str, ...]:
    """The names that available_clocksource offers, in its order (the kernel's rating).

    A blank before the newline is normal. What can't be a name is left out. Raises nothing.
    """
    return tuple(name for name in text.split() if _NAME.fullmatch(name))


def current(text: str) -> Optional[str]:
    """The one name in current_clocksource; None when there is not exactly one."""
    names = available(text)
    return names[0] if len(names) == 1 and len(text.split()) == 1 else None
