# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of metrics that the unit exports, in a directory that an operator names. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Optional

from .._error import NearmetalError
from .._host import store
from .._host.host import WritableHost
from .._words import shown
from .stored import Stored

_OPTION = "directory"
# It becomes part of the unit's file: no blanks, no %, and no component of dots.
_PATH = r"(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}){1,16}"


def to_store(directory: Any) -> Stored:
    """What is stored for a directory. Raises NearmetalError for what is no path of a directory."""
    if not isinstance(directory, str) or not re.fullmatch(_PATH, directory, re.ASCII):
        raise NearmetalError(
            "metrics_directory must be the path of a directory, such as /var/lib/node_exporter/textfile_collector,"
            f" not {shown(directory)}"
        )
    return Stored({_OPTION: directory}, replan=True)


def directory_of(stored: Optional[Stored]) -> str:
    """The directory that is stored; empty without one. Raises NearmetalError for what nearmetal didn't store."""
    if stored is None or stored.damage:
        return ""
    directory: str = to_store(stored.options.get(_OPTION)).options[_OPTION]
    return directory


def require(host: WritableHost, directory: str) -> None:
    """Raise NearmetalError unless the directory is there, and nobody but root can write to it or its parents."""
    try:
        with store.directory(host, directory):
            return
    except FileNotFoundError:
        raise NearmetalError(
            f"{directory} doesn't exist: make the directory of node_exporter's textfile collector first, or name"
            " another in metrics_directory"
        ) from None


def path(directory: str) -> str:
    """The file in that directory."""
    return f"{directory}/{store.METRICS}"


def write(host: WritableHost, directory: str, text: str) -> None:
    """Replace the file; node_exporter, which isn't root, may read it."""
    require(host, directory)
    store.replace_file(host, path(directory), text.encode(), mode=0o644, folder_mode=0o755)


def remove(host: WritableHost, stored: Optional[Stored]) -> None:
    """Remove the file, and what a killed run left of it."""
    directory = directory_of(stored)
    if directory:
        store.remove_file(host, path(directory))
        store.remove_file(host, store.temporary_path(path(directory)))
