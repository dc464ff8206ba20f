# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The concerns. PRIVATE to the collection."""

from ansible_collections.nearmetal.ec2.plugins.module_utils._payload import compile_once

compile_once()  # state modules import from here first
