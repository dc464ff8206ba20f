# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile inputs: good ones, changed at random. An input follows from the seed and its number alone."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Callable, Dict, Iterator, List, Tuple

from tests.support import hosts
from tests.unit.recorded import machines

LONGEST = 20_000  # characters of a text
# Elements of formats, and values that numbers, names and encodings often get wrong.
PIECES = (
    *"0123456789abcdef,-:=.\"'\\ \t\n\r\0[]{}()<>#;/%$*?!|&~^@",
    "-1",
    "--1",
    "1e999",
    "0x",
    "0xffffffffffffffffffff",
    "4294967296",
    "18446744073709551616",
    "9" * 400,
    "-" * 400,
    "[" * 400,
    '{"a":' * 100,
    "NaN",
    "-Infinity",
    "true",
    "null",
    "\ud800",
    "\udcff",
    "\ufeff",
    "\u202e",
    "²",
    "٣",
    "é",
    "😀",
    "\x1b[2J",
    "\x85",
    "\u2028",
    "\r\n",
    "\n\n\n",
    " " * 100,
    "a" * 300,
    "../..",
    "/",
    "%s%n",
    "${a}",
    "$(a)",
    "cpu99999",
    "0-65535",
    "0-99999",
    "CPU0 CPU1",
    "ffffffff," * 40,
    "(null)",
    "<not supported>",
    "blkfront: xvda: barrier: enabled ",
    "Marking TSC unstable ",
    "### BEGIN /etc/grub.d/10_linux ###\n",
    "\nlinux /vmlinuz a ",
    "\ninitrd /i ",
    "\noptions $kernelopts ",
    "\nkernelopts=",
    "eth0-TxRx-0",
    "[Match]\nName=",
    "include=",
)


def _cut(random: Random, text: str) -> str:
    begin = random.randrange(len(text) + 1)
    return text[:begin] + text[begin + random.randrange(1, 40) :]


def _end(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def _put(random: Random, text: str) -> str:
    place = random.randrange(len(text) + 1)
    return text[:place] + random.choice(PIECES) * random.choice((1, 1, 1, 2, 50)) + text[place:]


def _flip(random: Random, text: str) -> str:
    place = random.randrange(len(text) + 1)
    return text[:place] + chr(random.choice((random.randrange(32), random.randrange(256), 0x20AC))) + text[place + 1 :]


def _repeat(random: Random, text: str) -> str:
    begin = random.randrange(len(text) + 1)
    part = text[begin : begin + random.randrange(1, 80)]
    return text[:begin] + part * random.choice((2, 3, 100)) + text[begin:]


def _swap(random: Random, text: str) -> str:
    lines = text.split("\n")
    random.shuffle(lines)
    return "\n".join(lines)


def _number(random: Random, text: str) -> str:
    """Replace a number by another one."""
    digits = [place for place, character in enumerate(text) if character.isdigit()]
    if not digits:
        return _put(random, text)
    place = random.choice(digits)
    return text[:place] + random.choice(PIECES[:1] + PIECES[-40:]) + text[place + 1 :]


_CHANGES: Tuple[Callable[[Random, str], str], ...] = (_cut, _end, _put, _put, _flip, _repeat, _swap, _number, _number)


def changed(random: Random, text: str) -> str:
    """The text with one to six changes."""
    text = text[:LONGEST]
    for _change in range(random.choice((1, 1, 2, 3, 6))):
        text = random.choice(_CHANGES)(random, text)[:LONGEST]
    return text


def recorded() -> List[str]:
    """Good texts: every file of the hosts of this repository, and of the recorded machines if they are present."""
    texts = {text for name in hosts.names() for text in hosts.files_of(name).values()}
    for key in machines.with_answer("expected-lsirq.json")[:40]:
        texts.update(_interrupts(key))
    return sorted(text[:LONGEST] for text in texts if text)


def _interrupts(key: str) -> Iterator[str]:
    place = machines.MACHINES / key / "interrupts"
    if place.is_file():
        yield place.read_text("utf-8", "replace")


def changed_capture(random: Random, capture: Dict[str, Any]) -> Dict[str, Any]:
    """The capture with some of its records changed, of every part."""
    found: Dict[str, Any] = json.loads(json.dumps(capture))
    for _change in range(random.choice((1, 2, 4, 8))):
        part = random.choice(
            ("files", "files", "files", "files", "links", "drivers", "wanted", "folders", "read_only", "")
        )
        _change_part(random, found, part)
    return found


def _change_part(random: Random, capture: Dict[str, Any], part: str) -> None:
    content = capture.get(part)
    if part == "" or not content or random.random() < 0.02:
        capture[random.choice(sorted(capture))] = _anything(random)
    elif isinstance(content, list):
        content[random.randrange(len(content))] = changed(random, str(random.choice(content)))
    elif isinstance(content, dict):
        key = random.choice(sorted(content))
        if part == "files" and random.random() < 0.3:
            _change_alike(random, content, key)
        elif random.random() < 0.05:
            content[changed(random, key)] = content.pop(key)
        else:
            content[key] = _changed_value(random, content[key])


def _change_alike(random: Random, files: Dict[str, Any], key: str) -> None:
    """All files of one name say the same wrong thing, as a kernel of another kind would."""
    name = key.rsplit("/", 1)[-1]
    for path in files:
        if path.rsplit("/", 1)[-1] == name and isinstance(files[path], str):
            files[path] = changed(random, files[path])


def _changed_value(random: Random, value: Any) -> Any:
    if random.random() < 0.05:
        return _anything(random)
    if isinstance(value, dict) and value:
        key = random.choice(sorted(value))
        return {**value, key: _changed_value(random, value[key])}
    if isinstance(value, list) and value:
        return [*value[1:], _changed_value(random, value[0])]
    if isinstance(value, str) and set(value) <= set("0123456789abcdef") and len(value) > 8:
        return _other_bytes(random, value)
    return changed(random, value) if isinstance(value, str) else _anything(random)


def _other_bytes(random: Random, digits: str) -> str:
    """An answer of the same length, of other bytes."""
    data = bytearray.fromhex(digits) if len(digits) % 2 == 0 else bytearray(digits.encode())
    for _byte in range(random.choice((1, 4, 64))):
        data[random.randrange(len(data))] = random.choice((0, 1, 255, random.randrange(256)))
    return data.hex()


def _anything(random: Random) -> Any:
    return random.choice(
        (
            None,
            True,
            False,
            0,
            -1,
            1.5,
            10**39,
            "",
            "auto",
            [],
            {},
            [[]],
            {"a": {"b": [1]}},
            "x" * 5000,
            random.choice(PIECES),
        )
    )
