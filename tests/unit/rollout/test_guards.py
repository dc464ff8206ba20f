# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guards of a host, from its files and drivers to the words: each has a limit and can be switched off."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._rollout import vitals
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import guards

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of, write

BOOT = "/proc/sys/kernel/random/boot_id"
AT_FIRST = {
    BOOT: "11111111-2222-3333-4444-555555555555\n",
    "/proc/uptime": "1000.00 3000.00\n",
    "/proc/stat": "cpu  50000 0 20000 29900 0 0 0 100 0 0\n",
    "/proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 10000 10\n",
    "/proc/net/softnet_stat": "000000aa 00000000 00000000 00000000\n",
    "/dev/kmsg": "3,40,100,-;blk_update_request: I/O error, dev sda, sector 8\n",
    "/sys/class/nvme/nvme0/model": "Amazon Elastic Block Store\n",
}
# 600 seconds and 10,000 segments later.
LATER = {
    "/proc/uptime": "1600.00 4800.00\n",
    "/proc/stat": "cpu  80000 0 40000 39840 0 0 0 160 0 0\n",
    "/proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 20000 20\n",
}


class Watched(FakeKernel):
    """A host on Nitro, with an EBS volume, whose systemd knows these failed units."""

    failed: Sequence[str] = ("old.service",)
    held_back = 0  # microseconds
    before: Dict[str, Any]

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        return "".join(f"{unit} loaded failed failed Of a test\n" for unit in self.failed)

    def nvme_log(self, controller: str, page: int, size: int) -> Optional[bytes]:
        """EBS's counters of limits."""
        return struct.pack("<II10Q", 0x3C23B510, 0, *range(6), self.held_back, 0, 0, 0)

    def seen(self) -> Dict[str, Any]:
        """Its vitals."""
        found: Dict[str, Any] = vitals.observe(self, {"health": ""})["vitals"]
        return found


@pytest.fixture
def host(tmp_path: Path) -> Watched:
    """A host that was looked at right before its tuning."""
    watched = Watched(tmp_path, {**files_of("nitro"), **AT_FIRST})
    watched.nics.statistics["ens5"] = {"bw_in_allowance_exceeded": 0, "conntrack_allowance_available": 100000}
    watched.before = watched.seen()
    write(tmp_path, LATER)
    return watched


def fired(host: Watched, **given: Any) -> List[str]:
    """Which guards fire now, with these limits."""
    return guards.fired(guards.limits_of(given), host.before, host.seen())


def test_a_host_that_does_as_before_fires_nothing(host: Watched) -> None:
    assert fired(host) == []


MESSAGES = {
    "oops": [
        "BUG: unable to handle page fault for address: 0000000000002110",
        "Internal error: Oops: 0000000096000004 [#1] SMP",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [redis:99]",
        "watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
    ],
    "hung_task": ["INFO: task jbd2/nvme0n1-8:412 blocked for more than 120 seconds."],
    "nic_reset": [
        "NETDEV WATCHDOG: ens5 (ena): transmit queue 0 timed out",
        "ena 0000:00:05.0 ens5: Keep alive watchdog timeout.",
        "ena 0000:00:05.0 ens5: Trigger reset is on",
    ],
    "io_error": [
        "I/O error, dev nvme1n1, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
        "nvme nvme0: I/O 24 QID 2 timeout, aborting",
        "nvme nvme0: I/O tag 24 (1018) opcode 0x1 (I/O Cmd) QID 2 timeout, aborting req_op:WRITE(1) size:4096",
        "EXT4-fs error (device nvme0n1p1): ext4_find_entry:1455: inode #2: comm cp: reading directory lblock 0",
        "XFS (nvme1n1): Corruption of in-memory data (0x8) detected at xfs_iext_insert.  Shutting down filesystem.",
        "BTRFS critical (device nvme1n1): corrupt leaf: root=1 block=906756096 slot=204",
    ],
    "oom": [
        "Out of memory: Killed process 4711 (java) total-vm:16777216kB, anon-rss:12582912kB",
        "Memory cgroup out of memory: Killed process 4711 (java) total-vm:16777216kB",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=java,pid=4711,uid=0",
    ],
}


@pytest.mark.parametrize(("guard", "text"), [(guard, text) for guard, texts in MESSAGES.items() for text in texts])
def test_what_the_kernel_says_fires_its_guard_and_no_other(host: Watched, guard: str, text: str) -> None:
    write(Path(host.root), {"/dev/kmsg": f"{AT_FIRST['/dev/kmsg']}2,55,200,-;{text}\n SUBSYSTEM=test\n"})
    assert fired(host) == [f"{guard}: {text[:120]}"]
    assert fired(host, **{guard: False}) == fired(host, **{guard: 1}) == []


@pytest.mark.parametrize(
    "text",
    [
        "EXT4-fs (nvme0n1p1): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
        "XFS (nvme1n1): Ending clean mount",
        "ena 0000:00:05.0 ens5: Setting LLQ entry size to 128",
        "nvme nvme0: 2/0/0 default/read/poll queues",
    ],
)
def test_what_a_kernel_says_when_all_is_well_fires_nothing(host: Watched, text: str) -> None:
    write(Path(host.root), {"/dev/kmsg": f"6,55,200,-;{text}\n"})
    assert fired(host) == []


RATES = {
    "retransmits": ("/proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 20000 510\n", "5 % of the segments, 0.1 before"),
    "softnet_drops": ("/proc/net/softnet_stat", "000000bb 0000ea60 00000000 00000000\n", "100 a second, 0 before"),
    "steal": ("/proc/stat", "cpu  80000 0 40000 33900 0 0 0 6100 0 0\n", "10 %, 0.1 before"),
}


@pytest.mark.parametrize("guard", RATES)
def test_a_rate_beyond_that_before_by_more_than_its_limit_fires(host: Watched, guard: str) -> None:
    path, text, words = RATES[guard]
    write(Path(host.root), {path: text})
    assert fired(host) == [f"{guard}: {words}; {guards.LIMITS[guard]:g} more is allowed"]
    assert fired(host, **{guard: False}) == fired(host, **{guard: 1000}) == []


def test_packets_and_milliseconds_beyond_what_the_instance_may_fire(host: Watched) -> None:
    host.nics.statistics["ens5"].update(bw_in_allowance_exceeded=60000, conntrack_allowance_available=10**6)
    assert fired(host) == ["allowances: 100 a second, 0 before; 10 more is allowed"]
    host.nics.statistics["ens5"].update(bw_in_allowance_exceeded=0)
    host.held_back = 60_000_000
    assert fired(host) == ["allowances: 100 a second, 0 before; 10 more is allowed"]
    assert fired(host, allowances=False) == fired(host, allowances=1000) == []


def test_a_unit_that_failed_since_fires(host: Watched) -> None:
    host.failed = ("old.service", "redis.service")
    assert fired(host) == ["failed_units: redis.service"]
    assert fired(host, failed_units=False) == fired(host, failed_units=1) == []


def test_after_a_reboot_the_counters_and_the_log_begin_anew(host: Watched) -> None:
    write(
        Path(host.root),
        {
            BOOT: "99999999-2222-3333-4444-555555555555\n",
            "/proc/uptime": "60.00 180.00\n",
            "/proc/stat": "cpu  3000 0 2000 999 0 0 0 1 0 0\n",
            "/proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 500 1\n",
            "/dev/kmsg": "",
        },
    )
    assert fired(host) == []
    write(Path(host.root), {"/dev/kmsg": "2,3,100,-;BUG: early\n"})
    assert fired(host) == ["oops: BUG: early"]


def test_what_a_host_doesnt_say_fires_nothing(host: Watched) -> None:
    for path in ("/proc/net/snmp", "/proc/net/softnet_stat", "/proc/stat", "/proc/uptime", "/dev/kmsg"):
        (Path(host.root) / path[1:]).unlink()
    assert fired(host) == []


@pytest.mark.parametrize("given", [{"stael": 1}, {"steal": -1}, {"steal": True}, {"steal": "5"}])
def test_a_wrong_guard_or_limit_is_said(given: Dict[str, Any]) -> None:
    with pytest.raises(NearmetalError, match=r"rollout\.guards"):
        guards.limits_of(given)
