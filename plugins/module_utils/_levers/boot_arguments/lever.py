# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever for kernel arguments: one owner, one record, one write for all concerns. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Iterable, Mapping, Tuple, Union

from ..._error import Damaged, NearmetalError
from ..._facts import boot, boot_shell
from ..._host import store
from ..._host.host import WritableHost
from ..._parse import boot_record, kernel_arguments
from ..._parse.boot_record import Record
from ..._plan import Value
from ..base import InOneGo, NearmetalValues
from .edited import Edited
from .generated import Generated
from .swap import UndoFailed

# Boot loader, as the facts name it → what writes arguments to its files.
Provider = Union[Edited, Generated]
PROVIDERS: Dict[str, Provider] = {
    **{name: Generated(name) for name in boot_shell.SHELL},
    **{name: Edited(name) for name in ("bls", "menu", "systemd_boot")},
}


class BootArguments(NearmetalValues, InOneGo):
    """`where` is an argument's name, the value the text that nearmetal adds for it; None adds nothing.

    Arguments that somebody else set are no values of this lever, and stay as they are.
    """

    scope = "boot"
    places = re.compile(kernel_arguments.NAME, re.ASCII)
    shared = True

    def remembered(self, value: Value) -> Value:
        return value.get("argument") if isinstance(value, Mapping) else value

    def fits(self, where: str, value: Value) -> bool:
        if value is None:
            return True
        names = kernel_arguments.names
        return isinstance(value, str) and names((where,)) <= names(kernel_arguments.checked_tokens(value))

    def read(self) -> Value:
        facts = boot.observe(self.host)
        if facts.damage:
            raise Damaged(facts.damage)
        return facts.arguments.get(self.where)

    def rehearse(self, values: Mapping[str, Value]) -> None:
        provider, _known, changing, _foreign = self._changing(values)
        provider.rehearse(self.host, changing)

    def _changing(self, values: Mapping[str, Value]) -> Tuple[Provider, Record, Record, Mapping[str, Tuple[str, ...]]]:
        """The provider, the record as it is and while these values are written, and where others have their texts."""
        known = boot.read_record(self.host)
        arguments = dict(known.arguments)
        for where, value in values.items():
            arguments.pop(where, None)
            text = self.remembered(value)
            if text is not None:
                arguments[where] = str(text)
        kernel_arguments.agree(kernel_arguments.Claim(where, text) for where, text in sorted(arguments.items()))
        provider = _provider(self.host)
        foreign = provider.foreign(self.host, known, arguments)
        return provider, known, Record(arguments, known.texts(), {**known.foreign, **foreign}), foreign

    def write_all(self, values: Mapping[str, Value]) -> None:
        if not values:
            return
        provider, known, changing, foreign = self._changing(values)
        _save(self.host, changing)
        try:
            provider.realise(self.host, changing)
        except UndoFailed:  # the record keeps what the files may hold, for the next run
            raise
        except NearmetalError:
            _save(self.host, known)
            raise
        _save(self.host, Record(changing.arguments, foreign={text: files for text, files in foreign.items() if files}))

    def obstacle(self) -> str:
        facts = boot.observe(self.host)
        if facts.provider is None:
            return f"{_unsupported(facts)}; set {self.where} in its configuration yourself"
        return PROVIDERS[facts.provider].obstacle(self.host)

    def temporary(self) -> Iterable[str]:
        facts = boot.observe(self.host)
        if facts.provider is None or self.host.exists(boot_record.PATH):
            return ()  # while nearmetal has an argument, the boot loader's old files are kept
        return PROVIDERS[facts.provider].copies(self.host)

    def pending(self, value: Value) -> str:
        facts = boot.observe(self.host)
        booted_with = facts.running_arguments(self.where)
        if value is None and facts.provider is not None:
            record = boot.read_record(self.host)
            if PROVIDERS[facts.provider].stays(self.host, record.arguments.get(self.where, ""), record):
                return ""
        if facts.booted(str(value)) if value is not None else not booted_with:
            return ""
        return f"the running kernel was booted with {booted_with or 'no ' + self.where}; the next boot changes that"


def _provider(host: WritableHost) -> Provider:
    facts = boot.observe(host)
    if facts.provider is None:
        raise NearmetalError(_unsupported(facts))
    return PROVIDERS[facts.provider]


def _unsupported(facts: boot.BootFacts) -> str:
    return f"nearmetal can't set kernel arguments with this boot loader ({facts.loader or 'none that it knows'})"


def _save(host: WritableHost, record: Record) -> None:
    if record.arguments or record.before is not None:
        store.replace_file(host, boot_record.PATH, boot_record.write(record).encode(), 0o600, 0o700)
    else:
        store.remove_file(host, boot_record.PATH)


LEVERS = (BootArguments("boot.arguments"),)
