# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the locks again, with hashes: the newest versions that each .in file allows."""

from __future__ import annotations

import argparse
import subprocess
import sys

from dev import ROOT
from dev.programs import pythons

# Lock -> the oldest Python that installs it.
LOCKS = {
    "dev": "3.11",
    "newest": "3.12",
    "target": "3.8",
    "uv": "3.11",
    **{f"core-{core}": versions[-1] for core, versions in pythons.CORES.items()},
}


def main() -> int:
    """Write requirements/<name>.txt from requirements/<name>.in."""
    for name, python in LOCKS.items():
        print(f"  requirements/{name}.txt", flush=True)
        command = [str(ROOT / ".venv-uv/bin/uv"), "pip", "compile", "--quiet", "--universal", "--upgrade"]
        command += ["--generate-hashes", "--no-annotate", "--custom-compile-command", "make lock"]
        command += ["--python-version", python, "-o", f"requirements/{name}.txt", f"requirements/{name}.in"]
        subprocess.run(command, cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    argparse.ArgumentParser("python -m dev.lock", description=__doc__).parse_args()
    sys.exit(main())
