# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root disks without a boot loader: a Debian root built by mmdebstrap.

No loop device and no mount outside a namespace of its own: the file system is filled by mke2fs.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import uuid
from pathlib import Path

from lab import cache, deps, process
from lab.architecture import Architecture
from lab.error import LabError
from lab.keys import Keys
from lab.progress import Progress
from lab.shape import Image

GUEST = Path(__file__).parent / "guest"
MAKE_DISK = Path(__file__).parent / "make-disk.sh"
EMULATED = Path(__file__).parent / "emulated.sh"
# Run by mkinitramfs, first to ask what must run before it.
_HOOKS = "etc/initramfs-tools/hooks/"
_HOOK = """\
#!/bin/sh
[ "$1" != prereqs ] || exit 0
. /usr/share/initramfs-tools/hook-functions
manual_add_modules {}
"""
_LEFT_OUT = ("doc", "man", "info", "locale", "lintian", "bash-completion")


def root(image: Image, keys: Keys, progress: Progress) -> Path:
    """A folder with disk.qcow2, vmlinuz, initrd.img and uuid of an image."""
    sources = deps.archive_sources(image)
    code = cache.sources(Path(__file__), MAKE_DISK, EMULATED, GUEST)
    architecture = image.architecture
    what = (architecture.name, architecture.esp_mib, image.suite, image.packages, image.modules, image.disk_mib)
    entry = cache.key(what, sources, keys.public(), code)

    def build(folder: Path) -> None:
        with progress.step(f"image {image.name}: installing {len(image.packages)} packages and what they need"):
            _install(image, sources, keys, folder)
        with progress.step(f"image {image.name}: making a disk of it"):
            identifier = (folder / "uuid").read_text(encoding="ascii")
            sizes = [str(image.disk_mib), str(architecture.esp_mib)]
            process.run([str(MAKE_DISK), identifier, *sizes], folder / "build.log", cwd=folder)

    return cache.obtain("images", entry, build, progress)


def overlay(base: Path, disk: Path) -> None:
    """A throw-away disk over another one, which stays as it is."""
    process.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(base), str(disk)], disk.with_suffix(".log")
    )


def _install(image: Image, sources: list[str], keys: Keys, folder: Path) -> None:
    identifier = str(uuid.uuid4())
    (folder / "uuid").write_text(identifier, encoding="ascii")
    _guest_tar(folder / "guest.tar", keys, _fstab(image.architecture, identifier), image.modules)
    argv = ["mmdebstrap", "--variant=minbase", "--format=tar", f"--include={','.join(image.packages)}"]
    emulated = _emulated(image.architecture)
    if emulated:
        argv += [f"--architectures={image.architecture.name}", "--skip=check/qemu"]
    argv += [f"--aptopt={option}" for option in deps.proxies()]
    argv += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
    argv += [
        f"--essential-hook=tar-in {folder / 'guest.tar'} /",
        '--customize-hook=chroot "$1" /usr/local/sbin/lab-customise',
    ]
    temporary = folder / "tmp"
    temporary.mkdir()
    if os.geteuid() == 0:
        # Its mounts live in a namespace of their own, so that nothing stays mounted whatever happens.
        argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *emulated, *argv, "--mode=root"]
    else:
        # Its user namespace can't enter a private folder.
        temporary = Path("/var/tmp")
        argv += ["--mode=unshare"]
    argv += [image.suite, str(folder / "root.tar"), *sources]
    process.run(argv, folder / "build.log", env={"TMPDIR": str(temporary)})


def _emulated(architecture: Architecture) -> list[str]:
    """What a command that runs programs of this architecture begins with; nothing on a machine of the same one."""
    if architecture.cpu == os.uname().machine:
        return []
    if os.geteuid() and not Path(f"/proc/sys/fs/binfmt_misc/qemu-{architecture.cpu}").exists():
        raise LabError(
            f"an image of {architecture.name} needs a kernel that knows how to run its programs; tell it so, as root: "
            f"systemctl restart systemd-binfmt; or build the image as root"
        )
    return [str(EMULATED), architecture.cpu]


def _fstab(architecture: Architecture, identifier: str) -> str:
    esp = "LABEL=ESP /boot/efi vfat umask=0077 0 0\n" if architecture.esp_mib else ""
    return f"UUID={identifier} / ext4 errors=remount-ro 0 1\n{esp}"


def _guest_tar(path: Path, keys: Keys, fstab: str, modules: tuple[str, ...]) -> None:
    made = {
        "root/.ssh/authorized_keys": keys.identity.with_suffix(".pub").read_bytes(),
        "etc/ssh/ssh_host_ed25519_key": keys.host_key.read_bytes(),
        "etc/ssh/ssh_host_ed25519_key.pub": keys.host_key.with_suffix(".pub").read_bytes(),
        "etc/fstab": fstab.encode(),
        "etc/default/grub.d/10_lab.cfg": b"",
    }
    if modules:
        made["etc/initramfs-tools/conf.d/modules"] = b"MODULES=list\n"
        made[f"{_HOOKS}lab"] = _HOOK.format(" ".join(modules)).encode()
    for file in sorted(GUEST.rglob("*")):
        if file.is_file():
            made[str(file.relative_to(GUEST))] = file.read_bytes()
    with tarfile.open(path, "w") as tar:
        for name, content in made.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = _mode(name)
            tar.addfile(member, io.BytesIO(content))


def _mode(name: str) -> int:
    if name.startswith(("usr/local/sbin/", _HOOKS)):
        return stat.S_IRWXU | 0o055
    if name.startswith(("root/", "etc/sudoers.d/")) or name.endswith("_key"):
        return stat.S_IRUSR | stat.S_IWUSR
    return 0o644
