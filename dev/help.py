# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the few commands of the Makefile, one line each."""

from __future__ import annotations

import re
import sys

from dev import ROOT


def main() -> int:
    """Print the targets that carry a `##` text, below their `##@` headings."""
    print("nearmetal.ec2: near bare-metal performance for Linux on EC2\n")
    for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines():
        heading = re.match(r"##@ (.*)", line)
        target = re.match(r"([a-z0-9-]+):.*?## (.*)", line)
        if heading:
            print(f"{heading[1]}")
        elif target:
            print(f"  make {target[1]:<8} {target[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
