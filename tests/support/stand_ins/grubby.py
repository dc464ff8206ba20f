# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for grubby below a root of its own.

It does to entries and to grubenv what the program's manual says of --update-kernel=ALL:
an argument with the same name is replaced where it stands, a new one is appended,
--remove-args takes name=value exactly and a bare name with any value.
"""

import sys
from pathlib import Path

ROOT = Path(sys.argv[0]).resolve().parent.parent.parent


def changed(line: str, remove: "list[str]", add: "list[str]") -> str:
    words = line.split()
    for token in remove:
        words = [word for word in words if word != token and ("=" in token or word.split("=")[0] != token)]
    for token in add:
        same = [place for place, word in enumerate(words) if word.split("=")[0] == token.split("=")[0]]
        if same:
            words[same[0]] = token
            words = [word for place, word in enumerate(words) if place not in same[1:]]
        else:
            words.append(token)
    return " ".join(words)


def environment(remove: "list[str]", add: "list[str]") -> None:
    path = ROOT / "boot/grub2/grubenv"
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    lines = [
        "kernelopts=" + changed(line[len("kernelopts=") :], remove, add) if line.startswith("kernelopts=") else line
        for line in lines
    ]
    path.write_text(("# GRUB Environment Block\n" + "".join(line + "\n" for line in lines)).ljust(1024, "#"))


def main() -> None:
    remove, add = [], []
    for word in sys.argv[1:]:
        option, _equals, value = word.partition("=")
        if option == "--remove-args":
            remove = value.split()
        elif option == "--args":
            add = value.split()
        elif word != "--update-kernel=ALL":
            sys.exit(f"grubby: unknown option {word}")
    shared = False
    for path in sorted((ROOT / "boot/loader/entries").glob("*.conf")):
        lines = path.read_text().splitlines()
        for place, line in enumerate(lines):
            if line.startswith("options ") and "$kernelopts" in line:
                shared = True
            elif line.startswith("options "):
                lines[place] = "options " + changed(line[len("options ") :], remove, add)
        path.write_text("\n".join(lines) + "\n")
    if shared:
        environment(remove, add)


main()
