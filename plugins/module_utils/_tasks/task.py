# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task of Ansible does on a host. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple

from .._planning.options import Spec

Work = Callable[..., Dict[str, Any]]


class Task(NamedTuple):
    """The work of a module: it takes the host and checked options, and returns the result. May raise NearmetalError."""

    options: Spec
    run: Work
    forecast: Work  # in check mode
