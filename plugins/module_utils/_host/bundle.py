# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent as one zip application, built from the sources that this process runs. PRIVATE to the collection.

Ansible's payload holds the command and all that it needs, because the modules that install the agent import it.
The sources are read back from the payload, so nothing else has to be sent to a host. The same sources give the
same bytes: sorted names, one time, no compiled code.
"""

from __future__ import annotations

import io
import re
import sys
import zipimport
from contextlib import suppress
from functools import lru_cache
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .._error import NearmetalError

UTILS = ("ansible_collections", "nearmetal", "ec2", "plugins", "module_utils")
_COMMAND = ("_agent", "command")
# The cache beside the agent has the same modules, compiled by one version of Python; another version goes without.
_MAIN = f"""import os
import sys

cache = os.path.join(os.path.dirname(sys.argv[0]), "nearmetal.{{}}.zip".format(sys.implementation.cache_tag))
if os.path.exists(cache):
    sys.path.insert(0, cache)

from {".".join(UTILS + _COMMAND)} import main

sys.exit(main(sys.argv[1:]))
"""
_UNSENT = "the module was sent without the agent that it installs on the host: report this bug"
_IMPORT = r"^ *from (\.+)([\w.]*) import (\([^)]*\)|[^\n(]+)"
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
def build(version: str) -> bytes:
    """The zip application, with its identity in its second line. Raises NearmetalError in a run of the cache."""
    agent = _running_agent()
    if agent and agent.is_compiled:
        raise NearmetalError("the agent was removed or replaced while it ran: run again")
    if agent:
        with open(agent.path, "rb") as stream:
            return stream.read()
    return _archive(b"#!/usr/bin/python3 -I\n" + mark(version), _sources(), packed=True)


def agent_of(root: str, version: str) -> bytes:
    """The agent of the host at `root`, if it is made of what runs here; else one that is built.

    The cache of the agent has no sources, so a run of it can't build one.
    """
    from . import installed, walk

    with suppress(NearmetalError):  # something else has its place
        descriptor = walk.open_file(root, f"{installed.FOLDER}/nearmetal.pyz")
        if descriptor is not None:
            with open(descriptor, "rb") as stream:
                data = stream.read() if walk.is_closed(descriptor) else b""
            match = _MARK.match(data)
            if match and match[2].decode("ascii") == identity(version):
                return data
    return build(version)


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


@lru_cache(maxsize=1)
def _sources() -> Dict[str, bytes]:
    """Name in the archive → content, sorted."""
    sources: Dict[Tuple[str, ...], bytes] = {}
    files_only: Set[Tuple[str, ...]] = set()  # modules that are no packages: what is imported from them is no module
    todo: List[Tuple[str, ...]] = [_COMMAND]
    while todo:
        module = todo.pop()
        if module in sources or module[:-1] in files_only:
            continue
        data = _read((*module[:-1], f"{module[-1]}.py"))
        if data is not None:
            files_only.add(module)
        else:
            data = _read((*module, "__init__.py"))
        if data is None:
            continue  # a name that a package defines
        sources[module] = data
        todo += [module[:length] for length in range(1, len(module))]
        todo += _imported(data.decode("utf-8"), module[:-1] if module in files_only else module)
    if _COMMAND not in sources:
        raise NearmetalError(_UNSENT)
    files = {"__main__.py": _MAIN.encode()}
    packages = {module[:length] for module in sources for length in range(len(module))}
    for package in packages:
        files["/".join((*UTILS, *package, "__init__.py"))] = sources.get(package, b"")
    for length in range(1, len(UTILS)):
        files["/".join((*UTILS[:length], "__init__.py"))] = b""
    for module, data in sources.items():
        if module not in packages:
            files["/".join((*UTILS, *module)) + ".py"] = data
    return dict(sorted(files.items()))


def _imported(text: str, package: Tuple[str, ...]) -> Iterator[Tuple[str, ...]]:
    """The modules of nearmetal that a source of this package may import: each imported name, and where it is from."""
    for dots, path, names in re.findall(_IMPORT, text, re.ASCII | re.MULTILINE):
        module = (*package[: len(package) + 1 - len(dots)], *filter(None, path.split(".")))
        for name in names.strip("()").split(","):
            words = name.split()
            if words:
                yield (*module, words[0])
        if module:
            yield module


def _read(parts: Tuple[str, ...]) -> Optional[bytes]:
    """A source as Python itself found it: in a file, in Ansible's payload, or sent by Mitogen."""
    import pkgutil

    package = ".".join(UTILS)
    try:
        data = pkgutil.get_data(package, "/".join(parts))
    except OSError:
        return None
    # Ansible's own importer has no error for an absent file, and Mitogen's gives no file at all.
    return _sent(parts) if data is None and pkgutil.get_data(package, "_error.py") is None else data


def _sent(parts: Tuple[str, ...]) -> Optional[bytes]:
    """A source of an importer that has no files; it knows those of the modules that were imported."""
    import importlib

    *folders, file = parts
    name = ".".join((*UTILS, *folders) if file == "__init__.py" else (*UTILS, *folders, file[: -len(".py")]))
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    if hasattr(module, "__path__") is not (file == "__init__.py"):
        return None
    get_source = getattr(module.__loader__, "get_source", None)
    source = get_source(name) if get_source else None
    if source is None:
        raise NearmetalError(_UNSENT)
    return str(source).encode("utf-8")


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
