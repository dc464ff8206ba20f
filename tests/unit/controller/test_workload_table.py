# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every workload on a host of every class, and on every shape of the lab, against docs/workload_status.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import values

from tests.support import workload_table
from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

TABLE = workload_table.read()
# Class of the table → host of tests/hosts.
HOSTS = {
    "xen_pv": "xen_pv",
    "xen_hvm": "xen_hvm",
    "xen_hvm_full": "xen_hvm_4_sockets",
    "nitro": "nitro",
    "nitro_full": "nitro_big",
    "nitro_amd": "nitro_amd",
    "burstable": "nitro_burstable",
    "graviton": "graviton",
    "metal": "metal",
    "graviton_metal": "graviton_metal",
    "not_ec2": "not_ec2",
    "container": "container",
}
CLOSED = ("not_ec2", "container")
# As /proc/net/route: interface, destination, gateway, flags, three counts, mask, three more.
ROUTE = "\t".join(["{}", "00000000", "0100000A", "0003", "0", "0", "512", "00000000", "0", "0", "0"]) + "\n"


def kernel(root: Path, name: str) -> FakeKernel:
    """A host as it boots: the first NIC has the default route, ENA adapts and has its rings, ixgbevf has its own."""
    files = files_of(name)
    nics = sorted({path.split("/")[4] for path in files if path.startswith("/sys/class/net/")})
    host = FakeKernel(root, {**files, **({"/proc/net/route": ROUTE.format(nics[0])} if nics else {})})
    for one in nics:
        driver = files[files_key(files, one)].rsplit("/", 1)[1]
        queues = sum(path.startswith(f"/sys/class/net/{one}/queues/rx-") and "rps_cpus" in path for path in files)
        if driver == "ena":
            host.nics.channels[one] = [queues, queues]
            host.nics.rings[one] = [16384, 1024, 1024, 1024]
            host.nics.coalesce[one] = [20, 0, 0, 0, 64, 0, 0, 0, 0, 1, *[0] * 12]
        elif driver == "ixgbevf":
            host.nics.rings[one] = [4096, 4096, 512, 512]
            host.nics.coalesce[one] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, *[0] * 12]
    return host


def files_key(files: Dict[str, str], nic: str) -> str:
    """The path of a NIC's link to its driver."""
    place = files[f"/sys/class/net/{nic}/device"].rsplit("/", 1)[1]
    return next(path for path in files if path.endswith(f"/{place}/driver"))


def test_the_table_has_a_row_for_every_value() -> None:
    expected = {
        name: {f"{concern}.{option}" for concern, options in values(workload).items() for option in options}
        for name, workload in WORKLOADS.items()
    }
    assert {name: set(rows) for name, rows in TABLE.items()} == expected
    assert all(set(cells) == set(HOSTS) for rows in TABLE.values() for cells in rows.values())


@pytest.mark.parametrize("kind", HOSTS)
def test_a_fresh_host_has_the_statuses_of_its_class(kind: str, tmp_path: Path) -> None:
    facts = workload_table.look(kernel(tmp_path, HOSTS[kind]))
    for workload, rows in TABLE.items():
        actions, findings = workload_table.planned(facts, workload)
        if kind in CLOSED:
            assert actions == ()
            assert {one.status for one in findings} == {"refused"}
            continue
        wrong = {
            knob: (sorted(have), sorted(cells[kind]))
            for knob, cells in rows.items()
            for have in [workload_table.statuses(findings, knob)]
            if have != cells[kind]
        }
        assert wrong == {}, f"{workload} on {kind}: knob → (code, table)"
        assert actions or workload == "base", f"{workload} does nothing on {kind}"
