# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program is the judge: what a real server says of an untuned host and of one that was tuned for it.

None of its warnings about the host is left, or a finding of the audit says why.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, NamedTuple, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import program_of
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.programs import servers
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import routed
from tests.support.hosts import files_of
from tests.unit.conftest import Modules

THP = "/sys/kernel/mm/transparent_hugepage"
UNTUNED = {
    f"{THP}/enabled": "[always] madvise never\n",
    "/proc/sys/vm/overcommit_memory": "0\n",
    "/proc/sys/vm/max_map_count": "65530\n",
    "/proc/sys/net/core/somaxconn": "128\n",
}
FEW_FILES, LITTLE_LOCKED = ("n", 1024), ("l", 64)


class Server(NamedTuple):
    """How a server is started, what it prints when it is ready, and its warnings about the host and its limits."""

    argv: str
    ready: str
    of_host: Tuple[str, ...] = ()  # gone when the host is tuned
    of_limits: Tuple[Tuple[str, str], ...] = ()  # stay, each with words of the finding that says why
    config: str = ""
    prepare: str = ""
    of_itself: str = "^$"  # its warnings about its own settings, or about the empty network in which it runs here
    changes: Tuple[Tuple[str, str], ...] = ()  # what else its untuned host has


def started(host: FakeKernel, server: Server, argv: Sequence[str], place: Path) -> servers.Started:
    """Start the server with few open files and little locked memory, in its place."""
    return servers.start(Path(host.root), argv, server.ready, (FEW_FILES, LITTLE_LOCKED), str(place))


def untuned(root: Path, changes: Dict[str, str]) -> FakeKernel:
    """A host as a distribution's kernel may leave it."""
    return FakeKernel(root, routed({**files_of("metal"), **changes}))


def service(name: str, files: Dict[str, str]) -> Dict[str, str]:
    """The files of the program's service, with those of its real process, if it got ready; Java's for a collector."""
    process = next(iter(program_of(name).processes), "java")
    files = {"comm": process, "cmdline": f"{process}\0", "limits": "", **files}
    return {
        f"/sys/fs/cgroup/system.slice/{name}.service/cgroup.procs": "812\n",
        "/proc/812/exe": "-> /usr/bin/" + files["comm"].strip(),
        "/proc/812/fd/0": "-> /dev/null",
        "/proc/812/ns/net": "-> net:[4026531840]",
        **{f"/proc/812/{file}": text for file, text in files.items()},
    }


def judge(name: str, server: Server, argv: Sequence[str], root: Path, place: Path, call: Modules) -> None:
    """Start it untuned and tuned for it: no warning about the host is left, or a finding says why."""
    kernel = {**UNTUNED, **dict(server.changes)}
    before = started(untuned(root / "before", kernel), server, argv, place)
    assert before.files or server.of_host or server.of_limits, before.text
    for pattern in (*server.of_host, *(pattern for pattern, _says in server.of_limits)):
        assert before.warnings(pattern), f"{name} doesn't say {pattern} of the untuned host:\n{before.text}"
    host = untuned(root / "host", {**kernel, **service(name, before.files)})
    result = call(tune.main, host, workload=program_of(name).workload, program=name)
    assert not result.get("failed"), result["msg"]
    after = started(host, server, argv, place)
    explained = "|".join([server.of_itself, *(pattern for pattern, _says in server.of_limits)])
    found = [line for line in after.warnings("(?i)warn|alert|fatal") if not re.search(explained, line)]
    assert found == [], after.text
    audit = call(
        tune.main, host, check=True, workload=program_of(name).workload, program=name, concerns={"service_check": {}}
    )
    reasons = "\n".join(finding["reason"] for finding in audit["findings"])
    for pattern, says in server.of_limits:
        assert not after.warnings(pattern) or says in reasons, f"{after.text}\n{reasons}"
