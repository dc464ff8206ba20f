# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power fails at a system call of a tune run. It always boots, tune converges, restore restores.

strace on the host writes each call to the serial console and holds the process
there for a moment. Then, and whenever the disk is written meanwhile, QEMU is frozen
and its disk copied: the copy is what a killed QEMU would leave. Most calls change
nothing on the disk, because their effect waits for a flush, and some change nothing
that is read again. Of the disks from which GRUB and the kernel read the same, one is
booted (`read_from`).
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab import deps, qemu
from lab.error import LabError
from lab.host import Host, instance

NAME = "molecule-powercut"
PROJECT = Path(__file__).resolve().parents[3]
PACKAGE = "ansible_collections/nearmetal/ec2/plugins/module_utils"
CALLS = "write,pwrite64,rename,renameat,renameat2,fsync,fdatasync,link,linkat,unlink,unlinkat,execve"
# A call that began. strace splits a long call into two lines; the first one counts.
CALL = re.compile(rb"^\d+ +(" + CALLS.replace(",", "|").encode() + rb")\(", re.MULTILINE)
HELD_US = 40_000
BEGIN, END = b"power cuts: begin", b"power cuts: end"
RUN_SECONDS = 900.0

# The module's run, without Ansible's own files.
RUN = """
import sys
sys.path.insert(0, "/root/nearmetal.zip")
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.clocksource import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Request
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Wanted
options = {"source": "acpi_pm", "persist": True, "tsc_reliable": "enabled", "allow_unverified": False}
request = Request("clocksource", CONCERN, Wanted(options) if sys.argv[1] == "tune" else None)
done = run(WritableHost(), lambda known: [request], check=len(sys.argv) > 2)
for outcome in done.outcomes:
    if outcome.error:
        sys.exit(outcome.error)
    print(outcome.name, len(outcome.plan.actions))
"""
TRACED = (
    f"stty -F /dev/ttyS0 -opost; echo '{BEGIN.decode()}' > /dev/ttyS0;"
    f" strace -f --seccomp-bpf -qq -s 0 -o /dev/ttyS0 -e trace={CALLS} -e inject={CALLS}:delay_exit={HELD_US}"
    f" python3 /root/run.py tune; echo '{END.decode()}' > /dev/ttyS0"
)
FILES = (
    "find /boot /etc /usr/local /var/lib -xdev -type f -not -path '/var/lib/systemd/*' -not -path '/var/lib/dhcp/*'"
    " -exec sha256sum {} + | sort -k2"
)
LINES = "sed -n '/BEGIN .*10_linux/,/END .*10_linux/ s/^[[:space:]]*linux[[:space:]]*//p' /boot/grub/grub.cfg"
# Files that other programs write while a host runs.
OTHERS = ("lib/systemd/", "lib/dhcp/")
# Where lab/make-disk.sh has put the file system.
PARTITION = 1024 * 1024
# e2fsck's exit status when it has replayed the journal.
CORRECTED = 1
# After the power cut, in one command: the next run, whether it left anything to do, and restore.
BETWEEN = "power cuts: next"
CONVERGES = f"""set -e
cat /proc/cmdline; echo '{BETWEEN}'
python3 /root/run.py tune >/dev/null; {LINES}; echo '{BETWEEN}'
python3 /root/run.py tune check; echo '{BETWEEN}'
python3 /root/run.py restore >/dev/null; {FILES}"""


class Cut(NamedTuple):
    """A disk as a power cut leaves it, and the last call before it."""

    number: int
    call: str
    disk: Path


def code() -> bytes:
    """nearmetal's code as a zip file for Python's path."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(PACKAGE.count("/") + 1):
            archive.writestr("/".join(PACKAGE.split("/")[: number + 1]) + "/__init__.py", "")
        for path in sorted((PROJECT / "plugins/module_utils").rglob("*.py")):
            name = str(path.relative_to(PROJECT / "plugins/module_utils"))
            if name != "__init__.py":
                archive.write(path, f"{PACKAGE}/{name}")
    return packed.getvalue()


class Run:
    """A traced tune run on a host, watched over its serial console."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._from = host.console.stat().st_size
        self._ssh = subprocess.Popen(
            [*host.ssh(), TRACED], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._ended = threading.Event()

    def trace(self) -> bytes:
        """What strace has written so far."""
        with self.host.console.open("rb") as stream:
            stream.seek(self._from)
            return stream.read().partition(BEGIN)[2]

    def calls(self) -> "list[bytes]":
        """The names of the completed calls."""
        return CALL.findall(self.trace().rpartition(b"\n")[0] + b"\n")

    def frozen(self) -> "Iterator[list[bytes]]":
        """Freeze the host after each new call or write to its disk, and yield the calls so far."""
        disk = Path(self.host.folder, qemu.DISK)
        seen = (0, disk.stat().st_mtime_ns)
        end = time.monotonic() + RUN_SECONDS
        while END not in self.trace():
            if time.monotonic() > end:
                raise self.host.stuck(f"the traced run did not end within {RUN_SECONDS:.0f} s")
            if (len(self.calls()), disk.stat().st_mtime_ns) != seen:
                with self.host.frozen():
                    calls = self.calls()
                    seen = (len(calls), disk.stat().st_mtime_ns)
                    if calls:
                        yield calls
            else:
                self._ended.wait(0.002)
        self._ssh.wait()


def cuts(host: Host) -> "list[Cut]":
    """The different disks that a power cut in a tune run can leave, in the order of the run."""
    folder = Path(host.folder, "cuts")
    folder.mkdir()
    found: "dict[bytes, Cut]" = {}
    stops = set()
    run = Run(host)
    for calls in run.frozen():
        stops.add(len(calls))
        content = Path(host.folder, qemu.DISK).read_bytes()
        digest = hashlib.sha256(content).digest()
        if digest not in found:
            disk = folder / f"{len(found) + 1}.qcow2"
            disk.write_bytes(content)
            found[digest] = Cut(len(calls), calls[-1].decode(), disk)
    calls = run.calls()
    print(f"{len(calls)} calls, copied after {len(stops)} of them and in between: {len(found)} different disks")
    assert len(calls) > 100, "strace saw hardly anything"
    return list(found.values())


def read_from(disk: Path) -> bytes:
    """A digest of all that the next boot, tune and restore read from a disk and a tune run can have changed.

    GRUB reads /boot without replaying the journal; then the kernel replays it. So this is /boot as it stands, and after
    a replay every name, mode and content in the folders that a tune run writes to. Times, places of blocks and logs are
    left out, because neither reads them. A file system that isn't clean after a replay equals no other.
    """
    image = disk.with_name("image")
    options = f"driver=raw,offset={PARTITION},file.driver=qcow2,file.file.driver=file,file.file.filename={disk}"
    _tool("qemu-img", "convert", "--image-opts", "-O", "raw", options, str(image)).check_returncode()
    digest = hashlib.sha256(_files(image, "/boot"))
    replay = _tool("e2fsck", "-E", "journal_only", "-fy", str(image))
    clean = _tool("e2fsck", "-fn", str(image))
    digest.update(_files(image, "/boot", "/etc", "/usr/local", "/var/lib"))
    if replay.returncode > CORRECTED or clean.returncode:
        digest.update(str(disk).encode())
    image.unlink()
    return digest.digest()


def _files(image: Path, *folders: str) -> bytes:
    """The files in these folders of an ext4 file system as it stands, with debugfs's complaints."""
    out = image.with_name("files")
    out.mkdir()
    found = [_tool("debugfs", "-R", f"rdump {folder} {out}", str(image)).stderr for folder in folders]
    for path in sorted(out.rglob("*")):
        name, mode = str(path.relative_to(out)), path.lstat().st_mode
        if path.is_symlink():
            found.append(f"{name} {path.readlink()}")
        elif path.is_file() and not name.startswith(OTHERS):
            found.append(f"{name} {mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}")
        elif path.is_dir():
            found.append(f"{name} {mode:o}")
    shutil.rmtree(out)
    return "\n".join(found).encode()


def _tool(*argv: str) -> "subprocess.CompletedProcess[str]":
    surroundings = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": deps.search_path()}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=surroundings)


def different(found: "list[Cut]") -> "list[Cut]":
    """One disk for each different content that is read."""
    first: "dict[bytes, Cut]" = {}
    for cut in found:
        first.setdefault(read_from(cut.disk), cut)
    print(f"GRUB and the kernel read {len(first)} different file systems on them")
    return list(first.values())


def sample(found: "list[Cut]") -> "list[Cut]":
    """The disks to boot: all, or some of them, evenly spread."""
    wanted = os.environ.get("NEARMETAL_POWER_CUTS", "3")
    count = len(found) if wanted == "all" else min(int(wanted), len(found))
    return [found[(2 * index + 1) * len(found) // (2 * count)] for index in range(count)]


def lacking(lines: str) -> "list[str]":
    """The entries of grub.cfg, except recovery, without nearmetal's argument."""
    entries = [line for line in lines.splitlines() if " single" not in line]
    assert entries, "grub.cfg has no entries"
    return [line for line in entries if not line.endswith("tsc=reliable")]


def converges_and_goes_back(host: Host, before: str) -> str:
    """Run tune and restore, check their results, and return the argument with which the host was booted."""
    arguments, lines, left, after = host.run(CONVERGES, seconds=RUN_SECONDS).split(f"{BETWEEN}\n")
    assert lacking(lines) == []
    assert left == "clocksource 0\n"
    assert after == before
    return arguments.split()[-1]


def booted(host: Host, disk: Path) -> Host:
    """The host, started on a copy of the disk.

    An emulated kernel sometimes hangs before it has read the disk, so a failed boot is tried once more.
    """
    shutil.copyfile(disk, Path(host.folder, qemu.DISK))
    try:
        return instance.started(host, outlive=False)
    except LabError as error:
        print(f"booted again, because {error}")
        host.end()
    shutil.copyfile(disk, Path(host.folder, qemu.DISK))
    return instance.started(host, outlive=False)


def test_after_a_power_cut() -> None:
    host = instance.find(NAME)
    host.put(code(), "/root/nearmetal.zip")
    host.put(RUN.encode(), "/root/run.py")
    before = host.run(FILES)
    host.run("sync")
    found = cuts(host)
    assert lacking(host.run(LINES)) == [], "the traced run did not come to its end"
    host.end()
    wrong = []
    for cut in sample(different(found)):
        where, since = f"power cut after call {cut.number} ({cut.call})", time.monotonic()
        try:
            host = booted(host, cut.disk)
            argument = converges_and_goes_back(host, before)
            print(f"{where}: booted with {argument}, {time.monotonic() - since:.0f} s")
        except (AssertionError, LabError) as error:
            wrong.append(f"{where}: {error}")
        host.end()
    assert not wrong, "\n".join(wrong)
