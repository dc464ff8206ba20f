# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of modules that ask AWS about instances, which meta/runtime.yml sends here."""

from __future__ import annotations

from ..plugin_utils._ansible.by_agent import StateAction


class ActionModule(StateAction):
    """Says what only the controller can see."""
