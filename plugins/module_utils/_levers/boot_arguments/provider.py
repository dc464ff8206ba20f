# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface to a kind of boot loader. PRIVATE to the collection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Dict, Iterable, List, Mapping, Tuple

from ..._error import NearmetalError
from ..._host.host import WritableHost
from ..._parse.boot_record import Record


class UndoFailed(NearmetalError):
    """The change failed, and so did undoing it: files of the boot loader may hold the new arguments."""


class Provider(ABC):
    """Writes arguments to the files of one kind of boot loader."""

    @abstractmethod
    def obstacle(self, host: WritableHost) -> str:
        """Why no arguments can be written, known before anything is changed; empty when they can."""

    @abstractmethod
    def realise(self, host: WritableHost, record: Record) -> None:
        """Make `record.arguments` nearmetal's only arguments on every kernel's command line.

        Raises NearmetalError with the files as they were, or UndoFailed.
        """

    @abstractmethod
    def rehearse(self, host: WritableHost, record: Record) -> None:
        """Judge what `realise` would make, and change nothing. Raises NearmetalError as it would."""

    @abstractmethod
    def copies(self, host: WritableHost) -> Iterable[str]:
        """Files of nearmetal beside those of the boot loader, to remove with the last of nearmetal's arguments."""

    def commands(self, host: WritableHost, before: str, after: str) -> List[str]:
        """Shell commands that put one argument's text in place of what nearmetal added; empty where it did and ends."""
        return []

    def foreign(self, host: WritableHost, known: Record, arguments: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
        """Text of each argument → the files where somebody else has it; empty where nearmetal has a file of its own."""
        return {}

    def stays(self, host: WritableHost, text: str, record: Record) -> bool:
        """Whether every kernel keeps this text when nearmetal removes its own, because somebody else has set it."""
        return False
