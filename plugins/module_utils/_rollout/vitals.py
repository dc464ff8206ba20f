# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `rollout` asks of a host before and after its tuning: counters and messages that tell of harm. PRIVATE."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Tuple

from .._error import NearmetalError
from .._facts import counters, ebs, ethtool, log
from .._host.host import WritableHost
from .._parse import kernel_counters
from .._planning.options import Spec
from .._prove.host import health
from .._tasks.task import Task
from .._words import printable
from . import claim

OPTIONS: Spec = {
    "health": {"type": "str", "default": "", "lines": True},
    "step": {"type": "str", "choices": ["look", "claim", "release"], "default": "look"},
    "run": {"type": "str", "default": ""},
    "lease": {"type": "float", "default": 0.0},
}
_RECORD = re.compile(r"[0-9]{1,10},([0-9]{1,18}),[^;\n]{0,200};([^\n]{1,400})", re.ASCII)
_MESSAGES: Mapping[str, "re.Pattern[str]"] = {
    "oops": re.compile(r"\bOops\b|\bBUG: |kernel BUG at|general protection fault|hard LOCKUP|detected stall"),
    "hung_task": re.compile(r"blocked for more than \d+ seconds"),
    "nic_reset": re.compile(r"NETDEV WATCHDOG|\b(?:ena|ixgbevf|vif)\b.*(?:[Rr]eset|[Kk]eep alive watchdog)"),
    "io_error": re.compile(
        r"\bI/O error|\bnvme\d+: I/O (?:tag )?\d+ .*timeout|EXT4-fs error|XFS .*(?:[Ee]rror|Shut)|BTRFS (?:error|crit)"
    ),
    "oom": re.compile(r"Out of memory: Kill|Memory cgroup out of memory: Kill|oom-kill:"),
}
_MOST_MESSAGES = 50
_PATIENCE = 20.0


def observe(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The result of the task: the host's vitals, and why it isn't healthy, empty if it is."""
    return {
        "changed": False,
        "msg": "observed",
        "vitals": {**_vitals(host), "unhealthy": health.failure(options["health"])},
    }


def _vitals(host: WritableHost) -> Dict[str, Any]:
    ring = host.records("/dev/kmsg", log.LONGEST) or ""
    records = [(int(match[1]), match[2]) for match in _RECORD.finditer(ring)]
    tcp = kernel_counters.parse_netstat(host.text("/proc/net/snmp", 65536) or "")
    received = kernel_counters.parse_softnet(host.text("/proc/net/softnet_stat") or "")
    spent = kernel_counters.all_times(host.text("/proc/stat", 4096) or "")
    return {
        "boot_id": host.line("/proc/sys/kernel/random/boot_id") or "",
        "uptime": counters.uptime(host),
        "sequence": records[-1][0] if records else -1,
        "kernel": _matching(records),
        "failed_units": _failed_units(host),
        "retransmitted": tcp.get("Tcp.RetransSegs"),
        "segments": tcp.get("Tcp.OutSegs"),
        "softnet_dropped": received.dropped if received is not None else None,
        "allowances": _allowances(host),
        "steal": spent.stolen if spent is not None else None,
        "cpu_time": spent.total if spent is not None else None,
    }


def _matching(records: List[Tuple[int, str]]) -> List[Any]:
    found = [
        [sequence, kind, printable(text)]
        for sequence, text in records
        for kind, pattern in _MESSAGES.items()
        if pattern.search(text)
    ]
    return found[-_MOST_MESSAGES:]


def _allowances(host: WritableHost) -> float:
    """Packets, and milliseconds of EBS, beyond what the instance may, since they were counted."""
    counted = 0.0
    for name in host.names("/sys/class/net"):
        for counter, value in (ethtool.allowances(host, name) or {}).items():
            counted += value if counter != ethtool.CONNTRACK_AVAILABLE else 0
    return counted + sum(sum(exceeded) / 1000 for _device, exceeded in ebs.observe(host).exceeded)


def _failed_units(host: WritableHost) -> List[str]:
    if not host.booted():
        return []
    try:
        text = host.command(("systemctl", "list-units", "--state=failed", "--plain", "--no-legend"), _PATIENCE)
    except NearmetalError:
        return []
    return [line.split()[0] for line in text.splitlines() if line.strip()][:100]


def carry_out(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The result of a step. Raises NearmetalError."""
    step = {"look": observe, "claim": claim.claim, "release": claim.release}[options["step"]]
    return step(host, options)


TASKS = {"rollout": Task(OPTIONS, carry_out, observe)}
