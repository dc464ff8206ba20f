# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The map from queue to CPUs that network_irq returns, on a fake kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.modules import capture, network_irq

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
ALL = {"policy": "auto", "rps": "auto", "rfs": "auto", "xps": "auto", "persist": False}


def test_the_map_of_queues_lists_the_cpus_as_found_and_as_planned(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm_4_sockets"))
    (nic,) = call(network_irq.main, host, check=True, **ALL)["queue_map"]
    assert (nic["name"], nic["place"], nic["node"]) == ("ens3", "0000:00:03.0", 2)
    assert [row["queue"] for row in nic["queues"]] == [0, 1]
    # The interrupts of a fake kernel go to CPU 0 at first, which lies on node 0.
    assert nic["queues"][0]["now"] == {"cpus": "0", "nodes": "0", "rps": "", "xps": ""}
    assert [row["wanted"]["nodes"] for row in nic["queues"]] == ["2", "2"]
    call(network_irq.main, host, **ALL)
    # Node 2 has the cores 4 and 5, with the second threads 12 and 13: a queue on each core.
    assert [row["wanted"]["cpus"] for row in nic["queues"]] == ["4", "5"]
    (found,) = call(network_irq.main, host, check=True, **ALL)["queue_map"]
    assert [row["now"] for row in found["queues"]] == [row["wanted"] for row in nic["queues"]]
    assert [row["wanted"] for row in found["queues"]] == [row["wanted"] for row in nic["queues"]]


def test_the_map_of_queues_has_added_and_removed_queues(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    host.nics.channels = {"ens5": [8, 4], "ens6": [8, 4]}
    named = {"interfaces": [{"name": "ens5", "queues": "2", "policy": "spread"}], "persist": False}
    (first, _other) = call(network_irq.main, host, **named)["queue_map"]
    assert [row["wanted"] is None for row in first["queues"]] == [False, False, True, True]
    named["interfaces"] = [{"name": "ens5", "queues": "4", "policy": "spread"}]
    (first, _other) = call(network_irq.main, host, check=True, **named)["queue_map"]
    assert [row["now"] is None for row in first["queues"]] == [False, False, True, True]
    assert len({row["wanted"]["cpus"] for row in first["queues"]}) == 4


def test_the_command_on_the_host_has_the_same_map(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = FakeKernel(tmp_path / "root", files_of("xen_hvm_4_sockets"))
    kept = {**ALL, "persist": True}
    call(network_irq.main, host, **kept)
    (tmp_path / "host.json").write_text(json.dumps(call(capture.main, host)["capture"]))
    wanted = call(network_irq.main, host, check=True, **kept)["queue_map"]
    assert command.main(["plan", "--json"], host) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["queue_map"] == wanted
    assert (printed["changed"], printed["platform"]["host_class"]) == (False, "xen_hvm")
    assert command.main(["plan", "--from", str(tmp_path / "host.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queue_map"] == wanted


def test_a_workload_without_a_capture_is_not_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    assert command.main(["plan", "--workload", "web"], host) == 1
    assert capsys.readouterr().err == "nearmetal: --workload plans a captured host: name its file with --from\n"
