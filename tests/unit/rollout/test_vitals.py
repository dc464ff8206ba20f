# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rollout reads on a host."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._rollout import vitals

FILES = {
    "/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
    "/proc/uptime": "123.45 456.78\n",
    "/proc/stat": "cpu  10 0 20 1000 5 0 1 7 0 0\ncpu0 10 0 20 1000 5 0 1 7 0 0\n",
    "/proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 5000 12\n",
    "/proc/net/softnet_stat": "000000aa 00000003 00000000 00000000\n000000bb 00000001 00000000 00000000\n",
    "/dev/kmsg": "6,10,100,-;all is well\n3,11,200,-;INFO: task jbd2/sda:9 blocked for more than 120 seconds.\n"
    "4,12,300,-;ena 0000:00:05.0 eth0: Trigger reset is on, reset reason: 3\n",
}


def seen(root: Path, files: Dict[str, str], health: str = "") -> Dict[str, Any]:
    """The vitals of a host that has these files."""
    for name, text in files.items():
        (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / name[1:]).write_text(text)
    plain: Dict[str, Any] = vitals.observe(WritableHost(str(root)), {"health": health})["vitals"]
    return plain


def test_counters_and_messages_are_read(tmp_path: Path) -> None:
    found = seen(tmp_path, FILES)
    assert found["boot_id"].startswith("11111111")
    assert (found["uptime"], found["segments"], found["retransmitted"]) == (123.45, 5000, 12)
    assert (found["softnet_dropped"], found["steal"], found["cpu_time"]) == (4, 7, 1043)
    assert found["sequence"] == 12
    assert [(sequence, kind) for sequence, kind, _text in found["kernel"]] == [(11, "hung_task"), (12, "nic_reset")]


def test_a_host_that_says_nothing_has_unknown_vitals(tmp_path: Path) -> None:
    found = seen(tmp_path, {})
    assert found["uptime"] is found["segments"] is found["softnet_dropped"] is found["steal"] is None
    assert (found["kernel"], found["failed_units"], found["allowances"]) == ([], [], 0)


@pytest.mark.parametrize(("command", "words"), [("true", ""), ("echo no >&2; exit 3", "ended with code 3: no")])
def test_the_health_command_says_whether_the_host_does_its_work(tmp_path: Path, command: str, words: str) -> None:
    assert seen(tmp_path, FILES, command)["unhealthy"].endswith(words)
    assert bool(seen(tmp_path, FILES, command)["unhealthy"]) == bool(words)
