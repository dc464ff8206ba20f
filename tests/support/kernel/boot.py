# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot of the fake kernel: its files are new, its arguments take effect, and systemd applies the files in /etc.

After the kernel's admin-guide/kernel-parameters, sysctl.d(5), tmpfiles.d(5), modprobe.d(5) and systemd.mount(5);
written apart from the engine.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from tests.support.hosts import write
from tests.support.kernel.nics import line_number

Take = Callable[[str, str], None]  # an order to the kernel: path and text
VOLATILE = ("/proc/", "/sys/", "/run/", "/dev/")
_FIRST_MSI = 24  # the interrupts below it belong to the chipset
_KIB = {"K": 1, "M": 1024, "G": 1024 * 1024}


def power_on(root: Path, hardware: Dict[str, str]) -> None:
    """/proc, /sys, /run and /dev hold the files of the hardware and nothing else."""
    files = {path: text for path, text in hardware.items() if path.startswith(VOLATILE)}
    clear(root, files, VOLATILE)
    os.makedirs(f"{root}/run", exist_ok=True)
    write(root, files)


def clear(root: Path, files: Dict[str, str], tops: Sequence[str]) -> None:
    """Remove every other file, and empty folders."""
    for top in tops:
        if os.path.isdir(f"{root}{top}"):
            _clear(f"{root}{top}".rstrip("/"), len(str(root)), files)


def _clear(folder: str, start: int, files: Dict[str, str]) -> bool:
    """Clear a folder; whether anything is left in it."""
    left = False
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if _clear(entry.path, start, files):
                    left = True
                else:
                    os.rmdir(entry.path)
            elif entry.path[start:] in files:
                left = True
            else:
                os.unlink(entry.path)
    return left


def exchange(root: Path, before: Dict[str, str], after: Dict[str, str]) -> None:
    """Remove files that are only in `before`, with everything else in their folders; add those only in `after`."""
    for path in before.keys() - after.keys():
        Path(f"{root}{path}").unlink(missing_ok=True)
    kept = {folder for path in after for folder in _above(path)}
    for folder in sorted({folder for path in before.keys() - after.keys() for folder in _above(path)} - kept):
        shutil.rmtree(f"{root}{folder}", ignore_errors=True)
    table = f"{root}/proc/interrupts"
    lines = dict(_interrupts(Path(table).read_text())) if os.path.exists(table) else {}
    previous = dict(_interrupts(before.get("/proc/interrupts", ""))).keys()
    new = {path: text for path, text in after.items() if before.get(path) != text}
    if "/proc/interrupts" in new:
        wanted = dict(_interrupts(new["/proc/interrupts"]))
        extra = [number for number in lines if number not in previous and number not in wanted]
        every = sorted((*wanted, *extra), key=line_number)
        new["/proc/interrupts"] = "".join(lines.get(word, wanted.get(word, "")) for word in every)
    write(root, new)


def _above(path: str) -> Iterator[str]:
    while path.count("/") > 1:
        path = os.path.dirname(path)
        yield path


def _interrupts(table: str) -> Iterator[Tuple[str, str]]:
    """Number or name of each line."""
    for line in table.splitlines(keepends=True):
        yield line.partition(":")[0].strip(), line


def renumbered(hardware: Dict[str, str], by: int) -> Dict[str, str]:
    """The same hardware with other interrupt numbers, which each boot may give."""

    def after(match: "re.Match[str]") -> str:
        number = int(match[2])
        return f"{match[1]}{number + by if number >= _FIRST_MSI else number}{match[3]}"

    files = {re.sub(r"^(/proc/irq/|/sys/.*/msi_irqs/)(\d+)(/.*|)$", after, path): hardware[path] for path in hardware}
    table = re.sub(r"^( *)(\d+)(:)", after, hardware.get("/proc/interrupts", ""), flags=re.MULTILINE)
    if table:
        files["/proc/interrupts"] = re.sub(r"( PCI-MSI )(\d+)(-edge)", after, table)
    return files


def obey(root: Path, arguments: Sequence[str], take: Take) -> None:
    """Apply the kernel arguments that an operator or a tuner sets, in their order; others have no effect."""
    pages = "2M"
    for argument in arguments:
        name, _equals, value = argument.partition("=")
        if name == "hugepagesz":
            pages = value
        elif name == "hugepages":
            _reserve(root, pages, value)
        elif name == "transparent_hugepage":
            take("/sys/kernel/mm/transparent_hugepage/enabled", value)
        elif name == "numa_balancing":
            take("/proc/sys/kernel/numa_balancing", "1" if value == "enable" else "0")
        elif name in ("intel_idle.max_cstate", "processor.max_cstate") and value != "0":
            _idle_states(root, int(value))
        elif name in ("isolcpus", "nohz_full"):
            file = root / "sys/devices/system/cpu" / {"isolcpus": "isolated"}.get(name, name)
            if file.exists():  # flags such as domain come before the list
                file.write_text(value.lstrip("abcdefghijklmnopqrstuvwxyz_,") + "\n")
        elif argument == "idle=poll":
            _idle_states(root, -1)
        elif "." in name:
            _parameter(root, *name.split(".", 1), value)


def _reserve(root: Path, size: str, counts: str) -> None:
    """A number spread over the nodes, or node:number,… since Linux 5.16."""
    kib = int(size[:-1]) * _KIB[size[-1].upper()]
    nodes = sorted((root / "sys/devices/system/node").glob(f"node*/hugepages/hugepages-{kib}kB/nr_hugepages"))
    numbers = sorted(int(node.parts[-4][4:]) for node in nodes)
    if ":" in counts:
        given = dict(part.split(":") for part in counts.split(","))
        wanted = {number: int(given.get(str(number), "0")) for number in numbers}
    else:
        whole = int(counts)
        wanted = {
            number: whole // len(numbers) + (place < whole % len(numbers)) for place, number in enumerate(numbers)
        }
    for node in nodes:
        node.write_text(f"{wanted[int(node.parts[-4][4:])]}\n")
    every = root / f"sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages"
    if every.exists():
        every.write_text(f"{sum(wanted.values())}\n")


def _idle_states(root: Path, most: int) -> None:
    """States deeper than `most` aren't registered; with -1 none is, and no driver."""
    cpu = root / "sys/devices/system/cpu"
    for state in cpu.glob("cpu*/cpuidle/state*"):
        if int(state.name[5:]) > most:
            for file in state.iterdir():
                file.unlink()
            state.rmdir()
    driver = cpu / "cpuidle/current_driver"
    if most < 0 and driver.exists():
        driver.write_text("none\n")


def one_node(root: Path) -> None:
    """All CPUs and devices are on one node, which spans the memory of all."""
    folder = root / "sys/devices/system/node"
    (folder / "online").write_text("0\n")
    (folder / "node0/cpulist").write_text((root / "sys/devices/system/cpu/online").read_text())
    (folder / "node0/distance").write_text("10\n")
    for node in folder.glob("node[1-9]*"):
        for file in sorted(node.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        node.rmdir()
    for file in (*root.glob("sys/devices/pci*/*/numa_node"), *root.glob("proc/irq/*/node")):
        file.write_text("-1\n")


def _parameter(root: Path, module: str, name: str, value: str) -> None:
    """A parameter of a module: those of nvme_core hold for the disks that it finds."""
    module = module.replace("-", "_")
    file = root / f"sys/module/{module}/parameters/{name}"
    if not file.exists():
        return
    file.write_text(f"{value}\n")
    if (module, name) == ("nvme_core", "io_timeout"):
        ticks = int(value) * 250 & 0xFFFFFFFF  # NVME_IO_TIMEOUT: unsigned seconds * HZ
        for queue in root.glob("sys/devices/**/nvme*/queue/io_timeout"):
            queue.write_text(f"{ticks * 4 & 0xFFFFFFFF}\n")


def modules(root: Path) -> None:
    """modprobe.d: options of modules that are loaded while booting."""
    for _path, lines in _configuration(root, "modprobe.d", ("etc", "run", "usr/lib")):
        for line in lines:
            word, *rest = line.split()
            if word == "options" and rest:
                for option in rest[1:]:
                    _parameter(root, rest[0], *option.partition("=")[::2])


def sysctl(root: Path, take: Take) -> None:
    """systemd-sysctl: the last file by name wins, whichever folder it is in."""
    values: Dict[str, str] = {}
    for _path, lines in _configuration(root, "sysctl.d", ("etc", "run", "usr/local/lib", "usr/lib")):
        for line in lines:
            key, equals, value = line.partition("=")
            name = key.strip().lstrip("-")
            if equals:
                # The first separator decides how the others are read.
                slashes = "/" in name and ("." not in name or name.index("/") < name.index("."))
                values[name if slashes else name.translate(str.maketrans("./", "/."))] = value.strip()
    for name, value in values.items():
        if (root / "proc/sys" / name).exists():
            with suppress(OSError):
                take(f"/proc/sys/{name}", value)


def tmpfiles(root: Path, take: Take) -> None:
    """systemd-tmpfiles --create --boot: lines that write to files; of two lines for a path the first file's holds."""
    known: List[str] = []
    for _path, lines in _configuration(root, "tmpfiles.d", ("etc", "run", "usr/lib")):
        for line in lines:
            kind, pattern, *rest = line.split(None, 6)
            if kind.rstrip("!+-=~^") != "w" or pattern in known:
                continue
            known.append(pattern)
            for file in sorted(glob.glob(f"{root}{pattern}")):
                with suppress(OSError):
                    take(file[len(str(root)) :], rest[4] if len(rest) > 4 else "")


def _configuration(root: Path, folder: str, tops: Sequence[str]) -> Iterator[Tuple[str, List[str]]]:
    """Files sorted by name, each from the first folder that has it; their lines without comments."""
    paths: Dict[str, Path] = {}
    for top in reversed(tops):
        paths.update((path.name, path) for path in (root / top / folder).glob("*.conf"))
    for name in sorted(paths):
        text = paths[name].read_text() if paths[name].exists() else ""
        lines = [line.strip() for line in text.splitlines()]
        yield name, [line for line in lines if line and line[0] not in "#;"]


def mounts(root: Path) -> Iterator[str]:
    """The mount units that local-fs.target wants and whose condition holds."""
    for link in sorted((root / "etc/systemd/system/local-fs.target.wants").glob("*.mount")):
        unit = root / "etc/systemd/system" / link.name
        if unit.exists() and conditions_hold(root, unit.read_text()):
            yield link.name


def conditions_hold(root: Path, unit: str) -> bool:
    """Whether systemd would start a unit with this text: its conditions about paths and kernel arguments."""
    arguments = (root / "proc/cmdline").read_text().split()
    for kind, no, word in re.findall(r"^Condition(PathExists|KernelCommandLine)=(!?)(.*)$", unit, re.MULTILINE):
        present = os.path.lexists(f"{root}{word}") if kind == "PathExists" else word in arguments
        if present == bool(no):
            return False
    return True
