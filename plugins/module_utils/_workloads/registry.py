# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workloads by name. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict

from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads import base, in_memory_database
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import Workload

WORKLOADS: Dict[str, Workload] = {
    "base": base.WORKLOAD,
    "in_memory_database": in_memory_database.WORKLOAD,
}
