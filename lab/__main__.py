# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""python3 -m lab"""

from __future__ import annotations

import sys

from lab.cli import main

sys.exit(main())
