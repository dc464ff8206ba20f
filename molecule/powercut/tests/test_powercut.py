# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power fails at a system call of a tune run. It always boots, tune converges, restore restores.

strace on the host writes each call to the serial console and holds the process
there for a moment; QEMU is killed while the wanted call is the last one done.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import threading
import time
import zipfile
from pathlib import Path

import pytest

from lab import instance
from lab.host import Host

PROJECT = Path(__file__).resolve().parents[3]
PACKAGE = "ansible_collections/nearmetal/ec2/plugins/module_utils"
CALLS = "write,pwrite64,rename,renameat,renameat2,fsync,fdatasync,link,linkat,unlink,unlinkat,execve"
# A call that began; strace splits a long one into two lines, of which the first counts.
CALL = re.compile(rb"^\d+ +(?:" + CALLS.replace(",", "|").encode() + rb")\(", re.MULTILINE)
HELD_US = 40_000
BEGIN, END = b"power cuts: begin", b"power cuts: end"
RUN_SECONDS = 900.0

# What a run of the module does, without Ansible's own files around it.
RUN = """
import sys
sys.path.insert(0, "/root/nearmetal.zip")
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.clocksource import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
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


def fresh(name: str) -> "tuple[Host, str]":
    """A host with our code on it, and its files."""
    host = instance.up("powercut", name, outlive=False)
    host.put(_code(), "/root/nearmetal.zip")
    host.put(RUN.encode(), "/root/run.py")
    before = host.run(FILES)
    host.run("sync")
    return host, before


def _code() -> bytes:
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

    def said(self) -> bytes:
        """What strace has written so far."""
        with self.host.console.open("rb") as stream:
            stream.seek(self._from)
            return stream.read().partition(BEGIN)[2]

    def cut(self, number: int) -> int:
        """Kill QEMU when that call is done (0: let the run end); how many calls were done."""
        end = time.monotonic() + RUN_SECONDS
        while time.monotonic() < end:
            said = self.said()
            done = len(CALL.findall(said.rpartition(b"\n")[0] + b"\n"))
            if (number and done >= number) or END in said:
                break
            self._ended.wait(0.002)
        else:
            raise self.host.stuck(f"the traced run did not end within {RUN_SECONDS:.0f} s")
        if number:
            self.host.end()
        self._ssh.kill() if number else self._ssh.wait()
        self._ssh.wait()
        return len(CALL.findall(self.said().rpartition(b"\n")[0] + b"\n"))


def sample(calls: "list[bytes]") -> "list[int]":
    """The calls at which the power fails, by number: all, or as many of our own as of update-grub's, evenly spread.

    The first process is ours; what it starts is update-grub.
    """
    ours = [number for number, pid in enumerate(calls, 1) if pid == calls[0]]
    others = [number for number, pid in enumerate(calls, 1) if pid != calls[0]]
    wanted = os.environ.get("NEARMETAL_POWER_CUTS", "3")
    if wanted == "all" or int(wanted) >= len(calls):
        return [*range(1, len(calls) + 1)]
    return sorted(_spread(ours, int(wanted) - int(wanted) // 2) + _spread(others, int(wanted) // 2))


def _spread(numbers: "list[int]", count: int) -> "list[int]":
    return [numbers[(2 * index + 1) * len(numbers) // (2 * count)] for index in range(count)]


def lines(host: Host) -> "list[str]":
    """What each entry but recovery gives the kernel."""
    return [line for line in host.run(LINES).splitlines() if " single" not in line]


@pytest.fixture(scope="module")
def points() -> "list[int]":
    """Every call of an undisturbed run is counted on a host of its own."""
    host, _before = fresh("powercut-count")
    try:
        run = Run(host)
        run.cut(0)
        calls = [line.split()[0] for line in CALL.findall(run.said())]
        assert all(line.endswith("tsc=reliable") for line in lines(host))
    finally:
        host.down()
    assert len(calls) > 100, "strace saw hardly anything"
    chosen = sample(calls)
    print(f"power cuts at {len(chosen)} of {len(calls)} points: {' '.join(map(str, chosen))}")
    return chosen


def test_after_a_power_cut(points: "list[int]") -> None:
    for number in points:
        host, before = fresh(f"powercut-{number}")
        try:
            done = Run(host).cut(number)
            host = instance.started(host, outlive=False)
            print(f"cut after {done} calls: booted with {host.run('cat /proc/cmdline').split()[-1]}")
            host.run("python3 /root/run.py tune")
            assert all(line.endswith("tsc=reliable") for line in lines(host)), f"cut after {done} calls"
            assert host.run("python3 /root/run.py tune check") == "clocksource 0\n", f"cut after {done} calls"
            host.run("python3 /root/run.py restore")
            assert host.run(FILES) == before, f"cut after {done} calls"
        finally:
            host.down()
