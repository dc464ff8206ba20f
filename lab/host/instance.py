# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of this checkout: each runs in a folder of its own, whose name is the host's name."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab import architecture, bootloader, cache, deps, image, keys, process, qemu, shape, xen
from lab.error import LabError
from lab.host import BOOT_LIMIT_SECONDS, QEMU_LOG, STATE, Host
from lab.keys import Keys
from lab.progress import Progress
from lab.qemu import accel, emulator, plugged, supervisor
from lab.shape import Shape

LOAD_LIMIT_SECONDS = 60.0
SAVE_LIMIT_SECONDS = 120.0
MONITOR_LIMIT_SECONDS = 120.0
_SAVED = "memory"
_OWNER = "owner"
_WARM_UP = "python3 -c 'import json, subprocess, tempfile, zipfile, pwd, shlex, socket, platform' && sync"


def folder() -> Path:
    """Where this checkout's hosts live: $NEARMETAL_LAB_INSTANCES, else .cache/lab in the checkout."""
    own = os.environ.get("NEARMETAL_LAB_INSTANCES")
    return Path(own).absolute() if own else Path(__file__).resolve().parents[2] / ".cache" / "lab"


def up(name: str, instance: str | None = None, *, outlive: bool = True, progress: Progress | None = None) -> Host:
    """Bring up a fresh host of a shape and return when ssh answers.

    `instance` is its name, by default the shape's with a random end. With `outlive` false the host dies with the
    thread that called this.
    """
    progress = progress or Progress()
    wanted = shape.load(name)
    home = _claim(instance or f"{wanted.name}-{secrets.token_hex(3)}")
    try:
        deps.require(wanted.image.architecture)
        lab_keys = keys.obtain(progress)
        saved, files, acceleration = _prepared(wanted, lab_keys, progress)
        what = "loading its snapshot" if saved else "booting"
        with progress.step(f"{home.name}: {what}"):
            incoming = [f"exec:cat {shlex.quote(str(saved / _SAVED))}"] if saved else []
            if saved:
                shutil.copyfile(saved / qemu.SERIAL, home / qemu.SERIAL)
            command = qemu.command(wanted, acceleration)
            host = _start(home.name, wanted, files, home, command, lab_keys, outlive, incoming)
            if saved:
                _wake(host)
            else:
                host.booted()
    except BaseException:
        discard(home)
        raise
    return host


@contextlib.contextmanager
def running(name: str, instance: str | None = None, progress: Progress | None = None) -> Iterator[Host]:
    """A host for the length of a with statement."""
    host = up(name, instance, outlive=False, progress=progress)
    try:
        yield host
    finally:
        host.down()


def resized(host: Host, name: str, *, outlive: bool = True, progress: Progress | None = None) -> Host:
    """Power a host off and start its disks as another shape, as stop, change of type and start do on EC2.

    Returns when ssh answers, at another port.
    """
    progress = progress or Progress()
    wanted = shape.load(name)
    home = Path(host.folder)
    lacking = [disk for disk in map(qemu.extra_disk, range(len(wanted.disks))) if not (home / disk).exists()]
    if wanted.xen or lacking:
        lacks = ", ".join(lacking) or "a disk of dom0"
        raise LabError(f"{host.name} can't start as {wanted.name}: it lacks {lacks}; take a shape with its disks")
    lab_keys = keys.obtain(progress)
    acceleration = _acceleration(wanted, image.root(wanted.image, lab_keys, progress), progress)
    with progress.step(f"{host.name}: powering off, to start as {wanted.name}"):
        host.run("sync; systemctl --no-block poweroff")
        host.wait(lambda: False, BOOT_LIMIT_SECONDS)
        host.end()
        again = _launch(host.name, wanted, home, qemu.command(wanted, acceleration), lab_keys, outlive)
        again.reached()
    return again


def started(host: Host, *, outlive: bool = True) -> Host:
    """Start the disk of a host whose power was cut (`host.end()`), and return when it has booted."""
    wanted = shape.load(host.shape)
    lab_keys = keys.obtain(Progress())
    _saved, _files, acceleration = _prepared(wanted, lab_keys, Progress())
    command = qemu.command(wanted, acceleration)
    again = _launch(host.name, wanted, Path(host.folder), command, lab_keys, outlive)
    try:
        again.booted()
    except BaseException:
        again.end()
        raise
    return again


def snapshot(name: str, progress: Progress) -> Path | None:
    """Build what a shape's hosts start from, unless the cache has it; null for a shape that can't be saved."""
    wanted = shape.load(name)
    deps.require(wanted.image.architecture)
    return _prepared(wanted, keys.obtain(progress), progress)[0]


def find(name: str) -> Host:
    """A running host by its name."""
    host = Host.read(folder() / name)
    if host is None or not host.runs:
        known = ", ".join(found.name for found in hosts()) or "none"
        raise LabError(f"no host called {name} is running (running: {known}); start it: python3 -m lab up {name}")
    return host


def hosts() -> list[Host]:
    """The running hosts, by name."""
    read = [Host.read(path.parent) for path in sorted(folder().glob(f"*/{STATE}"))]
    return [host for host in read if host is not None and host.runs]


def names() -> list[str]:
    """Every host of this checkout, dead ones and half-started ones too."""
    return sorted(home.name for home in folder().glob("*") if home.is_dir())


def down(name: str) -> bool:
    """End a host or remove what a dead one left; false when there is neither."""
    home = folder() / name
    if not shape.NAME.fullmatch(name) or not home.is_dir():
        return False
    discard(home)
    return True


def discard(home: Path) -> None:
    """End whatever runs in a folder and remove it."""
    host = Host.read(home)
    if host is None:
        # The process that started it was stopped before host.json was written.
        process.end_in(home, [supervisor.INTERPRETER, *(known.qemu for known in architecture.BY_NAME.values())])
        shutil.rmtree(home)
    else:
        host.down()


def _claim(name: str) -> Path:
    if not shape.NAME.fullmatch(name):
        raise LabError(f"{name}: a host's name is made of a-z, 0-9, - and _, 40 characters at most")
    home = folder() / name
    home.parent.mkdir(parents=True, exist_ok=True)
    if home.is_dir() and not _in_use(home):
        discard(home)
    try:
        home.mkdir(mode=0o700)
    except FileExistsError as error:
        raise LabError(
            f"{name} is already up; log in: python3 -m lab ssh {name}; or end it: python3 -m lab down "
            f"{name}; or give the new one another name: --as NAME"
        ) from error
    (home / _OWNER).write_text(json.dumps([os.getpid(), process.start_ticks(os.getpid())]), encoding="ascii")
    return home


def _in_use(home: Path) -> bool:
    host = Host.read(home)
    if host is not None:
        return host.runs
    try:
        pid, started = json.loads((home / _OWNER).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        # Another process has made the folder, and hasn't written its owner or host.json yet.
        return True
    return bool(process.start_ticks(pid) == started)


def _start(
    name: str,
    wanted: Shape,
    files: dict[str, Path],
    home: Path,
    command: list[str],
    lab_keys: Keys,
    outlive: bool,
    incoming: Sequence[str] = (),
) -> Host:
    for file, base in files.items():
        if base.suffix == ".qcow2":
            image.overlay(base, home / file)
        else:
            (home / file).symlink_to(base)
    for number, extra in enumerate(wanted.disks):
        process.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", qemu.extra_disk(number), f"{extra.size_mib}M"],
            home / QEMU_LOG,
            cwd=home,
        )
    return _launch(name, wanted, home, command, lab_keys, outlive, incoming)


def _launch(
    name: str,
    wanted: Shape,
    home: Path,
    command: list[str],
    lab_keys: Keys,
    outlive: bool,
    incoming: Sequence[str] = (),
) -> Host:
    """Start a host in its folder; only the first QEMU loads a snapshot."""
    again = [*emulator.program(wanted, Progress()), *command]
    supervisor.write(home, [*again, *(("-incoming", *incoming) if incoming else ())], again)
    plugged.forget(home)
    pid = process.launch(supervisor.PROGRAM, home / QEMU_LOG, outlive=outlive, cwd=home, env=supervisor.ENVIRONMENT)
    host = Host.of(name, home, wanted, pid, lab_keys)
    try:
        host.write()
        host.wait(lambda: _port(host) is not None, MONITOR_LIMIT_SECONDS)
        port = _port(host)
        if port is None:
            raise host.stuck("QEMU's monitor does not answer")
        host = dataclasses.replace(host, port=port)
        host.write()
    except BaseException:
        host.end()
        raise
    return host


def _port(host: Host) -> int | None:
    try:
        with host.monitor() as monitor:
            return monitor.ssh_port()
    except (FileNotFoundError, ConnectionRefusedError):
        return None


def _prepared(wanted: Shape, lab_keys: Keys, progress: Progress) -> tuple[Path | None, dict[str, Path], str]:
    """The snapshot if the shape can have one, the files to start from by their names, and the acceleration."""
    made = image.root(wanted.image, lab_keys, progress)
    acceleration = _acceleration(wanted, made, progress)
    disk = bootloader.bootable(made, wanted.image.architecture, wanted.kernel_args, acceleration, progress)
    files = {qemu.DISK: disk / qemu.DISK}
    if wanted.xen:
        files |= xen.files(wanted.xen, lab_keys, progress)
    if not wanted.can_be_saved:
        return None, files, acceleration
    command = qemu.command(wanted, acceleration)
    origin = [path.parent.name for path in files.values()]
    version = emulator.version(emulator.program(wanted, progress))
    entry = cache.key(*origin, command, version, _cpu_model(), _WARM_UP)

    def build(beside: Path) -> None:
        with progress.step(f"{wanted.name}: first boot through GRUB, for the snapshot"):
            host = _start(wanted.name, wanted, files, beside, command, lab_keys, outlive=False)
            try:
                host.booted()
                host.run(_WARM_UP)
                _stop_idle(host)
                _save(host)
            finally:
                host.end()
        for left in (STATE, qemu.MONITOR, supervisor.COMMAND, supervisor.QEMU, "disk.log", "dom0.log"):
            (beside / left).unlink(missing_ok=True)

    saved = cache.obtain("snapshots", entry, build, progress)
    return saved, {name: saved / name for name in files}, acceleration


def _acceleration(wanted: Shape, made: Path, progress: Progress) -> str:
    return accel.choose(wanted.image.architecture, made / "vmlinuz", progress)


def _wake(host: Host) -> None:
    with host.monitor() as monitor:

        def loading() -> bool:
            answer = monitor.execute("query-status")
            return isinstance(answer, dict) and answer.get("status") == "inmigrate"

        if not host.wait(lambda: not loading(), LOAD_LIMIT_SECONDS):
            raise host.stuck(f"its memory was not loaded within {LOAD_LIMIT_SECONDS:.0f} s")
        # It was saved while stopped, so it waits for this.
        monitor.execute("cont")
    host.set_clock()


def _stop_idle(host: Host) -> None:
    """Stop a host while all of its processors wait for an interrupt.

    A hypervisor such as Xen waits outside of its guest. QEMU 7.2 saves a processor inside of a nested guest, but
    refuses to load it ("vCPU set in guest-mode inconsistent with migrated kernel nested state").
    """
    with host.monitor() as monitor:

        def idle() -> bool:
            monitor.execute("stop")
            if "HLT=0" not in monitor.processors():
                return True
            monitor.execute("cont")
            return False

        if not host.wait(idle, SAVE_LIMIT_SECONDS):
            raise host.stuck("its processors are never idle, so its memory can't be saved")


def _save(host: Host) -> None:
    """Save the memory of a stopped host."""
    with host.monitor() as monitor:
        monitor.execute("migrate-set-parameters", **{"max-bandwidth": 10**11})
        monitor.execute("migrate", uri=f"exec:cat > {shlex.quote(str(Path(host.folder, _SAVED)))}")

        def status() -> str:
            answer = monitor.execute("query-migrate")
            return str(answer.get("status")) if isinstance(answer, dict) else ""

        host.wait(lambda: status() in ("completed", "failed"), SAVE_LIMIT_SECONDS)
        if status() != "completed":
            raise host.stuck("its memory could not be saved")
        monitor.execute("quit")


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if line.startswith("model name")), "")
