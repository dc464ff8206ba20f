# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The devices plugged into a running host, kept in its folder, so that the next QEMU after a reset has them too."""

from __future__ import annotations

import json
import re
from pathlib import Path

_FILE = "plugged.json"
HUMAN = "human-monitor-command"
_PLUGS = ("netdev_add", "drive_add", "device_add")
# A command of QEMU's monitor with its arguments.
Command = tuple[str, dict[str, object]]


def commands(folder: Path) -> list[Command]:
    """The commands that plug it in, in their order."""
    try:
        plugged = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [(str(name), dict(arguments)) for name, arguments in plugged]


def forget(folder: Path) -> None:
    """Nothing is plugged into a host that starts as a shape."""
    (folder / _FILE).unlink(missing_ok=True)


def note(folder: Path, command: Command) -> None:
    """Keep a command that plugs something in; one that removes a device takes back what plugged it in."""
    verb, *rest = _words(command)
    kept = commands(folder)
    if verb in _PLUGS:
        kept.append(command)
    elif verb == "device_del":
        removed = rest[-1].removeprefix("id=")
        kept = _without(kept, removed)
    else:
        return
    beside = folder / f"{_FILE}.new"
    beside.write_text(json.dumps(kept), encoding="utf-8")
    beside.rename(folder / _FILE)


def _words(command: Command) -> list[str]:
    """A command of either of QEMU's monitors as words in the same form."""
    name, arguments = command
    if name == HUMAN:
        return re.split(r"[ ,]+", str(arguments["command-line"]).strip())
    return [name, *(f"{key}={value}" for key, value in arguments.items())]


def _without(kept: list[Command], removed: str) -> list[Command]:
    """Without a device, and without its drive: QEMU drops both. It keeps the back end of a NIC."""
    devices = [_words(command) for command in kept if _is(command, "device_add", removed)]
    drives = {word.removeprefix("drive=") for words in devices for word in words if word.startswith("drive=")}
    return [
        command
        for command in kept
        if not (_is(command, "device_add", removed) or any(_is(command, "drive_add", drive) for drive in drives))
    ]


def _is(command: Command, verb: str, name: str) -> bool:
    words = _words(command)
    return words[0] == verb and f"id={name}" in words
