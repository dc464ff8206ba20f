# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this project uses of ansible.module_utils.common.yaml, typed."""

from typing import Any

def yaml_load(stream: str) -> Any: ...
