# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's servers under systemd, on a real kernel: what each says of the host at its start, untuned and tuned.

None of their warnings about the host is left, or a finding of the audit says why. Their units are found by themselves.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lab.host import Host, instance
from tests.support.lab import ansible

# What the distribution's kernel or an operator may have left: servers of one backlog and one way to reserve memory.
UNTUNED = "sysctl -q net.core.somaxconn=128 vm.overcommit_memory=0"
# Program → its unit, its warnings about an untuned host, and the workload for it.
UNITS = {
    "redis": ("redis-server", ("overcommit must be enabled", "TCP backlog"), "in_memory_database"),
    "memcached": ("memcached", (), "cache"),
    "nginx": ("nginx", (), "web"),
    "haproxy": ("haproxy", (), "web"),
    "varnish": ("varnish", (), "web"),
    "mariadb": ("mariadb", (), "nvme_storage"),
    "postgresql": ("postgresql@17-main", (), "nvme_storage"),
}
OF_THE_HOST = "(?i)overcommit|huge.?page|backlog|somaxconn|io_uring|open.files|FD limit|rlimit|memlock|map_count"
WORKLOADS = ["web", "cache", "nvme_storage", "in_memory_database"]
HUGE = "echo 'huge_pages = on' > /etc/postgresql/17/main/conf.d/pages.conf"
PAGES = (
    "su postgres -c '/usr/lib/postgresql/17/bin/postgres -D /etc/postgresql/17/main"
    " -C shared_memory_size_in_huge_pages'"
)
CHECK = "redis-server --check-system --unixsocket /nonexistent || true"


def start(host: Host, unit: str) -> str:
    """What a unit's program says when it starts; Redis and its fork say it in a file."""
    files = f"/var/log/{re.split('[-@]', unit)[0]}/*.log"
    host.run(f"truncate -s 0 {files} || true; systemctl stop {unit}")
    since = host.run("date '+%s'").strip()
    host.run(f"systemctl start {unit} || true")
    return host.run(f"journalctl --quiet --no-hostname --since @{since} -u {unit}; cat {files} || true")


def counted(host: Host) -> dict[str, str]:
    """What Slurm's daemon counts on the host, as its line of slurm.conf."""
    words = host.run("slurmd -C").split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def of_the_host(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if re.search("(?i)warn|alert|fatal", line) and re.search(OF_THE_HOST, line)
    ]


def audit(host: Host, folder: Path, **wanted: object) -> str:
    """What an audit says; with a workload and programs it is of the host as they will leave it."""
    options = {**wanted, "concerns": {"service_check": {}}}
    found: list[dict[str, Any]] = ansible.module("tune", host, folder, options, "--check")["findings"]
    return "\n".join(f"{one['where']}: {one['reason']}" for one in found)


def test_what_servers_warn_of_is_gone_when_the_host_is_tuned_for_them(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("programs", "programs") as host:
        host.run(UNTUNED)
        before = {name: start(host, unit) for name, (unit, _warnings, _workload) in UNITS.items()}
        for name, (_unit, warnings, _workload) in UNITS.items():
            for words in warnings:
                assert words in before[name], f"{name}: {before[name]}"
        # Each server's unit is found by itself, and what it warned of is said before its next start.
        found = audit(host, tmp_path)
        for name, (unit, warnings, _workload) in UNITS.items():
            assert f"{unit}.service: " in found, found
            assert not warnings or f"{unit}.service: {name.title()} checks this at its start: " in found, found
        options = {"workload": WORKLOADS, "program": list(UNITS)}
        assert not ansible.module("tune", host, tmp_path, options).get("failed")
        after = {name: start(host, unit) for name, (unit, _warnings, _workload) in UNITS.items()}
        assert {name: of_the_host(text) for name, text in after.items() if of_the_host(text)} == {}
        said = host.run(CHECK)
        assert "[overcommit]...OK" in said, said
        assert "[THP]...OK" in said, said
        # PostgreSQL doesn't start without reserved pages, of which the finding says how many, and with them it does.
        host.run(HUGE)
        assert "could not map anonymous shared memory" in start(host, "postgresql@17-main")
        assert "shared_memory_size_in_huge_pages" in audit(host, tmp_path, program="postgresql")
        pages = {"pages": [{"size": "2M", "count": int(host.run(PAGES))}], "method": "runtime"}
        assert not ansible.module("tune", host, tmp_path, {**options, "concerns": {"hugepages": pages}}).get("failed")
        said = start(host, "postgresql@17-main")
        assert "could not map" not in said, said
        assert "on" in host.run("su postgres -c 'psql -Atc \"show huge_pages_status\"'")


def test_slurm_counts_other_cpus_after_a_run_for_hpc_and_a_finding_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("programs", "slurm") as host:
        before = counted(host)
        assert (before["CPUs"], before["ThreadsPerCore"]) == ("8", "2")
        result = ansible.module("tune", host, tmp_path, {"workload": "hpc", "program": "slurm"})
        after = counted(host)
        assert (after["CPUs"], after["ThreadsPerCore"]) == ("4", "1"), result
        said = [one["reason"] for one in result["findings"] if one["concern"] == "smt" and one["knob"] == "threads"]
        assert "write there what slurmd -C prints" in said[0]
