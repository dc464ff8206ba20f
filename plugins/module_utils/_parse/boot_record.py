# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of nearmetal's own kernel arguments. PRIVATE to the collection.

Boot loaders keep nearmetal's arguments among all others, so the record says which these are,
and which files had an equal argument before: that one stays when nearmetal's is removed.
While a run changes them, the record also has the earlier texts, and those of runs
that were killed: a file may hold any of these.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from .._error import NearmetalError
from . import json_text, kernel_arguments

PATH = "/var/lib/nearmetal/boot_arguments.json"
VERSION = 1


class Record(NamedTuple):
    """The record's content."""

    arguments: Mapping[str, str] = {}  # argument → its wanted text
    before: Optional[Mapping[str, Tuple[str, ...]]] = None  # argument → earlier texts, while a run hasn't ended
    foreign: Mapping[str, Tuple[str, ...]] = {}  # a text of nearmetal → files that had it before

    def texts(self) -> Dict[str, Tuple[str, ...]]:
        """Argument → every text of nearmetal that a file may hold, the wanted text last."""
        texts = dict(self.before or {})
        for name, text in self.arguments.items():
            texts[name] = (*(earlier for earlier in texts.get(name, ()) if earlier != text), text)
        return texts

    def tokens(self) -> Tuple[str, ...]:
        """The tokens of all arguments, in their order on the command line."""
        return flat(self.arguments)


def flat(arguments: Mapping[str, str]) -> Tuple[str, ...]:
    """All tokens, sorted by argument, so that one set of arguments has one text."""
    return tuple(token for name in sorted(arguments) for token in kernel_arguments.checked_tokens(arguments[name]))


def write(record: Record) -> str:
    """The record as its file's text."""
    content: Dict[str, Any] = {"version": VERSION, "arguments": dict(record.arguments)}
    if record.before is not None:
        content["before"] = {name: list(texts) for name, texts in record.before.items()}
    if record.foreign:
        content["theirs"] = {text: list(paths) for text, paths in record.foreign.items()}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def parse(text: Optional[str]) -> Record:
    """The record in the file's text; empty when `text` is None, because there is no file.

    Raises NearmetalError when nearmetal can't have written it.
    """
    if text is None:
        return Record()
    try:
        content = json_text.parse(text)
        if content["version"] != VERSION:
            raise NearmetalError(f"it has version {content['version']!r:.300}, this nearmetal writes {VERSION}")
        before = content.get("before")
        return Record(
            {name: _text(name, text) for name, text in content["arguments"].items()},
            None if before is None else {name: _texts(name, texts) for name, texts in before.items()},
            {_text("theirs", text): _paths(paths) for text, paths in content.get("theirs", {}).items()},
        )
    except json_text.DAMAGE as error:
        raise NearmetalError(
            f"{PATH} isn't a record that this nearmetal wrote ({json_text.reason(error)}):"
            " look at it, and move it away to start over"
        ) from None


def _text(name: str, text: Any) -> str:
    if not re.fullmatch(kernel_arguments.NAME, name, re.ASCII) or not isinstance(text, str) or len(text) > 1024:
        raise NearmetalError("a name or a text that isn't a kernel argument")
    kernel_arguments.checked_tokens(text)
    return text


def _texts(name: str, raw: Any) -> Tuple[str, ...]:
    if not isinstance(raw, list) or not raw:
        raise NearmetalError("earlier texts that aren't a list of texts")
    return tuple(_text(name, text) for text in raw)


def _paths(raw: Any) -> Tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(path, str) for path in raw):
        raise NearmetalError("files that aren't a list of names")
    return tuple(raw)
