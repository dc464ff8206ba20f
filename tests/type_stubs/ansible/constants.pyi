# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this project uses of ansible.constants, typed."""

from collections.abc import Container, Sequence

_ACTION_INCLUDE_ROLE: Container[str]
DEFAULT_ASK_PASS: bool
DEFAULT_BECOME: bool
DEFAULT_BECOME_ASK_PASS: bool
DEFAULT_BECOME_USER: str
DEFAULT_HOST_LIST: Sequence[str]
DEFAULT_REMOTE_USER: str | None
DEFAULT_TRANSPORT: str
