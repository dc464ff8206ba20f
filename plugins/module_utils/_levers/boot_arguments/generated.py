# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot loaders whose grub.cfg a program generates from shell files. PRIVATE to the collection."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Dict, Iterable, Mapping, Tuple

from ..._error import NearmetalError
from ..._facts import boot, boot_shell
from ..._facts.boot_judge import judge, judge_shell
from ..._host import store
from ..._host.host import WritableHost
from ..._parse import boot_record
from ..._parse.boot_record import Record
from . import swap
from .swap import UndoFailed


class Generated:
    """Writes the shell file, generates a grub.cfg beside the old one, checks it, and renames it.

    update-grub isn't used: as grub-mkconfig -o it overwrites the only good file before the new one is checked.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.shell, self.make, self.checker, _by_hand = boot_shell.SHELL[name]

    def obstacle(self, host: WritableHost) -> str:
        changed = boot_shell.obstacle(self.name, host.text(self.shell), recorded=host.exists(boot_record.PATH))
        if changed:
            return changed
        for program in (self.make, self.checker):
            if boot.tool(host, program) is None:
                return f"{program} isn't installed: without it no new boot configuration can be made or checked"
        config = boot.config_path(host, self.name)
        for path in (os.path.dirname(config), "/etc/default"):
            if not host.writable(path):
                return f"{path} is read-only, so kernel arguments can't be set"
        if not host.exists(config):
            return f"{config} is missing: mount its file system, or make it with {self.make}, and run again"
        try:
            boot_shell.with_arguments(self.name, swap.text_of(host, self.shell), ())
        except NearmetalError as error:
            return str(error)
        return ""

    def copies(self, host: WritableHost) -> Iterable[str]:
        path = boot.config_path(host, self.name)
        made = f"{path}.nearmetal-new"
        return (
            made,
            store.temporary_path(made),
            f"{path}.nearmetal-old",
            store.temporary_path(self.shell),
            swap.second_path(self.shell),
        )

    def foreign(self, host: WritableHost, known: Record, arguments: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
        """None: nearmetal has a file or a block of its own."""
        return {}

    def stays(self, host: WritableHost, text: str, record: Record) -> bool:
        return False

    def rehearse(self, host: WritableHost, record: Record) -> None:
        judge_shell(host, self.name, record)

    def realise(self, host: WritableHost, record: Record) -> None:
        config = boot.config_path(host, self.name)
        # `text_of` is for files that we write, as the shell file is; grub.cfg may be large, or a link.
        old_shell, old_config = swap.text_of(host, self.shell), host.raw(config)
        text = boot_shell.with_arguments(self.name, old_shell, record.tokens())
        swap.keep(host, self.shell)
        try:
            if text is None:
                store.remove_file(host, self.shell)
            else:
                swap.put(host, self.shell, text, host.mode(self.shell))
            self._generate(host, record.arguments)
        except NearmetalError as error:
            with suppress(NearmetalError):
                if old_shell is None:
                    store.remove_file(host, self.shell)
                else:
                    swap.rename_back(host, self.shell, swap.second_path(self.shell))
            changed = [] if swap.is_unchanged(host, self.shell, old_shell) else [self.shell]
            changed += [] if host.raw(config) == old_config else [config]
            if changed:
                raise UndoFailed(f"{error}; and {', '.join(changed)} could not be restored") from None
            raise
        with suppress(NearmetalError):  # the change is complete; `copies` names files that stay
            store.remove_file(host, swap.second_path(self.shell))

    def _generate(self, host: WritableHost, arguments: Mapping[str, str]) -> None:
        path = boot.config_path(host, self.name)
        beside = f"{path}.nearmetal-new"
        try:
            made = host.output([str(boot.tool(host, self.make))])
            config = made.decode("utf-8", "replace")
            judge(host, self.name, boot.read_entries(host, self.name, {path: config}), arguments, config)
            store.replace_file(host, beside, made, mode=host.mode(path), folder_mode=0o755)
            host.command([str(boot.tool(host, self.checker)), beside])
            swap.publish(host, path, beside, keep_old=bool(arguments))
        except NearmetalError:
            with suppress(NearmetalError):  # a later run removes it
                store.remove_file(host, beside)
            raise
