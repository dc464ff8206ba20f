# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the kernel's command line: the running one and the next boot's. PRIVATE to the collection."""

from __future__ import annotations

import posixpath
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from .._error import Damaged, NearmetalError
from .._parse import boot_entry, boot_line, boot_record, cmdline, grub_config, grub_menu, kernel_arguments
from .._plan import Value
from . import boot_shell, platform
from .host import Host

DEBIAN_CONFIG = "/boot/grub/grub.cfg"
MKCONFIG_CONFIG = "/boot/grub2/grub.cfg"
ENTRIES = "/boot/loader/entries"
# Where kernel-install looks for the boot loader's partition, in its order.
BOOT_ROOTS = ("/efi", "/boot", "/boot/efi")
# RHEL 9 and newer give these arguments to kernels installed later; without the file those of the running kernel.
KERNEL_CMDLINE = "/etc/kernel/cmdline"
MENUS = ("/boot/grub/menu.lst", "/boot/grub/grub.conf")
TOOLS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")

_BY_HAND = {
    "ostree": "rpm-ostree kargs --append={0}",
    "bottlerocket": "set it under settings.boot.kernel-parameters with apiclient: {0}",
    "zipl": "put this into parameters= in /etc/zipl.conf and run zipl: {0}",
    "extlinux": "put this at the end of each line that begins with append in /boot/extlinux/extlinux.conf: {0}",
    "systemd_boot": "put this at the end of each line options in the files of loader/entries, and of"
    " /etc/kernel/cmdline if there is one: {0}",
}
_BY_HAND_ELSEWHERE = "put this at the end of the kernel's command line in your boot loader: {0}"


class BootEntry(NamedTuple):
    """One kernel as it will be booted. Entries for rescue and recovery are left out, because we never change them."""

    name: str
    kernel: str
    arguments: Tuple[str, ...]
    initrds: Tuple[str, ...]


class BootFacts(NamedTuple):
    """The command lines of the running kernel and of the next boot. None is what can't be known."""

    loader: Optional[str]  # as platform.boot_loader, and ostree, bottlerocket, zipl, extlinux
    provider: Optional[
        str
    ]  # debian | bls | mkconfig | menu | systemd_boot: how nearmetal sets arguments; None: it can't
    running: Optional[Tuple[str, ...]]
    entries: Optional[Tuple[BootEntry, ...]]
    configured: Optional[Tuple[str, ...]]  # the arguments of kernels installed later; None: no file has them
    # nearmetal's arguments in every entry of the next boot; a mapping for one that some entries lack.
    arguments: Mapping[str, Value] = {}
    damage: str = ""  # why nearmetal's record can't be read: then nobody knows which arguments it added

    def by_hand(self, text: str) -> str:
        """What an operator has to do where nearmetal can't set arguments."""
        return _BY_HAND.get(self.loader or "", _BY_HAND_ELSEWHERE).format(text)

    def next_boot_has(self, text: str) -> bool:
        """Whether every kernel's next boot has this argument, whoever set it."""
        places = [entry.arguments for entry in self.entries or ()]
        if self.provider in ("bls", "menu", "systemd_boot") and self.configured is not None:
            places.append(self.configured)
        tokens = kernel_arguments.checked_tokens(text)
        return bool(self.entries) and all(kernel_arguments.in_force(place, tokens) for place in places)

    def booted(self, text: str) -> bool:
        """Whether the running kernel was booted with this argument."""
        return kernel_arguments.in_force(self.running or (), kernel_arguments.checked_tokens(text))

    def running_arguments(self, text: str) -> str:
        """The running kernel's arguments with the names in `text`; empty when there are none."""
        return " ".join(kernel_arguments.same_names(self.running or (), kernel_arguments.checked_tokens(text)))

    def named(self, name: str) -> bool:
        """Whether an argument of this name is in any entry."""
        return any(kernel_arguments.same_names(entry.arguments, (name,)) for entry in self.entries or ())


def read_record(host: Host) -> boot_record.Record:
    """nearmetal's record; empty when there is none. Raises Damaged when it isn't a file, or not nearmetal's."""
    text = host.text(boot_record.PATH, limit=65536)
    if host.link(boot_record.PATH) is not None or (text is None and host.exists(boot_record.PATH)):
        raise Damaged(f"{boot_record.PATH} is not a regular file: look at it, move it away, and run again")
    try:
        return boot_record.parse(text)
    except NearmetalError as error:
        raise Damaged(str(error)) from None


def observe(host: Host) -> BootFacts:
    """Read the running command line, the boot loader's files and nearmetal's own record."""
    line = host.text("/proc/cmdline", cmdline.LONGEST)
    loader = _loader(host)
    provider = _provider(host, loader)
    entries = read_entries(host, provider) if provider else None
    configured = _configured(host, provider)
    try:
        record, damage = read_record(host), ""
    except Damaged as error:
        record, damage = boot_record.Record(), str(error)
    return BootFacts(
        loader=loader,
        provider=provider,
        running=cmdline.tokens(line) if line is not None else None,
        entries=entries,
        configured=configured,
        arguments=_arguments(record, entries or (), configured),
        damage=damage,
    )


def tool(host: Host, name: str) -> Optional[str]:
    """Where the program is; None when it isn't installed."""
    return next((f"{folder}/{name}" for folder in TOOLS if host.exists(f"{folder}/{name}")), None)


def config_path(host: Host, provider: str) -> str:
    """The file with the entries: grub.cfg, not a stub on an EFI partition that only loads it; or menu.lst.

    On Amazon Linux 1 menu.lst is a link to grub.conf.
    """
    if provider == "debian":
        return _behind(host, DEBIAN_CONFIG)
    if provider == "menu":
        return _behind(host, next((path for path in MENUS if host.exists(path)), MENUS[0]))
    link = host.link("/etc/grub2-efi.cfg") if host.exists("/sys/firmware/efi") else None
    path = _behind(host, "/etc/grub2-efi.cfg" if link else MKCONFIG_CONFIG)
    text = host.text(path)
    return _behind(host, MKCONFIG_CONFIG) if text is None or grub_config.is_stub(text) else path


def environment_path(host: Host) -> str:
    """GRUB's environment block; on RHEL 8 with EFI /boot/grub2/grubenv is a link to it."""
    return _behind(host, "/boot/grub2/grubenv")


def _behind(host: Host, path: str) -> str:
    """The file to which a link points; the path itself where it is none."""
    link = host.link(path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if link else path


def read_entries(host: Host, provider: str, new: Optional[Mapping[str, str]] = None) -> Tuple[BootEntry, ...]:
    """The entries that the provider's files hold; `new` are texts that aren't in their places yet."""
    new = new or {}
    if provider in ("bls", "systemd_boot"):
        return _bls_entries(host, new, provider)
    path = config_path(host, provider)
    text = new[path] if path in new else host.text(path) or ""
    entries = grub_menu.entries(text) if provider == "menu" else grub_config.entries(text)
    return tuple(
        BootEntry(grub_config.release(entry.kernel), entry.kernel, entry.arguments, entry.initrds)
        for entry in entries
        if not entry.recovery
    )


def entry_names(host: Host, folder: str = ENTRIES) -> List[str]:
    """The files of entries that start a kernel of Linux, without those for rescue."""
    names = [name for name in host.names(folder) if name.endswith(".conf") and "-0-rescue" not in name]
    return [name for name in names if "linux" in boot_entry.parse(host.text(f"{folder}/{name}") or "linux -")]


def entries_folder(host: Host) -> str:
    """The folder with systemd-boot's entries, which is on the EFI partition, or on one beside it."""
    folders = [f"{root}/loader/entries" for root in BOOT_ROOTS]
    return next((folder for folder in folders if entry_names(host, folder)), ENTRIES)


def _bls_entries(host: Host, new: Mapping[str, str], provider: str) -> Tuple[BootEntry, ...]:
    folder = entries_folder(host) if provider == "systemd_boot" else ENTRIES

    def text(path: str) -> str:
        return new[path] if path in new else host.text(path) or ""

    variables = entry_variables(host, new)
    entries: List[BootEntry] = []
    for name in entry_names(host, folder):
        entry = boot_entry.parse(text(f"{folder}/{name}"))
        kernel = entry.get("linux", ("",))[-1]
        initrds = tuple(word for line in entry.get("initrd", ()) for word in line.split() if not word.startswith("$"))
        options = entry.get("options", ("$default_kernelopts",))
        arguments = boot_entry.arguments(options[:1] if provider == "bls" else options, variables)  # as GRUB takes it
        entries.append(BootEntry(entry.get("version", (name[: -len(".conf")],))[-1], kernel, arguments, initrds))
    return tuple(entries)


def entry_variables(host: Host, new: Mapping[str, str]) -> Dict[str, str]:
    """GRUB's variables, by which entries name arguments that are elsewhere; `new` as for `read_entries`."""
    block, config = environment_path(host), config_path(host, "mkconfig")
    texts = [new[path] if path in new else host.text(path) or "" for path in (block, config)]
    return grub_config.variables(texts[1], boot_entry.environment(texts[0]))


def _loader(host: Host) -> Optional[str]:
    observed = platform.observe(host)
    if host.exists("/run/ostree-booted"):
        return "ostree"
    if observed.distribution == "bottlerocket":
        return "bottlerocket"
    if host.exists("/etc/zipl.conf"):
        return "zipl"
    # PV-GRUB, outside of the guest, reads menu.lst even where there is a newer grub.cfg, too (UnixBench, 2014).
    if observed.virtualization == "pv" and host.exists("/boot/grub/menu.lst"):
        return "grub_legacy"
    if observed.boot_loader is None and host.exists(config_path(host, "mkconfig")):
        return "grub_efi"  # Amazon Linux 2 on arm64 keeps its one grub.cfg on the EFI partition
    if observed.boot_loader is None and host.exists("/boot/extlinux/extlinux.conf"):
        return "extlinux"
    return observed.boot_loader


def _provider(host: Host, loader: Optional[str]) -> Optional[str]:
    if loader == "grub_legacy":
        return "menu"
    if loader == "systemd_boot":
        # Other boot loaders read such entries too: petitboot, zipl, U-Boot.
        installed = any(host.names(f"{root}/EFI/systemd") for root in BOOT_ROOTS)
        return "systemd_boot" if installed and entry_names(host, entries_folder(host)) else None
    if loader not in ("grub_pc", "grub_efi", "grub_bls"):
        return None
    if host.exists(DEBIAN_CONFIG):
        return "debian" if tool(host, "grub-mkconfig") else None
    # Entries may be unused: GRUB reads them only when its configuration has blscfg (GRUB_ENABLE_BLSCFG).
    if loader == "grub_bls" and "blscfg" in (host.text(config_path(host, "mkconfig")) or ""):
        return "bls"
    return "mkconfig" if host.exists(config_path(host, "mkconfig")) and tool(host, "grub2-mkconfig") else None


def _configured(host: Host, provider: Optional[str]) -> Optional[Tuple[str, ...]]:
    if provider in boot_shell.SHELL:
        return boot_shell.configured(provider, host.text(boot_shell.SHELL[provider].path))
    if provider == "menu":
        line = boot_line.read(grub_menu.OPTIONS, host.text(config_path(host, provider)) or "")
    else:
        text = host.text(KERNEL_CMDLINE) if provider in ("bls", "systemd_boot") else None
        line = boot_line.read(boot_line.KERNEL_CMDLINE, text or "")
    return cmdline.tokens(line) if line is not None else None


def _arguments(
    record: boot_record.Record, entries: Tuple[BootEntry, ...], configured: Optional[Tuple[str, ...]]
) -> Dict[str, Value]:
    """Argument → nearmetal's text in the next boot; a mapping where a killed run or a new kernel left it incomplete."""
    arguments: Dict[str, Value] = {}
    before = record.before or {}
    for name in sorted({*record.arguments, *before}):
        text = record.texts()[name][-1]
        wanted = (text,) if name in record.arguments else ()
        if record.before is not None and before.get(name, ()) != wanted:
            arguments[name] = {"argument": text, "unfinished": True}
            continue
        tokens = kernel_arguments.checked_tokens(text)
        lacking = [entry.name for entry in entries if not kernel_arguments.in_force(entry.arguments, tokens)]
        for_later = configured is None or kernel_arguments.in_force(configured, tokens)
        lacking += [] if for_later else ["kernels installed later"]
        arguments[name] = {"argument": text, "lacking": lacking} if lacking else text
    return arguments
