# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command where no agent is installed: python3 -m …module_utils._agent plan --from FILE. PRIVATE."""

from __future__ import annotations

import sys

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command

if __name__ == "__main__":
    raise SystemExit(command.main(sys.argv[1:]))
