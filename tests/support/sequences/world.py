# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that nearmetal tunes, and its twin, which has every other event too: after restore they are alike."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from tests.support import fresh_host, hosts
from tests.support.boot_trees import AMAZON_2_TOOLS, DEBIAN_TOOLS, BootHost, amazon_2_files, debian_files, rhel_files
from tests.support.fake_kernel import FakeKernel
from tests.support.files.processes import first, together
from tests.support.kernel.boot import clear
from tests.support.kernel.memory import MIN_FREE, THP
from tests.support.sequences.left import is_about
from tests.support.sequences.wanted import PROGRAMS

KILLED = "killed"  # in place of a sentence that a run died too early to say

# How often each host of tests/hosts is drawn: those with more of everything more often.
HOSTS = {
    "metal": 3,
    "nitro_big": 3,
    "nitro_burstable": 4,
    "nitro_old_kernel": 2,
    "xen_hvm": 4,
    "xen_hvm_4_sockets": 1,
    "nitro": 4,
    "metal_amd": 4,
    "graviton_metal": 3,
    "xen_pv": 2,
}
# The boot loader of each; the others have none on their disk.
BOOT_FILES: Mapping[str, Dict[str, str]] = {
    **dict.fromkeys(("metal", "metal_amd", "nitro_burstable", "nitro_big"), rhel_files(9)),
    **dict.fromkeys(("nitro", "graviton_metal"), debian_files()),
    "nitro_old_kernel": amazon_2_files(),
}
_TOOLS = {"/boot/grub/grub.cfg": DEBIAN_TOOLS, "/boot/grub2/grub.cfg": AMAZON_2_TOOLS}
# What nearmetal keeps in /run says nothing about the host, and is lost at the boot.
_OURS = tuple(f"run/nearmetal/{name}" for name in ("lock", "fingerprint", ".fingerprint.new", "until_boot.json"))
_EXTRA = {"/etc/group": "root:x:0:\n"}
_CPU = "/sys/devices/system/cpu"
_UNCORE = {"min": "800000", "max": "2400000", "initial_min": "800000", "initial_max": "2400000"}
# What only processors and firmware without a hypervisor show, and CPUs that can be isolated.
_METAL = {
    "/sys/firmware/acpi/platform_profile": "balanced\n",
    "/sys/firmware/acpi/platform_profile_choices": "low-power balanced performance\n",
    f"{_CPU}/isolated": "\n",
    f"{_CPU}/nohz_full": "(null)\n",
    **{f"{_CPU}/cpu{cpu}/power/energy_perf_bias": "6\n" for cpu in range(16)},
    **{
        f"{_CPU}/intel_uncore_frequency/package_{package:02}_die_00/{name}_freq_khz": f"{text}\n"
        for package in range(2)
        for name, text in _UNCORE.items()
    },
}


class Remembering(FakeKernel):
    """Looks a folder and what is in /proc and /sys up once in each boot; a life reads each of them hundreds of times.

    No folder becomes a link while a host runs, and no file of the kernel does but by a device.
    """

    def __init__(self, root: Path, files: Dict[str, str], *rest: Any) -> None:
        self._known: Dict[str, str] = {}
        self.writing: Callable[[str], None] = lambda _path: None  # called at each write to a file of the kernel
        super().__init__(root, files, *rest)

    def reboot(self, boot_id: str, hardware: Optional[Dict[str, str]] = None) -> None:
        self._known.clear()
        super().reboot(boot_id, hardware)

    def replug(self, hardware: Dict[str, str]) -> None:
        self._known.clear()
        super().replug(hardware)

    def rename(self, name: str, other: str, hardware: Dict[str, str]) -> None:
        self._known.clear()
        super().rename(name, other, hardware)

    def write_value(self, path: str, text: str) -> None:
        self.writing(path)
        super().write_value(path, text)

    def _inside(self, path: str) -> str:
        if path in self._known:
            return self._known[path]
        folder, _slash, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return super()._inside(path)
        if folder not in self._known:
            self._known[folder] = super()._inside(folder)
        found = f"{self._known[folder]}/{name}"
        found = super()._inside(path) if os.path.islink(found) else found
        if path.startswith(("/proc/", "/sys/")):
            self._known[path] = found
        return found


class RememberingBootHost(Remembering, BootHost):
    """The same for a host with a boot loader, whose programs are the only ones that run."""

    def command(self, argv: "list[str] | tuple[str, ...]", timeout: float = 60) -> str:
        return (BootHost if argv[0].startswith("/") else FakeKernel).command(self, argv, timeout)


_made_configs: Dict[str, bytes] = {}  # of hosts that nobody has tuned


def _grub_config(host: BootHost, program: str) -> bytes:
    if program not in _made_configs:
        _made_configs[program] = host.output([program])
    return _made_configs[program]


class World:
    """Both hosts, and a record of who wrote where."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.spec: Dict[str, Any] = json.loads((hosts.FOLDER / f"{name}.json").read_text())
        for kind in ("nics", "disks"):
            for index, device in enumerate(self.spec.get(kind, ())):
                device["index"] = index  # its number and those of its interrupts stay, whichever others are away
        self.away: List[str] = []  # devices that are unplugged
        self.programs: Sequence[str] = ()  # that run until the next boot
        self.boots = 0
        self.host, self.twin = (self._made(folder / role) for role in ("tuned", "twin"))
        self.strict: Dict[str, str] = {}  # path → the text that somebody wrote, unless nearmetal wrote later
        self.origins: Dict[str, Set[str]] = {}  # path → the foreign text that it had
        self.waits: Set[str] = set()  # sentences of runs about what only the next boot brings back

    def _made(self, folder: Path) -> Remembering:
        files = self._files()
        folder.mkdir(parents=True, exist_ok=True)
        clear(folder, files, ("/",))
        config = next((path for path in _TOOLS if files.get(path) == ""), "")
        if self.name not in BOOT_FILES:
            host = Remembering(folder, files)
        else:
            host = RememberingBootHost(folder, files, _TOOLS.get(config, ()))
            if config:
                (folder / config[1:]).write_bytes(_grub_config(host, f"/usr/sbin/{_TOOLS[config][0]}"))
            host.boot()
        fresh_host.probe(host)
        return host

    def _files(self) -> Dict[str, str]:
        """The files of the present hardware."""
        spec = dict(self.spec)
        for kind in ("nics", "disks"):
            if kind in spec:
                spec[kind] = [device for device in spec[kind] if device["name"] not in self.away]
        running = together(first(), *(PROGRAMS[name] for name in self.programs))
        files = fresh_host.routed({**hosts.built(spec), **_EXTRA, **running})
        files.update(BOOT_FILES.get(self.name, {}))
        files.update(_METAL if self.name == "metal" else {})
        return {"/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n", **files}

    def both(self) -> Tuple[Remembering, Remembering]:
        return self.host, self.twin

    def engine_wrote(self, path: str) -> None:
        """nearmetal is about to write a kernel file."""
        for name in (self._place(path), _counterpart(path)):
            self.strict.pop(name, None)

    def _place(self, path: str) -> str:
        """The path without links."""
        return self.host.real(path)[len(self.host.root) :]

    def somebody(self, path: str, text: str) -> bool:
        """Write a kernel file on both hosts, as somebody else; whether the write succeeded."""
        before, other = (self._text(host, path) for host in self.both())
        if before is None or other is None:
            return False
        cpu = re.fullmatch(rf"{_CPU}/cpu(\d+)/online", path)
        if cpu is not None and (before != other or not self.twin.cpus.is_first(int(cpu[1]))):
            return False  # where SMT is off on one of them, nobody can do the same to a second thread of both
        numbers = [self._text(host, MIN_FREE) for host in self.both()]
        also = _counterpart(path)
        limits = {self._text(self.twin, also) or ""}
        try:
            for host in self.both():
                host._take(path, text)
        except OSError:
            return False
        if path == f"{THP}/enabled":  # nobody sees whether the kernel takes the present number for a user's
            # After a run that failed, nobody sees either which of the two writes of huge pages moved it.
            numbers += [self._text(host, MIN_FREE) for host in self.both()]
            self.origins.setdefault(MIN_FREE, set()).update(number for number in numbers if number is not None)
        after = self._text(self.host, path)
        if also:  # the kernel made it 0, unless a restore makes it the limit again
            self.strict.pop(also, None)
            self.origins.setdefault(also, set()).update(limits, (self._text(host, also) or "" for host in self.both()))
        path = self._place(path)
        self.origins.setdefault(path, set()).update(text for text in (other, after) if text is not None)
        if after is not None and after != before:
            self.strict[path] = after
        else:
            self.strict.pop(path, None)
        return True

    def back_online(self) -> None:
        """Somebody brings the CPUs online again that they took offline."""
        for path in [path for path in self.strict if re.fullmatch(rf"{_CPU}/cpu\d+/online", path)]:
            self.somebody(path, "1")

    def their_file(self, path: str, text: Optional[str]) -> None:
        """Somebody writes or removes a file of their own."""
        for host in self.both():
            place = Path(host.root) / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                place.unlink(missing_ok=True)
            else:
                place.write_text(text)

    def reboot(self) -> None:
        """Both boot; nothing that somebody wrote at run time is left, nor what waits."""
        self.boots += 1
        self.programs = ()
        for host in self.both():
            host.reboot(f"{self.boots:08d}-2222-3333-4444-555555555555", self._files())
            fresh_host.probe(host)
        for known in (self.waits, self.strict, self.origins):
            known.clear()

    def replug(self, removed: List[str]) -> None:
        """Detach or attach devices on both hosts."""
        if removed == self.away:
            return
        back = [name for name in self.away if name not in removed]
        self.away = removed
        files = self._files()
        for host in self.both():
            host.replug(files)
            fresh_host.probe_only(host, back)
        for path in list(self.strict):
            if self._text(self.twin, path) is None:
                del self.strict[path]
                del self.origins[path]

    def start(self, programs: Sequence[str]) -> None:
        """These programs run from now on, and no others."""
        self.programs = programs
        for host in self.both():
            host.replug(self._files())

    def rename(self, name: str, other: str, live: bool = False) -> None:
        """A NIC has another name from the next boot on, or from now on."""
        for nic in self.spec["nics"]:
            if nic["name"] == name:
                nic["name"] = other
        self.away = [other if nic == name else nic for nic in self.away]
        if not live or other in self.away:
            return
        files = self._files()
        for host in self.both():
            host.rename(name, other, files)
        before, after = (f"/sys/class/net/{nic}/" for nic in (name, other))
        for known in (self.strict, self.origins):
            for path in [path for path in known if path.startswith(before)]:
                known[path.replace(before, after)] = known.pop(path)

    def journal(self) -> Optional[Dict[str, Any]]:
        """The raw journal."""
        place = Path(self.host.root) / "var/lib/nearmetal/journal.json"
        found: Optional[Dict[str, Any]] = json.loads(place.read_text()) if place.exists() else None
        return found

    def snapshot(self) -> Dict[str, bytes]:
        return files_below(Path(self.host.root))

    def differences(self) -> List[str]:
        """The places where the tuned host differs from its twin and no run has said so."""
        files, twin_files = self.snapshot(), files_below(Path(self.twin.root))
        found = []
        for name in sorted(files.keys() | twin_files.keys()):
            path = f"/{name}"
            if "/effective_" in path:
                continue  # the kernel's own choice among the CPUs where the interrupt may go
            text = files[name].decode(errors="replace") if name in files else None
            if path in self.strict:
                fine = text == self.strict[path]
            elif path in self.origins:
                fine = text in self.origins[path]
            else:
                texts = (files.get(name), twin_files.get(name))
                fine = texts[0] == texts[1] or _longest(path, *texts) or _same_in_force(path, *texts)
            if not fine and not self._waits(path):
                wanted = self.strict.get(path) or sorted(self.origins.get(path, ())) or _shown(twin_files.get(name))
                found.append(f"{path}: {_shown(files.get(name))}, should be {wanted!r}")
        return found

    def _waits(self, path: str) -> bool:
        """Whether a run said that the next boot brings a kernel file back, or died and may not have said it.

        What an argument of the running kernel did to other files has no sentence of its own.
        """
        if not path.startswith(("/proc/", "/sys/")):
            return False
        return any(KILLED in said or "running kernel" in said or is_about(said, path) for said in self.waits)

    @staticmethod
    def _text(host: FakeKernel, path: str) -> Optional[str]:
        try:
            return (Path(host.root) / path.lstrip("/")).read_text()
        except OSError:
            return None


def _counterpart(path: str) -> str:
    """The other file of a limit of dirty file cache; empty for every other path."""
    found = re.fullmatch(r"(/proc/sys/vm/dirty_(?:background_)?)(ratio|bytes)", path)
    return f"{found[1]}{'bytes' if found[2] == 'ratio' else 'ratio'}" if found is not None else ""


def _longest(path: str, *texts: Optional[bytes]) -> bool:
    """Whether all are the longest timeout of a disk: msecs_to_jiffies() makes one number of all from 2^31 on.

    What the driver's parameter gave, which reads differently, nobody can write.
    """
    return path.endswith("/queue/io_timeout") and all(text and int(text) >= 1 << 31 for text in texts)


def _same_in_force(path: str, *texts: Optional[bytes]) -> bool:
    """Whether all have one I/O scheduler in force: the kernel goes on to offer one that was loaded when it was set."""
    in_force = {match[0] for text in texts for match in [re.search(rb"\[.+\]", text or b"")] if match}
    return path.endswith("/queue/scheduler") and None not in texts and len(in_force) == 1


def _shown(data: Optional[bytes]) -> str:
    return "absent" if data is None else repr(data.decode(errors="replace")[:300])


def files_below(root: Path) -> Dict[str, bytes]:
    """Every file and link except the unimportant ones."""
    found: Dict[str, bytes] = {}
    start, folders = len(str(root)) + 1, [str(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    found[entry.path[start:]] = b"-> " + os.readlink(entry.path).encode()
                elif entry.is_dir():
                    folders.append(entry.path)
                else:
                    found[entry.path[start:]] = _bytes(entry.path)
    return {name: data for name, data in found.items() if name not in _OURS}


def _bytes(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 22)
    finally:
        os.close(descriptor)


def removed(folder: Path) -> None:
    """Remove the files of a world."""
    shutil.rmtree(folder, ignore_errors=True)


def changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> List[str]:
    """The paths that differ."""
    return sorted(f"/{name}" for name in before.keys() | after.keys() if before.get(name) != after.get(name))
