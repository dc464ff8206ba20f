# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded machines: their folder, their layout, and the answers of other tools."""

from __future__ import annotations

import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any, Dict, List, Pattern

PROJECT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("NEARMETAL_SHARED", str(PROJECT.parent / "shared")))
MACHINES = SHARED / "data" / "machines"

# The files that facts may read; the others, nine of ten, are never laid out, because that would take minutes.
_CPU = r"sys/devices/system/cpu/cpu[0-9]+/"
_CACHE = r"cache/index[0-9]+/(?:level|type|id|shared_cpu_list|shared_cpu_map)"
_TOPOLOGY = (
    r"topology/(?:(?:thread|core)_siblings|(?:core|package)_cpus)(?:_list)?|topology/(?:core|physical_package)_id"
)
TOPOLOGY = re.compile(
    r"proc/meminfo|sys/devices/system/cpu/[a-z]+"
    r"|{}(?:online|{}|{}|l[12]_[a-z_]+)"
    r"|sys/devices/system/node/(?:[a-z_]+|node[0-9]+/(?:cpulist|cpumap|distance|meminfo|cpu[0-9]+))".format(
        _CPU, _CACHE, _TOPOLOGY
    )
)
PLATFORM = re.compile(r"proc/(?:cpuinfo|version|sys/.*)|sys/class/dmi/.*|sys/devices/virtual/dmi/.*|sys/hypervisor/.*")


def names() -> List[str]:
    """<source>/<name> of each recording that has an answer about topology; empty where the folder is absent."""
    return sorted(path.parent.relative_to(MACHINES).as_posix() for path in MACHINES.glob("*/*/expected.json"))


def with_answer(name: str) -> List[str]:
    """<source>/<name> of each recording that has an answer file of that name."""
    return sorted(path.parent.relative_to(MACHINES).as_posix() for path in MACHINES.glob("*/*/" + name))


def answer(key: str) -> Dict[str, Any]:
    """The output of hwloc and lscpu about the machine."""
    found: Dict[str, Any] = json.loads((MACHINES / key / "expected.json").read_text(encoding="utf-8"))
    return found


def lay_out(key: str, root: Path, parts: Pattern[str]) -> None:
    """Unpack these parts. Our own loop: tarfile's filter is missing in some Pythons we run on."""
    made = {""}
    with tarfile.open(MACHINES / key / "root.tar.xz") as packed:
        for member in packed:
            name = member.name[2:] if member.name.startswith("./") else member.name
            if not parts.fullmatch(name):
                continue
            folder = os.path.dirname(name)
            if folder not in made:
                (root / folder).mkdir(parents=True, exist_ok=True)
                made.add(folder)
            content = packed.extractfile(member) if member.isreg() else None
            if member.isdir():
                (root / name).mkdir(exist_ok=True)
            elif member.issym():
                (root / name).symlink_to(member.linkname)
            elif content is not None:
                with open("{}/{}".format(root, name), "wb") as stream:
                    stream.write(content.read())
