# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache outside the checkout. An entry's key is made of everything that went into it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.error import LabError
from lab.progress import Progress


def root() -> Path:
    """$NEARMETAL_CACHE, else nearmetal in the user's cache directory."""
    own = os.environ.get("NEARMETAL_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(own).absolute() if own else Path(base or Path.home() / ".cache") / "nearmetal"


def key(*parts: object) -> str:
    """A short key of JSON values and of bytes."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:20]


def sources(*files: Path) -> bytes:
    """The content of source files and folders, with their names: code is a part of what it builds."""
    found: list[Path] = []
    for file in files:
        found += [path for path in sorted(file.rglob("*")) if path.is_file()] if file.is_dir() else [file]
    return b"".join(path.name.encode() + b"\0" + path.read_bytes() + b"\0" for path in found)


def obtain(kind: str, entry: str, build: Callable[[Path], None], progress: Progress) -> Path:
    """The folder of an entry, built on first use.

    It is built beside and renamed when complete, under a lock: a run that needs the same entry waits for it.
    """
    folder = root() / kind / entry
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(f"{kind}-{entry}", f"the {kind} that another run is building", progress):
        if folder.is_dir():
            return folder
        for stale in folder.parent.glob(f".{entry}.*"):
            shutil.rmtree(stale)
        beside = folder.parent / f".{entry}.{os.getpid()}"
        try:
            beside.mkdir(mode=0o700)
            build(beside)
            beside.rename(folder)
        except OSError as error:
            raise LabError(f"{folder.parent}: {error.strerror}; free space there or set NEARMETAL_CACHE") from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _locked(name: str, what: str, progress: Progress) -> Iterator[None]:
    locks = root() / "locks"
    locks.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (locks / name).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"waiting for {what}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
