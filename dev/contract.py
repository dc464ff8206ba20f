# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the result contract into the RETURN of every state module, or (--check) say where it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

BEGIN = "# The result contract: written by dev/contract.py.\n"
END = "# End of the contract.\n"
PROJECT = Path(__file__).resolve().parent.parent


def block() -> str:
    """The contract as it stands in a module."""
    lines = (PROJECT / "dev/contract.yml").read_text().splitlines(keepends=True)
    return BEGIN + "".join(line for line in lines if not line.startswith(("#", "---"))) + END


def renewed(text: str) -> str:
    """A module's text with the present contract."""
    head, rest = text.split(BEGIN)
    return head + block() + rest.split(END)[1]


def main() -> int:
    """Renew every module that carries the contract; 1 when --check found a stale one."""
    stale = []
    for path in sorted((PROJECT / "plugins/modules").glob("*.py")):
        text = path.read_text()
        if BEGIN in text and renewed(text) != text:
            stale.append(path)
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(PROJECT)}: its contract is stale; run: python3 dev/contract.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(renewed(path.read_text()))
        print(f"renewed {path.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
