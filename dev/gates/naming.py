# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on where unit tests are."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Iterator

from dev.gates import Copy

UNIT = "tests/unit/"
# Subjects that no single file has: CONTRIBUTING.md says what each is.
SUBJECTS = ("fuzz", "properties", "recorded", "reports", "sequences")
# Where a folder of tests finds the folder of its name, and where its single files are.
ROOMS = ("plugins/module_utils/_{}/", "plugins/plugin_utils/_{}/", "plugins/{}/", "{}/")
LOOSE = ("plugins/module_utils/", "plugins/plugin_utils/", "")
POINTER = re.compile(r"\btests/unit/[\w/]+\.(?:py|json)\b")


def tests_have_their_place(copy: Copy) -> "list[str]":
    """A unit test is tests/unit/<folder>/test_<file>.py, or is in a folder with the name of that file."""
    return [
        f"{name}: named after no file"
        for name in copy.having(".py", below=UNIT)
        if PurePath(name).name.startswith("test_") and not _has_its_place(copy, name[len(UNIT) : -len(".py")])
    ]


def _has_its_place(copy: Copy, name: str) -> bool:
    words = [word[len("test_") :] if word.startswith("test_") else word for word in name.split("/")]
    # A file beside the rooms, such as ansible.cfg, may have the name of a room: the room's tests are of its own files.
    places = {place for room in ROOMS for place in _in(copy, room.format(words[0]))} if words[1:] else set()
    return words[0] in SUBJECTS or (words[1] in places if places else words[0] in set(_loose(copy)))


def _in(copy: Copy, folder: str) -> "Iterator[str]":
    """The files and folders in a folder, without what follows their names."""
    return (_stem(name[len(folder) :].split("/")[0]) for name in copy.having("", below=folder))


def _loose(copy: Copy) -> "Iterator[str]":
    """The files, and no folders, beside the rooms."""
    for folder in LOOSE:
        rest = (name[len(folder) :] for name in copy.having("", below=folder))
        yield from (_stem(name) for name in rest if "/" not in name)


def _stem(name: str) -> str:
    return name.lstrip("_").split(".")[0].lower()


def tests_that_are_named_exist(copy: Copy) -> "list[str]":
    """A page, a seeded fault and a comment name unit tests that are there."""
    known = set(copy.names)
    return [
        f"{name}:{number}: {pointer} isn't there"
        for name in [*copy.having(".md", ".toml", ".yml"), *copy.having(".py", below="dev/")]
        for number, line in enumerate(copy.text(name).splitlines(), 1)
        for pointer in POINTER.findall(line)
        if pointer not in known
    ]
