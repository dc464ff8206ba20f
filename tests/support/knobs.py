# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declared knobs of all concerns, for tests of actions that belong to none."""

from __future__ import annotations

from typing import List

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import Knob


def every_knob() -> List[Knob]:
    """Of each concern, in their order."""
    return [knob for concern in CONCERNS.values() for knob in concern.knobs]
