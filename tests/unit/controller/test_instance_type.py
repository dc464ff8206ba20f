# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on Xen doesn't know its type: what happens when somebody names it, and when nobody does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import network_irq

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import FOLDER, built

Call = Callable[..., Dict[str, Any]]


def xen_without_a_named_type(root: Path) -> FakeKernel:
    """Four vCPUs of one thread, 16 GiB, and Xen's own network driver alone, as a t2.xlarge."""
    host = json.loads((FOLDER / "xen_hvm.json").read_text())
    host["shape"] = {"sockets": 1, "cores": 4, "threads": 1, "nodes": 1}
    host["nics"] = [{"name": "eth0", "driver": "vif", "place": "vif-0", "queues": 1, "node": -1}]
    host["files"]["/proc/meminfo"] = "MemTotal: 16265432 kB\nHugepagesize: 2048 kB\n"
    return FakeKernel(root, built(host))


@pytest.mark.parametrize(
    ("instance_type", "status", "says"),
    [
        ("", "refused", "tune_instance_type"),
        ("t2.xlarge", "refused", "a burstable type has few vCPUs"),
        ("m4.xlarge", "would_change", "a CPU for each queue"),
    ],
)
def test_a_xen_host_that_may_be_a_t2_is_asked_about(
    tmp_path: Path, call: Call, instance_type: str, status: str, says: str
) -> None:
    host = xen_without_a_named_type(tmp_path)
    result = call(network_irq.main, host, check=True, policy="auto", instance_type=instance_type)
    (found,) = [finding for finding in result["findings"] if finding["knob"] == "policy"]
    assert found["status"] == status
    assert says in found["reason"]


def test_a_type_that_is_none_is_refused_by_name(tmp_path: Path, call: Call) -> None:
    result = call(network_irq.main, xen_without_a_named_type(tmp_path), policy="auto", instance_type="large; reboot")
    assert result["failed"]
    assert "instance_type is a type of EC2 such as t2.large, not 'large; reboot'" in result["msg"]
