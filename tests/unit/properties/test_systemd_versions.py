# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever systemd a host has, it reads every line that it gets and takes every option of its tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.capture import capture
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.captured import CapturedHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import booted
from tests.support.hosts import files_of
from tests.support.kernel import systemd
from tests.support.prove.experiments import Steps
from tests.support.prove.reboots import TUNING, rebooting

Call = Callable[..., Dict[str, Any]]
SERVICE = "etc/systemd/system/nearmetal.service"
UNITS = re.compile(r"etc/systemd/.*\.(?:service|timer|mount|conf)")
CONCERNS: Dict[str, Dict[str, Any]] = {
    "clocksource": {"source": "auto"},
    "hugepages": {"pages": [{"size": "2M", "count": 8}], "mount": {"path": "/mnt/huge"}},
    "numa": {"services": [{"unit": "db.service", "nodes": "1"}]},
    "network_irq": {"policy": "dedicated", "compute_units": ["web.service"]},
    "network_stack": {"mtu": 1500, "allow_disruptive": True},
    "block_storage": {"scheduler": "none"},
}


def units(host: FakeKernel) -> Iterator[Tuple[str, str]]:
    """Name and text of each unit, drop-in and configuration that systemd reads, with those that generators make."""
    root = Path(host.root)
    for path in sorted((root / "etc").rglob("*")):
        name = str(path.relative_to(root))
        if path.is_file() and UNITS.fullmatch(name):
            yield name, path.read_text()
        elif "system-generators" in name and path.is_file():
            for line in path.read_text().replace("\\n", "\n").splitlines():
                yield from ((name, f"[Service]\n{found}") for found in re.findall(r"'?([A-Z][A-Za-z]+=)%s", line))


def misread(host: FakeKernel, number: int) -> List[Tuple[str, systemd.Reading]]:
    readings = [(name, systemd.read(number, text)) for name, text in units(host)]
    return [(name, reading) for name, reading in readings if reading.ignored or reading.killed]


@pytest.mark.parametrize("number", systemd.VERSIONS)
def test_what_tune_writes_and_runs_is_known_to_this_systemd(tmp_path: Path, call: Call, number: int) -> None:
    host = booted(tmp_path, files_of("nitro_big", systemd.changes(number)))
    done = call(tune.main, host, concerns=CONCERNS, confirm_within=120)
    assert not done.get("failed"), done["msg"]
    assert done["confirm_within"] == 120
    assert {Path(name).suffix for name, _text in units(host)} >= {".service", ".timer", ".mount"}
    assert misread(host, number) == []
    assert not call(restore.main, host).get("failed")


@pytest.mark.parametrize("number", systemd.VERSIONS)
def test_what_prove_writes_and_runs_is_known_to_this_systemd(tmp_path: Path, call: Call, number: int) -> None:
    host = FakeKernel(tmp_path / "running", files_of("xen_hvm", systemd.changes(number)))
    steps = Steps(call, host)
    for step in ({"step": "begin"}, {"step": "measure", "state": "tuned"}, {"step": "back"}):
        assert not (done := steps(**step)).get("failed"), done["msg"]
    other = rebooting(tmp_path / "rebooted")
    for path, text in systemd.changes(number).items():
        place = Path(other.root) / path[1:]
        place.unlink() if text is None else place.touch()
    across = Steps(call, other)
    assert not (done := across("begin", tune=TUNING, reboot=True)).get("failed"), done["msg"]
    assert misread(other, number) == []


def test_the_sandbox_is_as_tight_as_systemd_allows(tmp_path: Path, call: Call) -> None:
    """A line is left out where it isn't known, and only there."""
    lines = {}
    for number in systemd.VERSIONS:
        host = FakeKernel(tmp_path / str(number), files_of("xen_hvm", systemd.changes(number)))
        call(clocksource.main, host, source="auto")
        lines[number] = (Path(host.root) / SERVICE).read_text().splitlines()
    assert "SystemCallFilter=@system-service" in lines[239]
    assert not [line for line in lines[237] if line.startswith("SystemCallFilter=")]
    newest = {line for line in lines[257] if "=" in line}
    for number, have in lines.items():
        shown = number if number > 230 else systemd.OLDEST  # 229 has its version in no name
        unknown = {*systemd.read(shown, "\n".join(lines[257])).ignored, "SystemCallFilter=@system-service"}
        assert newest - set(have) <= unknown
    for older in (219, 229):
        assert "ProtectSystem=full" in lines[older]
        assert "ReadWriteDirectories=/run -/var/lib/nearmetal -/etc/nearmetal" in lines[older]
        assert "StartLimitInterval=0" in lines[older]


@pytest.mark.parametrize(
    "library",
    [
        "/usr/lib/systemd/libsystemd-shared-239.so",  # RHEL 8
        "/lib/systemd/libsystemd-shared-241.so",  # Debian 10
        "/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so",  # Debian 12
        "/usr/lib64/systemd/libsystemd-shared-252.so",  # Amazon Linux 2023
        "/usr/lib64/systemd/libsystemd-shared-254.27-150600.4.71.2.so",  # SLES 15
    ],
)
def test_the_version_is_found_on_every_distribution_and_in_a_capture(tmp_path: Path, call: Call, library: str) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm", {"/usr/lib/systemd/libsystemd-shared-252.so": None, library: ""}))
    call(clocksource.main, host, source="auto")
    assert "SystemCallFilter=@system-service" in (tmp_path / SERVICE).read_text()
    facts = [observe(place, ("unit",)).unit for place in (host, CapturedHost(capture(host)))]
    assert {unit.version for unit in facts if unit is not None} == {int(re.findall("[0-9]{3}", library)[0])}
