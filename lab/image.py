# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root disks: a Debian root built by mmdebstrap, then a boot loader that the guest installs itself.

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
from lab.error import LabError
from lab.keys import Keys
from lab.progress import Progress
from lab.shape import Image

GUEST = Path(__file__).parent / "guest"
MAKE_DISK = Path(__file__).parent / "make-disk.sh"
GRUB_LIMIT_SECONDS = 180.0
_LEFT_OUT = ("doc", "man", "info", "locale", "lintian", "bash-completion")


def root(image: Image, keys: Keys, progress: Progress) -> Path:
    """A folder with disk.qcow2 (no boot loader yet), vmlinuz, initrd.img and uuid of an image."""
    sources = deps.archive_sources(image)
    code = cache.sources(Path(__file__), MAKE_DISK, GUEST)
    entry = cache.key(image.suite, image.packages, image.disk_mib, sources, keys.public(), code)

    def build(folder: Path) -> None:
        with progress.step(f"image {image.name}: installing {len(image.packages)} packages and what they need"):
            _install(image, sources, keys, folder)
        with progress.step(f"image {image.name}: making a disk of it"):
            identifier = (folder / "uuid").read_text(encoding="ascii")
            process.run([str(MAKE_DISK), identifier, str(image.disk_mib)], folder / "build.log", cwd=folder)

    return cache.obtain("images", entry, build, progress)


def bootable(made: Path, kernel_args: str, accel: str, progress: Progress) -> Path:
    """A folder with disk.qcow2, over the disk of `root`, that boots by its own GRUB with these kernel arguments."""

    def build(folder: Path) -> None:
        with progress.step(f'installing GRUB with "{kernel_args}" from inside the image'):
            _install_grub(made, kernel_args, accel, folder)

    return cache.obtain("disks", cache.key(made.name, kernel_args), build, progress)


def overlay(base: Path, disk: Path) -> None:
    """A throw-away disk over another one, which stays as it is."""
    process.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(base), str(disk)], disk.with_suffix(".log")
    )


def _install(image: Image, sources: list[str], keys: Keys, folder: Path) -> None:
    identifier = str(uuid.uuid4())
    (folder / "uuid").write_text(identifier, encoding="ascii")
    _guest_tar(folder / "guest.tar", keys, identifier)
    argv = ["mmdebstrap", "--variant=minbase", "--format=tar", f"--include={','.join(image.packages)}"]
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
        argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *argv, "--mode=root"]
    else:
        # Its user namespace can't enter a private folder.
        temporary = Path("/var/tmp")
        argv += ["--mode=unshare"]
    argv += [image.suite, str(folder / "root.tar"), *sources]
    process.run(argv, folder / "build.log", env={"TMPDIR": str(temporary)})


def _guest_tar(path: Path, keys: Keys, identifier: str) -> None:
    made = {
        "root/.ssh/authorized_keys": keys.identity.with_suffix(".pub").read_bytes(),
        "etc/ssh/ssh_host_ed25519_key": keys.host_key.read_bytes(),
        "etc/ssh/ssh_host_ed25519_key.pub": keys.host_key.with_suffix(".pub").read_bytes(),
        "etc/fstab": f"UUID={identifier} / ext4 errors=remount-ro 0 1\n".encode(),
        "etc/default/grub.d/10_lab.cfg": b"",
    }
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
    if name.startswith("usr/local/sbin/"):
        return stat.S_IRWXU | 0o055
    if name.startswith(("root/", "etc/sudoers.d/")) or name.endswith("_key"):
        return stat.S_IRUSR | stat.S_IWUSR
    return 0o644


def _install_grub(made: Path, kernel_args: str, accel: str, folder: Path) -> None:
    overlay(made / "disk.qcow2", folder / "disk.qcow2")
    serial = folder / "serial.log"
    serial.touch()
    identifier = (made / "uuid").read_text(encoding="ascii")
    arguments = f"root=UUID={identifier} console=ttyS0 mitigations=off init=/usr/local/sbin/lab-grub -- {kernel_args}"
    cpu = "host" if accel == "kvm" else "max"
    argv = ["qemu-system-x86_64", *f"-accel {accel} -cpu {cpu} -m 512 -nodefaults -display none -no-reboot".split()]
    argv += ["-serial", f"file:{serial.name}", "-drive", "file=disk.qcow2,if=virtio,cache=unsafe"]
    argv += ["-kernel", str(made / "vmlinuz"), "-initrd", str(made / "initrd.img"), "-append", arguments]
    qemu = process.start(argv, folder / "qemu.log", outlive=False, cwd=folder)
    try:
        process.wait_until(lambda: qemu.poll() is not None, GRUB_LIMIT_SECONDS)
    finally:
        process.end(qemu)
    if b"lab-grub: done" not in serial.read_bytes():
        raise LabError(
            f"the image did not install its boot loader in {GRUB_LIMIT_SECONDS:.0f} s; the end of its "
            f"console:\n{process.tail(serial)}"
        )
