# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what follows from the modules' documentation, the suites and docs/lab_runs.csv: `make generate`."""

from __future__ import annotations

import argparse

from dev import ROOT
from dev.gates import Copy
from dev.generate.files import stale


def main() -> None:
    """Write each file that is stale, and name it."""
    for name, text in stale(Copy(ROOT)).items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {name}")


if __name__ == "__main__":
    argparse.ArgumentParser("python -m dev.generate", description=__doc__).parse_args()
    main()
