# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faithful trees of what each boot loader keeps on disk, with a stand-in for its tool, and hosts that boot from them.

The lab tests the real tools, for Debian. The stand-ins here test how nearmetal uses the
output of a tool, not that the tool prints it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterable, Optional, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

STAND_INS = Path(__file__).resolve().parent / "stand_ins"
UUID = "d6ab2e6a-0001-4cd9-9f4f-1f0ac0ffee00"
OLD, NEW = "6.1.0-28-cloud-amd64", "6.1.0-31-cloud-amd64"
# The command line of an AMI: a duplicate, values with "=", a quoted value with blanks.
FOREIGN = 'console=tty0 console=ttyS0,115200n8 nvme_core.io_timeout=4294967295 dyndbg="file drivers/usb/* +p"'
_ROOT_DEVICE = {"/etc/stand-in-root-device": f"UUID={UUID}", f"/dev/disk/by-uuid/{UUID}": ""}
DEBIAN_TOOLS = ("grub-mkconfig", "grub-script-check")
AMAZON_2_TOOLS = ("grub2-mkconfig", "grub2-script-check")
QUOTED = FOREIGN.replace('"', '\\"')


class BootHost(FakeKernel):
    """A host that boots from the files on its disk; its programs are the stand-ins."""

    def __init__(self, root: Path, files: Dict[str, str], tools: Iterable[str]) -> None:
        super().__init__(root, files)
        for tool in tools:
            (root / "usr/sbin").mkdir(parents=True, exist_ok=True)
            stand_in = "grub-" + tool[len("grub2-") :] if tool.startswith("grub2-") else tool
            shutil.copy(STAND_INS / stand_in, root / "usr/sbin" / tool)

    def output(self, argv: "list[str] | tuple[str, ...]", timeout: float = 60) -> bytes:
        self.commands.append(" ".join(argv))
        return WritableHost.output(self, argv, timeout)

    def command(self, argv: "list[str] | tuple[str, ...]", timeout: float = 60) -> str:
        return self.output(argv, timeout).decode()

    def arguments(self) -> str:
        """The command line of the newest kernel, as GRUB would put it together."""
        if self.exists("/boot/efi/loader/entries"):
            return self._systemd_boot() + "\n"
        if self.exists("/boot/grub/menu.lst") and not self.exists("/boot/grub/grub.cfg"):
            return self._legacy() + "\n"
        bls = self.exists("/boot/loader") and "blscfg" in self._get("/boot/grub2/grub.cfg")
        return (self._entry() if bls else self._menu()) + "\n"

    def boot(self) -> str:
        """Boot the newest kernel and change nothing else; return its command line."""
        line = self.arguments()
        self._put("/proc/cmdline", line)
        return line[:-1]

    def _menu(self) -> str:
        places = ("boot/grub/grub.cfg", "boot/grub2/grub.cfg", "boot/efi/EFI/amzn/grub.cfg")
        config = next(path for path in places if self.exists("/" + path))
        first = re.search(r"^\tlinux\t(.*)$", self._get("/" + config), re.MULTILINE)
        assert first is not None, "no entry"
        return "BOOT_IMAGE=" + first.group(1).replace('\\"', '"')

    def _legacy(self) -> str:
        """PV-GRUB chooses the entry with the number of `default`, and passes what follows the kernel's name."""
        menu = self._get("/boot/grub/menu.lst")
        number = re.search(r"^default[ =](\d+)", menu, re.MULTILINE)
        kernels = re.findall(r"^\s*kernel\s+\S+ (.*)$", menu, re.MULTILINE)
        return str(kernels[int(number.group(1)) if number else 0])

    def _systemd_boot(self) -> str:
        """systemd-boot hands the newest entry's initrds over as arguments."""
        entry = sorted((Path(self.root) / "boot/efi/loader/entries").glob("*.conf"))[-1].read_text()
        options = re.search(r"^options +(.*)$", entry, re.MULTILINE)
        initrd = re.search(r"^initrd +(.*)$", entry, re.MULTILINE)
        assert options is not None, "no options"
        assert initrd is not None, "no initrd"
        return "initrd=" + initrd.group(1).replace("/", "\\") + " " + options.group(1)

    def _entry(self) -> str:
        newest = sorted((Path(self.root) / "boot/loader/entries").glob("*[0-9].x86_64.conf"))[-1].read_text()
        options = re.search(r"^options[ \t]+(.*)$", newest, re.MULTILINE)
        assert options is not None, "no options"
        return "BOOT_IMAGE=(hd0,gpt1)/vmlinuz " + self._expanded(options.group(1))

    def _expanded(self, options: str) -> str:
        """The options with the variables that grubenv and grub.cfg leave at `blscfg`: its language is a shell's."""
        block = re.findall(r"^(\w+)=(.*)$", self._get("/boot/grub2/grubenv"), re.MULTILINE)
        kept = "".join(f"{name}={shlex.quote(value)}\n" for name, value in block)
        config = re.sub(r"\bset (\w+=)", r"\1", self._get("/boot/grub2/grub.cfg"))
        quiet = "load_env() { :; }\ninsmod() { :; }\nsearch() { :; }\n"
        answer = 'blscfg() { eval "printf %s \\"$(printf %s "$OPTIONS" | sed \'s/"/\\\\"/g\')\\""; exit; }\n'
        made = subprocess.run(
            ["/bin/sh", "-c", f"{quiet}{answer}{kept}{config}"],
            env={"OPTIONS": options, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            check=True,
            timeout=60,
        )
        return " ".join(made.stdout.decode().split())


def fill(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Leave no space below the folder."""
    real = store.replace_file

    def full(host: Any, path: str, *rest: Any, **named: Any) -> None:
        if path.startswith(folder):
            raise NearmetalError(f"{path}: no space left on its file system; free some and run again")
        real(host, path, *rest, **named)

    monkeypatch.setattr(store, "replace_file", full)


def everything(host: FakeKernel) -> Dict[str, bytes]:
    """Every file of the host except the lock, the stored wanted and failed values, and the kernel's files."""
    root = Path(host.root)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and path.name not in ("lock", "wanted.json", "failed.json")
        and not str(path.relative_to(root)).startswith("proc/")
    }


def debian(root: Path, foreign: str = QUOTED, changes: Optional[Dict[str, str]] = None) -> BootHost:
    """A Debian or Ubuntu cloud image on metal: the image's own drop-in sets the variable again."""
    files = {**files_of("metal"), **debian_files(foreign), **(changes or {})}
    return _generated(root, files, DEBIAN_TOOLS, "/boot/grub/grub.cfg")


def debian_files(foreign: str = QUOTED) -> Dict[str, str]:
    """What it boots from; its grub.cfg is yet to be made."""
    return {
        **_kernels(OLD, initrd="initrd.img"),
        "/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n',
        "/etc/default/grub": 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n',
        "/etc/default/grub.d/50-cloudimg-settings.cfg": f'GRUB_CMDLINE_LINUX_DEFAULT="{foreign}"\n',
        "/boot/grub/grub.cfg": "",
        **_ROOT_DEVICE,
    }


def amazon_2(root: Path) -> BootHost:
    """Amazon Linux 2 (SLES is alike): no folder for drop-ins."""
    return _generated(root, {**files_of("metal"), **amazon_2_files()}, AMAZON_2_TOOLS, "/boot/grub2/grub.cfg")


def amazon_2_files() -> Dict[str, str]:
    """What it boots from; its grub.cfg is yet to be made."""
    line = "console=tty0 console=ttyS0,115200n8 net.ifnames=0 nvme_core.io_timeout=4294967295"
    return {
        **_kernels("4.14.355-271.569.amzn2.x86_64", initrd="initrd.img"),
        "/etc/os-release": 'ID="amzn"\nVERSION_ID="2"\n',
        "/etc/default/grub": f'GRUB_CMDLINE_LINUX_DEFAULT="{line}"\nGRUB_TIMEOUT=0\nGRUB_DISABLE_RECOVERY="true"',
        "/boot/grub2/grub.cfg": "",
        **_ROOT_DEVICE,
    }


def amazon_2_arm(root: Path) -> BootHost:
    """Amazon Linux 2 on Graviton: its one grub.cfg is on the EFI partition, named by a link."""
    host = amazon_2(root)
    (root / "boot/efi/EFI/amzn").mkdir(parents=True)
    (root / "boot/grub2/grub.cfg").rename(root / "boot/efi/EFI/amzn/grub.cfg")
    (root / "etc/grub2-efi.cfg").symlink_to("../boot/efi/EFI/amzn/grub.cfg")
    (root / "sys/firmware/efi").mkdir(parents=True)
    return host


AMAZON_1 = """# created by imagebuilder
default=0
timeout=0
hiddenmenu

title Amazon Linux 2018.03 (4.14.336-180.562.amzn1.x86_64)
root (hd0,0)
kernel /boot/vmlinuz-4.14.336-180.562.amzn1.x86_64 root=LABEL=/ console=tty1 console=ttyS0 selinux=0
initrd /boot/initramfs-4.14.336-180.562.amzn1.x86_64.img

title Amazon Linux 2018.03 (4.14.101-75.76.amzn1.x86_64)
root (hd0,0)
kernel (hd0)/boot/vmlinuz-4.14.101-75.76.amzn1.x86_64 root=LABEL=/ console=tty1 console=ttyS0
initrd (hd0)/boot/initramfs-4.14.101-75.76.amzn1.x86_64.img
"""
UBUNTU_PV = """default\t\t0
timeout\t\t0
### BEGIN AUTOMAGIC KERNELS LIST
## ## Start Default Options ##
## e.g. kopt=root=/dev/hda1 ro
# kopt=root=LABEL=cloudimg-rootfs ro
## e.g. defoptions=vga=791 resume=/dev/hda5
# defoptions=console=hvc0
# altoptions=(recovery mode) single
## ## End Default Options ##

title\t\tUbuntu 14.04.6 LTS, kernel 3.13.0-170-generic
root\t\t(hd0)
kernel\t\t/boot/vmlinuz-3.13.0-170-generic root=LABEL=cloudimg-rootfs ro console=hvc0
initrd\t\t/boot/initrd.img-3.13.0-170-generic

title\t\tUbuntu 14.04.6 LTS, kernel 3.13.0-170-generic (recovery mode)
root\t\t(hd0)
kernel\t\t/boot/vmlinuz-3.13.0-170-generic root=LABEL=cloudimg-rootfs ro  single
initrd\t\t/boot/initrd.img-3.13.0-170-generic

title\t\tUbuntu 14.04.6 LTS, memtest86+
root\t\t(hd0)
kernel\t\t/boot/memtest86+.bin
### END DEBIAN AUTOMAGIC KERNELS LIST
"""


def amazon_1(root: Path) -> BootHost:
    """Amazon Linux 1: menu.lst is a link to grub.conf."""
    files = {**_kernels("4.14.336-180.562.amzn1.x86_64", "initramfs"), "/boot/grub/grub.conf": AMAZON_1}
    return _legacy(root, {**files, **_kernels("4.14.101-75.76.amzn1.x86_64", "initramfs")}, r"\x2f")


def ubuntu_pv(root: Path) -> BootHost:
    """A PV image of Ubuntu 14.04, with the menu of grub-legacy-ec2."""
    return _legacy(
        root,
        {**_kernels("3.13.0-170-generic", "initrd.img"), "/boot/grub/menu.lst": UBUNTU_PV},
        "cloudimg-rootfs",
    )


def _legacy(root: Path, files: Dict[str, str], label: str) -> BootHost:
    host = BootHost(root, {**files_of("metal"), **files, f"/dev/disk/by-label/{label}": ""}, [])
    if not host.exists("/boot/grub/menu.lst"):
        (root / "boot/grub/menu.lst").symlink_to("./grub.conf")
    host.boot()
    return host


def rhel_without_bls(root: Path) -> BootHost:
    """RHEL 8 with GRUB_ENABLE_BLSCFG=false: the entries exist, but GRUB doesn't read them."""
    host = amazon_2(root)
    place = root / "boot/loader/entries/0123-4.18.0.conf"
    place.parent.mkdir(parents=True)
    place.write_text(bls_entry("4.18.0", "root=/dev/unused"))
    return host


def rhel(root: Path, release: int) -> BootHost:
    """A host with RHEL on metal."""
    return BootHost(root, {**files_of("metal"), **rhel_files(release)}, [])


def rhel_files(release: int) -> Dict[str, str]:
    """RHEL: 8 keeps the arguments in grubenv, 9 and later in each entry and in /etc/kernel/cmdline."""
    line = f"root=UUID={UUID} ro console=tty0 console=ttyS0,115200n8 crashkernel=1G-4G:192M,4G-64G:256M"
    version = "4.18.0-553.el8.x86_64" if release == 8 else "5.14.0-503.11.1.el9_5.x86_64"
    options = "$kernelopts $tuned_params" if release == 8 else f"{line} $tuned_params"
    environment = "# GRUB Environment Block\nsaved_entry=x\n" + (f"kernelopts={line}\n" if release == 8 else "")
    files = {
        **_kernels(version, initrd="initramfs"),
        "/etc/os-release": f'ID="rhel"\nVERSION_ID="{release}.5"\n',
        "/boot/grub2/grub.cfg": "blscfg\n",
        "/boot/efi/EFI/redhat/grub.cfg": "search --fs-uuid x\nconfigfile /grub2/grub.cfg\n",
        "/boot/grub2/grubenv": environment.ljust(1024, "#"),
        f"/boot/loader/entries/0123-{version}.conf": bls_entry(version, options),
        f"/dev/disk/by-uuid/{UUID}": "",
    }
    if release > 8:
        files["/etc/kernel/cmdline"] = line + "\n"
    return files


def systemd_boot(root: Path) -> BootHost:
    """Debian 12 with its package systemd-boot, the EFI partition at /boot/efi, on metal."""
    line = f"root=UUID={UUID} ro console=tty0 console=ttyS0,115200n8"
    files = {
        "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
        "/etc/kernel/cmdline": f"{line}\n",
        "/boot/efi/EFI/systemd/systemd-bootx64.efi": "",
        f"/dev/disk/by-uuid/{UUID}": "",
    }
    for release in (OLD, NEW):
        files.update(systemd_boot_kernel(release, line))
    host = BootHost(root, {**files_of("metal"), **files}, [])
    host.boot()
    return host


def systemd_boot_kernel(release: str, line: str) -> Dict[str, str]:
    """A kernel as 90-loaderentry.install of systemd 252 adds it, with these arguments."""
    token = "0123456789abcdef0123456789abcdef"
    folder = f"/{token}/{release}"
    entry = (
        f"title      Debian GNU/Linux 12 (bookworm)\nversion    {release}\nmachine-id {token}\nsort-key   debian\n"
        f"options    {line} systemd.machine_id={token}\nlinux      {folder}/linux\n"
        f"initrd     {folder}/initrd.img-{release}\n"
    )
    return {
        f"/boot/efi/loader/entries/{token}-{release}.conf": entry,
        f"/boot/efi{folder}/linux": "kernel",
        f"/boot/efi{folder}/initrd.img-{release}": "initrd",
    }


def bls_entry(version: str, options: str) -> str:
    """An entry as kernel-install writes it."""
    return (
        f"title Red Hat Enterprise Linux ({version})\nversion {version}\nlinux /vmlinuz-{version}\n"
        f"initrd /initramfs-{version}.img $tuned_initrd\noptions {options}\ngrub_users $grub_users\n"
    )


def install_kernel(host: BootHost, release: str) -> None:
    """A kernel upgrade on Debian: the package's hook runs update-grub."""
    root = Path(host.root)
    for path, text in _kernels(release, initrd="initrd.img").items():
        (root / path.lstrip("/")).write_text(text)
    made = WritableHost.output(host, ["/usr/sbin/grub-mkconfig"])
    (root / "boot/grub/grub.cfg").write_bytes(made)


def _kernels(release: str, initrd: str) -> Dict[str, str]:
    suffix = ".img" if initrd == "initramfs" else ""
    return {f"/boot/vmlinuz-{release}": "kernel", f"/boot/{initrd}-{release}{suffix}": "initrd"}


def _generated(root: Path, files: Dict[str, str], tools: Sequence[str], config: str) -> BootHost:
    host = BootHost(root, files, tools)
    (root / config.lstrip("/")).write_bytes(WritableHost.output(host, [f"/usr/sbin/{tools[0]}"]))
    host.boot()
    return host
