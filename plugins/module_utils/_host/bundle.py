# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent as one zip application, which is all that a host gets of this collection. PRIVATE to the collection.

The controller builds it from the collection's files, and an agent from itself. The same sources give the same bytes:
sorted names, one time, no compiled code.
"""

from __future__ import annotations

import io
import re
import sys
import zipimport
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Dict, NamedTuple, Optional

from .._error import NearmetalError

_PREFIX = "ansible_collections/nearmetal/ec2/plugins/module_utils/"
# The folders of which the agent is made, beside the files above them.
_FOLDERS = tuple(
    f"{_PREFIX}{name}/"
    for name in (
        *("_agent", "_concerns", "_engine", "_facts", "_host", "_levers", "_memory", "_parse", "_planning"),
        *("_programs", "_requests", "_tasks", "_workloads"),
    )
)
# What only the tasks that measure and `rollout` need is sent with them, and never installed.
_MEASURING = tuple(f"{_PREFIX}{name}/" for name in ("_benchmark", "_profile", "_prove", "_rollout"))
# The cache beside the agent has the same modules, compiled by one version of Python; another version goes without.
_MAIN = """import os
import sys

cache = os.path.join(os.path.dirname(sys.argv[0]), "nearmetal.{}.zip".format(sys.implementation.cache_tag))
if os.path.exists(cache):
    sys.path.insert(0, cache)

if sys.argv[1:] == ["task"]:
    from ansible_collections.nearmetal.ec2.plugins.module_utils._tasks.order import main
else:
    from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main

sys.exit(main())
"""
_MARK = re.compile(rb"(#![^\n]*\n)?# nearmetal\.ec2 agent ([ -~]*)\n")  # compiled code begins with it
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can have


@lru_cache(maxsize=2)
def identity(version: str) -> str:
    """Version and digest of the agent that `build` would make; in the agent those of itself."""
    agent = _running_agent()
    if agent:
        return agent.identity
    import hashlib  # with zipfile a sixth of what a plan imports, and the agent itself needs neither

    digest = hashlib.sha256()
    for name, data in _sources().items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return f"{version} {digest.hexdigest()}"


@lru_cache(maxsize=2)
def build(version: str, measuring: bool = False) -> bytes:
    """The zip application, with its identity in its second line; `measuring` adds what `prove` and others need.

    Raises NearmetalError in a run of the cache, which has no sources.
    """
    return _archive(b"#!/usr/bin/python3 -I\n" + mark(version), _sources(measuring), packed=True)


def agent_of(root: str, version: str) -> bytes:
    """The agent of the host at `root`, if it is made of what runs here; else one that is built, as by `build`."""
    from . import installed

    descriptor = installed.opened_file(installed.AGENT, mark(version).decode(), root)
    if descriptor is None:
        return build(version)
    with open(descriptor, "rb") as stream:
        return stream.read()


def mark(version: str) -> bytes:
    """The line by which the agent and its cache say what they are built from."""
    return f"# nearmetal.ec2 agent {identity(version)}\n".encode()


@lru_cache(maxsize=2)
def compiled(version: str) -> bytes:
    """The cache for the Python that runs this, which halves the time of a plan. It begins with the mark."""
    import importlib.util
    import marshal

    flags = (1).to_bytes(4, "little")  # by hash, never compared with a source (PEP 552)
    head = importlib.util.MAGIC_NUMBER + flags + bytes(8)
    files = {}
    for name, data in _sources().items():
        code = compile(data, name, "exec", dont_inherit=True, optimize=2)
        files[f"{name}c"] = head + marshal.dumps(code)
    return _archive(mark(version), files, packed=False)  # Python reads each module twice, and would unpack it twice


def _archive(head: bytes, files: Dict[str, bytes], packed: bool) -> bytes:
    import zipfile

    compression = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    stream = io.BytesIO()
    stream.write(head)
    with zipfile.ZipFile(stream, "a", compression) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = compression
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return stream.getvalue()


def _sources(measuring: bool = False) -> Dict[str, bytes]:
    """Name in the archive → content, sorted."""
    files = _files()
    return {name: files[name] for name in sorted(files) if measuring or not name.startswith(_MEASURING)}


@lru_cache(maxsize=1)
def _files() -> Dict[str, bytes]:
    agent = _running_agent()
    if agent and agent.is_compiled:
        raise NearmetalError("the agent was removed or replaced while it ran: run again")
    if agent:
        import zipfile

        with zipfile.ZipFile(agent.path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    files = {"__main__.py": _MAIN.encode()}
    files.update((f"{package}/__init__.py", b"") for package in map(str, PurePath(_PREFIX).parents) if package != ".")
    utils = Path(__file__).parents[1]
    for place in utils.iterdir():  # raises an error where there are no files
        for path in place.rglob("*.py") if place.is_dir() else [place]:
            name = _PREFIX + path.relative_to(utils).as_posix()
            if path == place or name.startswith((*_FOLDERS, *_MEASURING)):
                files[name] = path.read_bytes()
    return files


class _Agent(NamedTuple):
    """The agent that this process runs."""

    path: str
    identity: str
    is_compiled: bool  # the cache, which has no sources


def _running_agent() -> Optional[_Agent]:
    """The agent that this process runs; None for a module."""
    loader = getattr(sys.modules.get("__main__"), "__loader__", None)
    if not isinstance(loader, zipimport.zipimporter):
        return None
    with open(loader.archive, "rb") as stream:
        head = stream.read(256)
    match = _MARK.match(head)
    return _Agent(loader.archive, match[2].decode("ascii"), match[1] is None) if match else None
