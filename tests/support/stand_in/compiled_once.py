# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps compiled sources: most of a run of the agent is compiling it, which is the same each time.

The compiled code is in the folder NEARMETAL_COMPILED, under a name derived from the source.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import zipimport
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["NEARMETAL_COMPILED"])
_compile_source = vars(zipimport)["_compile_source"]


def _compile_once(path: str, source: bytes) -> Any:
    name = f"{sys.implementation.cache_tag}-{hashlib.sha256(source).hexdigest()}"
    kept = FOLDER / name
    if kept.exists():
        return marshal.loads(kept.read_bytes())
    code = _compile_source(path, source)
    fresh = kept.with_suffix(f".{os.getpid()}")
    try:
        fresh.write_bytes(marshal.dumps(code))
        fresh.replace(kept)
    except PermissionError:  # a user who is not root
        pass
    return code


def install() -> None:
    """From now on each source in a zip file is compiled once."""
    vars(zipimport)["_compile_source"] = _compile_once
