# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RHEL 8 to 10, Amazon Linux 2023: entries of the Boot Loader Specification, by grubby. PRIVATE to the collection.

grubby knows RHEL 8's grubenv and the differences of its releases; grub.cfg, which
is a stub on EFI partitions, is never written.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.boot_arguments.provider import (
    SECONDS,
    Provider,
    judge,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import boot
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cmdline, kernel_arguments
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.boot_record import flat

Line = Tuple[str, ...]


class Bls(Provider):
    """One call of grubby for all kernels, then a look at what it did to what isn't ours."""

    def obstacle(self, host: WritableHost) -> str:
        for path in (boot.ENTRIES, "/etc"):
            if not host.writable(path):
                return f"{path} is read-only here, so kernel arguments can't be set"
        return ""

    def realise(self, host: WritableHost, arguments: Mapping[str, str], before: Mapping[str, str]) -> None:
        mine, gone = flat(arguments), tuple(token for token in flat(before) if token not in flat(arguments))
        foreign = _foreign(host, mine + gone)
        for text in arguments.values():
            _demand_room(text, foreign)
        files = {path: store.read_file(host, path) for path in _touched(host)}
        try:
            _grubby(host, mine, gone)
            _kernel_cmdline(host, mine, gone)
            judge(host, boot.read_entries(host, "bls"), arguments)
            _demand_untouched(foreign, _foreign(host, mine + gone))
        except NearmetalError:
            _back(host, files)
            raise


def _grubby(host: WritableHost, mine: Line, gone: Line) -> None:
    argv = [str(boot.tool(host, "grubby")), "--update-kernel=ALL"]
    argv += [f"--remove-args={' '.join(gone)}"] if gone else []
    argv += [f"--args={' '.join(mine)}"] if mine else []
    if len(argv) > 2:
        host.command(argv, SECONDS)


def _kernel_cmdline(host: WritableHost, mine: Line, gone: Line) -> None:
    """Newer releases of grubby write it themselves, older ones don't."""
    line = host.text(boot.KERNEL_CMDLINE)
    if line is None:
        return
    tokens = cmdline.tokens(line)
    wanted = kernel_arguments.merge(kernel_arguments.without(tokens, mine + gone), mine)
    if wanted != tokens:
        data = (" ".join(wanted) + "\n").encode()
        store.replace_file(host, boot.KERNEL_CMDLINE, data, host.mode(boot.KERNEL_CMDLINE), 0o755)


def _foreign(host: WritableHost, mine: Line) -> Dict[str, Line]:
    """Entry → what isn't ours in it."""
    return {entry.name: kernel_arguments.without(entry.arguments, mine) for entry in boot.read_entries(host, "bls")}


def _demand_room(text: str, foreign: Mapping[str, Line]) -> None:
    """grubby keeps one value per argument: it would replace somebody else's, or ours by ours."""
    tokens = kernel_arguments.ours(text)
    if len(kernel_arguments.names(tokens)) < len(tokens):
        raise NearmetalError(f"grubby keeps one value per argument, so it can't set {text}: add it by hand")
    for name, line in foreign.items():
        there = kernel_arguments.same(line, tokens)
        if there and not kernel_arguments.in_force(line, tokens):
            raise NearmetalError(
                f"{name} boots with {' '.join(there)}, which isn't ours, and {text} is wanted: take it away first,"
                f" with grubby --update-kernel=ALL --remove-args='{' '.join(there)}'"
            )


def _demand_untouched(before: Mapping[str, Line], after: Mapping[str, Line]) -> None:
    for name, line in before.items():
        if after.get(name) != line:
            raise NearmetalError(f"grubby changed more of the arguments of {name} than asked for: left as it was")


def _touched(host: WritableHost) -> List[str]:
    """Every file that a grubby of some release writes."""
    entries = [f"{boot.ENTRIES}/{name}" for name in host.names(boot.ENTRIES) if name.endswith(".conf")]
    return [*entries, boot.environment_path(host), boot.KERNEL_CMDLINE, boot.DEFAULTS]


def _back(host: WritableHost, files: "Dict[str, bytes | None]") -> None:
    for path, data in files.items():
        if store.read_file(host, path) == data:
            continue
        if data is None:
            store.remove_file(host, path)
        else:
            store.replace_file(host, path, data, host.mode(path), 0o755)
