# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RHEL 8 to 10, Amazon Linux 2023: entries of the Boot Loader Specification. PRIVATE to the collection.

We write the lines that grubby would write, but don't run grubby: it keeps one value
per argument, removes an argument from every entry, whoever set it, makes
/etc/kernel/cmdline out of any entry, and syncs nothing. grub.cfg, which is a stub on
EFI partitions, is never written.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import boot
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import quoted
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.boot_arguments import swap
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.boot_arguments.provider import (
    HalfDone,
    Provider,
    judge,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import (
    boot_line,
    boot_record,
    cmdline,
    kernel_arguments,
    shell_defaults,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.boot_record import Record, flat

Texts = Dict[str, str]  # file → its content

_VARIABLE = "GRUB_CMDLINE_LINUX"  # of /etc/default/grub, for kernels whose entries grub2-mkconfig writes


class Bls(Provider):
    """Changes one line per file: all entries are checked before anything is written, then files are renamed."""

    def obstacle(self, host: WritableHost) -> str:
        for path in (boot.ENTRIES, "/etc"):
            if not host.writable(path):
                return f"{path} is read-only, so kernel arguments can't be set"
        # What somebody wrote around our arguments must not keep them from being taken back.
        found = shell_defaults.find(_text(host, boot.DEFAULTS), _VARIABLE)
        if not found.obstacle or host.exists(boot_record.PATH):
            return ""
        return (
            f"{boot.DEFAULTS}, {found.obstacle}, which nearmetal doesn't edit:"
            f' write {_VARIABLE}="…" in one line of its own, as the last that names it, and run again'
        )

    def copies(self, host: WritableHost) -> Iterator[str]:
        return _copies(host)

    def commands(self, host: WritableHost, before: str, after: str) -> List[str]:
        removed = [f"grubby --update-kernel=ALL --remove-args={quoted(before)}"] if before else []
        return [*removed, f"grubby --update-kernel=ALL --args={quoted(after)}"] if after else removed

    def foreign(self, host: WritableHost, known: Record, arguments: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
        lines = {path: _foreign(path, line, known) for path, _span, _text, line in _places(host)}
        return {
            text: tuple(path for path, line in lines.items() if _in_force(line, text)) for text in arguments.values()
        }

    def stays(self, host: WritableHost, text: str, record: Record) -> bool:
        grubs = [path for path, _span, _text, _line in _places(host) if path.startswith("/boot/")]
        return all(path in record.foreign.get(text, ()) for path in grubs)

    def realise(self, host: WritableHost, record: Record) -> None:
        old, new = {}, {}
        for path, (start, end), text, line in _places(host):
            foreign = _foreign(path, line, record)
            lacking = {
                name: argument for name, argument in record.arguments.items() if not _in_force(foreign, argument)
            }
            wanted = boot_line.append(foreign, flat(lacking)) if lacking else foreign
            if wanted != line:
                old[path], new[path] = text, _padded(path, text, text[:start] + wanted + text[end:])
        judge(host, boot.read_entries(host, "bls", new), record.arguments, _device(host))
        _write(host, old, new)
        if not record.arguments:
            for path in _copies(host):
                store.remove_file(host, path)


def _places(host: WritableHost) -> Iterator[Tuple[str, Tuple[int, int], str, str]]:
    """File, span in its text, its text, the arguments in the span; without rescue entries, which we never change."""
    places = [(f"{boot.ENTRIES}/{name}", boot_line.ENTRY) for name in boot.entry_names(host)]
    places.append((boot.environment_path(host), boot_line.ENVIRONMENT))
    places.append((boot.KERNEL_CMDLINE, boot_line.KERNEL_CMDLINE))
    found = [(path, boot_line.span(place, _text(host, path))) for path, place in places]
    found.append((boot.DEFAULTS, shell_defaults.find(_text(host, boot.DEFAULTS), _VARIABLE).span))
    for path, span in found:
        if span is not None:
            text = _text(host, path)
            yield path, span, text, text[span[0] : span[1]]


def _text(host: WritableHost, path: str) -> str:
    return (store.read_file(host, path) or b"").decode("utf-8", "surrogateescape")


def _foreign(path: str, line: str, record: Record) -> str:
    """The arguments of a line that aren't ours: those that it had before us, and what others added."""
    ours = {
        name: tuple(text for text in texts if path not in record.foreign.get(text, ()))
        for name, texts in record.texts().items()
    }
    return boot_line.foreign(line, ours, last=record.before is not None)


def _in_force(line: str, text: str) -> bool:
    return kernel_arguments.in_force(cmdline.tokens(line), kernel_arguments.ours(text))


def _padded(path: str, old: str, new: str) -> str:
    """The text at the size of GRUB's environment block, which never changes: # fills it up."""
    if not path.endswith("/grubenv"):
        return new
    bare = new.rstrip("#")
    if len(bare.encode("utf-8", "surrogateescape")) > len(old.encode("utf-8", "surrogateescape")):
        raise NearmetalError(f"{path} has no room left for our arguments: remove some of your own from kernelopts")
    return bare + "#" * (len(old) - len(bare))


def _device(host: WritableHost) -> str:
    """The disk that GRUB puts before the kernel's name, such as (hd0,gpt2), at its longest."""
    images = cmdline.values(cmdline.tokens(host.text("/proc/cmdline", cmdline.LONGEST) or ""), "BOOT_IMAGE")
    found = re.match(r"\([^)]*\)", (images[-1] if images else None) or "")
    return max("(hd0,gpt128)", found.group() if found else "", key=len)


def _write(host: WritableHost, old: Texts, new: Texts) -> None:
    """Write new files first, which needs space, then rename them. Old files of GRUB are kept beside the new ones."""
    grubs = [path for path in new if path.startswith("/boot/")]
    try:
        for path in grubs:
            _put(host, f"{path}.nearmetal-new", new[path], host.mode(path))
        for path in new:
            if path in grubs:
                swap.publish(host, path, f"{path}.nearmetal-new", keep_old=True)
            else:
                _put(host, path, new[path], host.mode(path))
    except NearmetalError as error:
        for path in grubs:
            with suppress(NearmetalError):  # a later run removes it
                store.remove_file(host, f"{path}.nearmetal-new")
        # A file that can't be read stays: the old file beside it may be of an earlier run.
        for path in [path for path, same in reversed(list(_unchanged(host, old))) if same is False]:
            with suppress(NearmetalError):
                if path in grubs:
                    swap.take_back(host, path)
                else:
                    _put(host, path, old[path], host.mode(path))
        changed = [path for path, same in _unchanged(host, old) if not same]
        if changed:
            raise HalfDone(f"{error}; and {', '.join(changed)} could not be restored") from None
        raise


def _unchanged(host: WritableHost, old: Texts) -> Iterator[Tuple[str, Optional[bool]]]:
    for path, text in old.items():
        yield path, swap.is_unchanged(host, path, text.encode("utf-8", "surrogateescape"))


def _put(host: WritableHost, path: str, text: str, mode: int) -> None:
    store.replace_file(host, path, text.encode("utf-8", "surrogateescape"), mode, 0o755)


def _copies(host: WritableHost) -> Iterator[str]:
    """Old and temporary files beside the boot loader's, also of entries that were removed with their kernel."""
    places = [(boot.ENTRIES, r".*\.conf")]
    for path in (boot.environment_path(host), boot.KERNEL_CMDLINE, boot.DEFAULTS):
        folder, name = os.path.split(path)
        places.append((folder, re.escape(name)))
    for folder, name in places:
        copies = re.compile(rf"\.?{name}\.nearmetal-(old|new)(\.new)?|\.{name}\.new")
        for file in host.names(folder):
            if copies.fullmatch(file):
                yield f"{folder}/{file}"
