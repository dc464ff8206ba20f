# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the entries of a boot loader can boot with nearmetal's arguments; check mode and a run ask alike. PRIVATE."""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Mapping, Sequence, Tuple

from .._error import NearmetalError
from .._parse import cmdline, kernel_arguments, shell_defaults
from .._parse.boot_record import Record
from .boot import BootEntry, read_entries
from .boot_shell import DEFAULTS, DROP_IN, SHELL, VARIABLE
from .host import Host

# A paravirtual guest is given 1,024 bytes with the end of the text (MAX_GUEST_CMDLINE of Xen's public header).
_LONGEST = {"menu": 1023}
_SET_ANEW = rf"^[ \t]*(?:export[ \t]+)?{VARIABLE}=(?!.*\$\{{?{VARIABLE}\b)"
_EXTENDED = rf"^[ \t]*(?:export[ \t]+)?{VARIABLE}\+?=[\"']?(.*?)[\"']?$"
_AFTER = "after a --, and the kernel passes what follows a -- to init"
_ON_A_LINE = "on a line of its own, which GRUB takes for a command"
_BY = {"UUID": "by-uuid", "PARTUUID": "by-partuuid", "LABEL": "by-label", "PARTLABEL": "by-partlabel"}


def judge(
    host: Host, provider: str, entries: Sequence[BootEntry], arguments: Mapping[str, str], config: str = ""
) -> None:
    """Demand that entries can boot and have nearmetal's arguments.

    `config` is the text of the file that was made with these entries, so that all of them can boot. An entry with a
    file of its own may be left from a kernel that is gone: one that can't boot stops none of the others.
    Raises NearmetalError that names the entry.
    """
    if not entries:
        raise NearmetalError("the boot loader's new configuration has no entry for Linux: the old one stays")
    reasons = [_why_broken(host, entry) for entry in entries]
    if any(reasons) if config else all(reasons):
        raise NearmetalError(f"{next(filter(None, reasons))}: the boot configuration stays as it was")
    bootable = [entry for entry, reason in zip(entries, reasons) if not reason]
    longest = _LONGEST.get(provider, kernel_arguments.LONGEST)
    judge_arguments(bootable, arguments, _before_kernel(host, provider), longest, config)


def judge_arguments(
    entries: Iterable[BootEntry],
    arguments: Mapping[str, str],
    device: str = "",
    longest: int = kernel_arguments.LONGEST,
    config: str = "",
) -> None:
    """Demand that the kernels get nearmetal's arguments, and no line is cut off; as `judge`.

    `device` is what the boot loader puts before a kernel's name.
    """
    for entry in entries:
        excess = kernel_arguments.too_long(device + entry.kernel, entry.arguments, longest)
        if excess:
            raise NearmetalError(
                f"the command line of {entry.name} would be {excess} bytes too long, and the kernel would truncate it"
                " silently: remove arguments of your own first"
            )
        for text in arguments.values():
            tokens = kernel_arguments.checked_tokens(text)
            if not kernel_arguments.in_force(entry.arguments, tokens):
                raise NearmetalError(f"the boot entry of {entry.name} {_cause(entry, text, tokens, config)}")


def _before_kernel(host: Host, provider: str) -> str:
    """What the boot loader puts before the kernel's name on the command line, at its longest.

    GRUB puts the disk there, such as (hd0,gpt2); systemd-boot the initrds, for the kernel's own loader.
    """
    if provider == "systemd_boot":
        initrds = (" ".join(f"initrd={path}" for path in entry.initrds) for entry in read_entries(host, provider))
        return max(initrds, key=len, default="")
    match = re.match(r"\([^)]*\)", cmdline.last(host.kernel_arguments(), "BOOT_IMAGE") or "")
    return max("(hd0,gpt128)", match.group() if match else "", key=len) if provider == "bls" else ""


def judge_shell(host: Host, provider: str, record: Record) -> None:
    """Demand that the shell files of a boot loader leave room for nearmetal's arguments, and so do other arguments.

    What the program makes of these files, only a run shows; the present entries show the other arguments. Raises
    NearmetalError that names the file or the entry, and what to do.
    """
    if record.arguments:
        _judge_shell_files(host, SHELL[provider].path, record)
    texts = record.texts().values()
    earlier = tuple(token for forms in texts for text in forms for token in kernel_arguments.checked_tokens(text))
    present = read_entries(host, provider)
    bare = (entry._replace(arguments=kernel_arguments.without(entry.arguments, earlier)) for entry in present)
    entries = (entry._replace(arguments=(*entry.arguments, *record.tokens())) for entry in bare)
    judge_arguments(entries, record.arguments)


def _judge_shell_files(host: Host, shell: str, record: Record) -> None:
    folder = posixpath.dirname(DROP_IN)
    others = [f"{folder}/{name}" for name in host.names(folder) if name.endswith(".cfg")]
    for path in (DEFAULTS, *others):
        text = host.text(path) or ""
        if path > shell == DROP_IN and re.search(_SET_ANEW, text, re.MULTILINE):
            raise NearmetalError(f"{path} sets {VARIABLE} anew and sorts after nearmetal's file: extend it there")
        for line in re.findall(_EXTENDED, text, re.MULTILINE) if path > shell == DROP_IN else ():
            after = (*record.tokens(), *cmdline.tokens(line))
            for argument, wanted in record.arguments.items():
                if not kernel_arguments.in_force(after, kernel_arguments.checked_tokens(wanted)):
                    raise NearmetalError(f"{path} sets {argument} and sorts after nearmetal's file: remove it there")
        for name in ("GRUB_CMDLINE_LINUX", VARIABLE):
            place = shell_defaults.find(text, name)
            if place.obstacle.endswith("goes over several lines"):
                raise NearmetalError(f"{path}: nearmetal's arguments would be {_ON_A_LINE}; write {name} on one line")
            if place.span is not None and "--" in text[slice(*place.span)].split():
                raise NearmetalError(f"{path}: nearmetal's arguments would be {_AFTER}: remove it and what follows it")


def _cause(entry: BootEntry, text: str, tokens: Tuple[str, ...], config: str) -> str:
    """Why an argument isn't in force in an entry, and what to do."""
    after = entry.arguments[entry.arguments.index("--") :] if "--" in entry.arguments else ()
    if set(tokens) <= set(after):
        return (
            f"has {text} {_AFTER}: remove the -- and what follows it from the files in which the boot loader's"
            " arguments are set, such as /etc/default/grub"
        )
    words = [line.split() for line in config.splitlines()]
    if any(set(tokens) <= set(line) and not line[0].startswith(("linux", "module")) for line in words):
        return (
            f"has {text} {_ON_A_LINE}: one of the variables"
            " GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT goes over several lines; write it on one line"
        )
    present = " ".join(kernel_arguments.same_names(entry.arguments, tokens)) or "nothing"
    return (
        f"has {present} instead of {text}: another file of the boot loader overrides it; look for a file that sorts"
        " after nearmetal's"
    )


def _boot_file(host: Host, path: str) -> bool:
    """Paths are as the boot loader sees them: from the root of the file system with its files, or of a subvolume."""
    places = (path, f"/boot{path}", f"/boot/{posixpath.basename(path)}", f"/efi{path}", f"/boot/efi{path}")
    return any(host.exists(place) for place in places)


def _why_broken(host: Host, entry: BootEntry) -> str:
    """Why an entry can't boot, whatever nearmetal adds to it; empty when it can."""
    missing = next((path for path in (entry.kernel, *entry.initrds) if not _boot_file(host, path)), None)
    if missing is not None:
        return f"the boot entry of {entry.name} names {missing}, which doesn't exist"
    roots = cmdline.values(entry.arguments, "root")
    if not roots or not roots[-1]:
        return f"the boot entry of {entry.name} names no root file system"
    kind, equals, name = roots[-1].partition("=")
    folder = f"/dev/disk/{_BY.get(kind, '')}"
    disks = host.names(folder) if equals and kind in _BY else []
    if disks and _as_udev_writes(name).lower() not in (disk.lower() for disk in disks):
        return f"the boot entry of {entry.name} has root={roots[-1]}, which no disk has"
    return ""


def _as_udev_writes(name: str) -> str:
    """A name as in /dev/disk, where udev escapes what a file name or a shell could trip over: / is \\x2f."""
    plain = "#+-.:=@_"
    return "".join(
        letter if letter.isalnum() or letter in plain or ord(letter) > 127 else f"\\x{ord(letter):02x}"
        for letter in name
    )
