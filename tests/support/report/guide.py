# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of docs/audit.md, run in their order: python -m tests.support.report.guide writes their current output.

A block of `console` holds one command after `$ ` and what it prints. The hosts are simulated.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

from tests.support.fleet import GOOD_CLOCK, ROOT, SLOW_CLOCK, Fleet, finding, result_with

GUIDE = ROOT / "docs" / "audit.md"
BLOCK = re.compile(r"^```console\n\$ (.*?)\n(.*?)```$", re.M | re.S)

PAGES = finding(
    "hugepages",
    "would_change",
    "thp",
    now="always",
    wanted="madvise",
    reason="the database asks for huge pages itself; always gives them to all and compacts memory meanwhile",
    reference="AWS, 2017",
)
THREADS = finding(
    "smt",
    "refused",
    "siblings",
    now="enabled",
    wanted="disabled",
    reason="a T3 has 2 vCPUs on one core: without the second thread it has half its credits' worth",
    reference="AWS, 2017",
)


def _host(instance_type: str, host_class: str, *findings: Dict[str, Any]) -> Dict[str, Any]:
    platform = {
        "instance_type": instance_type,
        "host_class": host_class,
        "architecture": "x86_64",
        "kernel": "6.1.0-18",
    }
    return {"module_result": result_with(*findings, platform=platform)}


HOSTS = {
    "redis-1": {
        **_host("r4.large", "xen_hvm", SLOW_CLOCK, PAGES),
        "allowances": {"ens5": {"bw_in_allowance_exceeded": 0, "pps_allowance_exceeded": 4211}},
        "packets": {"ens5": 12_000_000},
    },
    "redis-2": _host("r4.large", "xen_hvm", SLOW_CLOCK, PAGES),
    "redis-3": _host("r5.large", "nitro", GOOD_CLOCK, {**PAGES, "status": "ok", "now": "madvise"}),
    "web-1": _host("t3.large", "nitro", GOOD_CLOCK, THREADS),
    "web-2": {"fate": "unreachable"},
}
# The same hosts a week later: somebody set huge pages on one of them.
LATER = {**HOSTS, "redis-3": _host("r5.large", "nitro", GOOD_CLOCK, {**PAGES, "owner": "tuned"})}
GROUPS = {"redis": ["redis-1", "redis-2", "redis-3"], "web": ["web-1", "web-2"]}


def examples() -> List[Tuple[str, str]]:
    """The commands of the guide and their documented output."""
    return BLOCK.findall(GUIDE.read_text("utf-8"))


def outputs(folder: Path) -> List[str]:
    """The output of the commands, with fixed values in place of times."""
    fleet = Fleet(folder)
    environment = fleet.environment(NEARMETAL_REPORT_DIRECTORY="nearmetal-report")
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    printed = []
    for command, _documented in examples():
        fleet.inventory(LATER if "audit_baseline" in command else HOSTS, GROUPS)
        printed.append(_output(command, folder, environment))
    return printed


def _output(command: str, folder: Path, environment: Dict[str, str]) -> str:
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    steady = re.sub(r"in \d+\.\d s", "in 0.9 s", done.stdout)
    lines = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-31T12:00:00Z", steady).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines).lstrip("\n")


def main() -> None:
    """Write the commands' current output into the guide."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = iter(outputs(Path(folder)))
    text = BLOCK.sub(lambda block: f"```console\n$ {block[1]}\n{next(fresh)}```", GUIDE.read_text("utf-8"))
    GUIDE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
