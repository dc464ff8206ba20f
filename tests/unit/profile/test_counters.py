# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel counts is the difference of two looks at its files."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.counters import Counters, between, read

BEFORE = {
    "proc/stat": "cpu  0\ncpu0 100 0 100 800 0 0 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\nctxt 500\n",
    "proc/vmstat": "pgfault 100\ncompact_stall 1\n",
    "proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 1000 5\n",
    "proc/net/softnet_stat": "00000001 00000000 00000002 00000000\n00000001 00000000 00000000 00000000\n",
    "proc/interrupts": "           CPU0       CPU1\n 24:        100          0   PCI-MSI 1-edge      ens5-Tx-Rx-0\n",
    "proc/softirqs": "                    CPU0       CPU1\n      NET_RX:         10          0\n",
    "proc/loadavg": "1.00 1.00 1.00 4/300 999\n",
}
AFTER = {
    **BEFORE,
    "proc/stat": "cpu  0\ncpu0 100 0 100 810 0 10 70 10 0 0\ncpu1 0 0 0 1100 0 0 0 0 0 0\nctxt 1500\n",
    "proc/vmstat": "pgfault 350\ncompact_stall 4\n",
    "proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 3000 25\n",
    "proc/net/softnet_stat": "00000001 00000003 00000009 00000000\n00000001 00000000 00000000 00000000\n",
    "proc/interrupts": "           CPU0       CPU1\n 24:       4100          0   PCI-MSI 1-edge      ens5-Tx-Rx-0\n",
    "proc/softirqs": "                    CPU0       CPU1\n      NET_RX:       9010          0\n",
}


def lay_out(root: Path, files: Dict[str, str]) -> Host:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Host(str(root))


def test_counters_are_differences(tmp_path: Path) -> None:
    before = read(lay_out(tmp_path, BEFORE))
    found = between(before, read(lay_out(tmp_path, AFTER)), 2.0, [3, 5])
    assert found == {
        "seconds": 2.0,
        "cpus": 2,
        "runnable": 4.0,
        "steal": 0.05,
        "context_switches": 1000,
        "interrupt_load": {"0": 0.8, "1": 0.0},
        "interrupts": {"0": 4000, "1": 0},
        "softirqs": {"0": 9000, "1": 0},
        "busiest_cpu": {"cpu": 0, "interrupts": {"24 ens5-Tx-Rx-0": 4000}, "softirqs": {"NET_RX": 9000}},
        "pgfault": 250,
        "compact_stall": 3,
        "retransmitted": 20,
        "sent": 2000,
        "dropped": 3,
        "squeezed": 7,
    }


def test_what_a_kernel_does_not_say_is_missing(tmp_path: Path) -> None:
    host = lay_out(tmp_path, {})
    assert set(between(read(host), read(host), 1.0, [])) == {"seconds", "cpus"}


def test_the_end_is_when_the_time_is_over(tmp_path: Path) -> None:
    counters = Counters(lay_out(tmp_path, BEFORE), 0.0)
    lay_out(tmp_path, {"proc/stat": AFTER["proc/stat"]})
    counters.look()
    lay_out(tmp_path, BEFORE)
    assert counters.end()["context_switches"] == 1000, "what perf does afterwards isn't the load's"


def test_threads_that_want_to_run_are_counted_without_the_one_that_looks(tmp_path: Path) -> None:
    counters = Counters(lay_out(tmp_path, BEFORE), 60.0)
    counters.look()
    assert counters.end()["runnable"] == 3.0
