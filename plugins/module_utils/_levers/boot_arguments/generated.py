# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot loaders whose grub.cfg a program generates from shell files. PRIVATE to the collection."""

from __future__ import annotations

import os
from abc import abstractmethod
from contextlib import suppress
from typing import Iterable, List, Mapping, Tuple

from ..._error import NearmetalError
from ..._facts import boot
from ..._facts.boot_judge import judge, judge_arguments, judge_shell
from ..._host import store
from ..._host.host import WritableHost
from ..._parse import kernel_arguments
from ..._parse.boot_record import Record
from ..commands import quoted
from . import swap
from .provider import Provider, UndoFailed


class Generated(Provider):
    """Writes the shell file, generates a grub.cfg beside the old one, checks it, and renames it."""

    name = ""
    shell = ""  # the shell file that holds our arguments
    make = ""  # the program that prints a grub.cfg
    check = ""  # the program that checks one
    by_hand = ""  # the shell file to which a person adds an argument

    @abstractmethod
    def defaults(self, host: WritableHost, tokens: Tuple[str, ...]) -> "Tuple[str, str | None]":
        """The path of `shell`, and its new text; None removes it.

        Raises NearmetalError when somebody changed nearmetal's text in it.
        """

    def obstacle(self, host: WritableHost) -> str:
        for program in (self.make, self.check):
            if boot.tool(host, program) is None:
                return f"{program} isn't installed: without it no new boot configuration can be made or checked"
        config = boot.config_path(host, self.name)
        for path in (os.path.dirname(config), "/etc/default"):
            if not host.writable(path):
                return f"{path} is read-only, so kernel arguments can't be set"
        if not host.exists(config):
            return f"{config} is missing: mount its file system, or make it with {self.make}, and run again"
        try:
            self.defaults(host, ())
        except NearmetalError as error:
            return str(error)
        return ""

    def commands(self, host: WritableHost, before: str, after: str) -> List[str]:
        if before or not after:
            return []  # only nearmetal's own text changes, which a reader can't edit by one command
        line = quoted(append((after,)).strip())
        config = boot.config_path(host, self.name)
        folder = [f"mkdir -p {os.path.dirname(self.by_hand)}"]
        return [*folder, f"echo {line} >> {self.by_hand}", f"{self.make} -o {config}"]

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

    def rehearse(self, host: WritableHost, record: Record) -> None:
        """What the program makes of the shell files, only a run shows; the present entries show the other arguments."""
        if record.arguments:
            judge_shell(host, self.shell)
        texts = record.texts().values()
        earlier = tuple(token for forms in texts for text in forms for token in kernel_arguments.checked_tokens(text))
        present = boot.read_entries(host, self.name)
        bare = (entry._replace(arguments=kernel_arguments.without(entry.arguments, earlier)) for entry in present)
        entries = (entry._replace(arguments=(*entry.arguments, *record.tokens())) for entry in bare)
        judge_arguments(entries, record.arguments)

    def realise(self, host: WritableHost, record: Record) -> None:
        files = swap.Swap(host)
        shell, text = self.defaults(host, record.tokens())
        config = boot.config_path(host, self.name)
        # `read_file` is for files that we write, as the shell file is; grub.cfg may be large, or a link.
        old_shell, old_config = store.read_file(host, shell), host.raw(config)
        try:
            files.put(shell, text)
            self._generate(host, record.arguments)
        except NearmetalError as error:
            with suppress(NearmetalError):
                files.undo()
            changed = [] if swap.is_unchanged(host, shell, old_shell) else [shell]
            changed += [] if host.raw(config) == old_config else [config]
            if changed:
                raise UndoFailed(f"{error}; and {', '.join(changed)} could not be restored") from None
            raise
        with suppress(NearmetalError):  # the change is complete; `copies` names files that stay
            files.keep()

    def _generate(self, host: WritableHost, arguments: Mapping[str, str]) -> None:
        path = boot.config_path(host, self.name)
        beside = f"{path}.nearmetal-new"
        try:
            made = host.output([str(boot.tool(host, self.make))])
            config = made.decode("utf-8", "replace")
            judge(host, boot.read_entries(host, self.name, {path: config}), arguments, config=config)
            store.replace_file(host, beside, made, mode=host.mode(path), folder_mode=0o755)
            host.command([str(boot.tool(host, self.check)), beside])
            swap.publish(host, path, beside, keep_old=bool(arguments))
        except NearmetalError:
            with suppress(NearmetalError):  # a later run removes it
                store.remove_file(host, beside)
            raise


def append(tokens: Tuple[str, ...]) -> str:
    """The shell line that appends nearmetal's arguments to those that others have set."""
    return f'{boot.VARIABLE}="${boot.VARIABLE} {" ".join(tokens)}"\n'
