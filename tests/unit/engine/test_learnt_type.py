# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on Xen doesn't know its type: plans with a named type, and without one."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.modules import network_irq

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import FOLDER, built, files_of
from tests.support.lab.fake_imds import TOKEN, FakeImds

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
        ("m4.xlarge", "would_change", "each queue gets a CPU"),
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


def test_an_unknown_type_is_refused_by_name(tmp_path: Path, call: Call) -> None:
    result = call(network_irq.main, xen_without_a_named_type(tmp_path), policy="auto", instance_type="large; reboot")
    assert result["failed"]
    assert "instance_type is a type of EC2 such as t2.large, not 'large; reboot'" in result["msg"]


@pytest.fixture
def service() -> Iterator[FakeImds]:
    """A metadata service of our own."""
    server = FakeImds("127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


def says(server: FakeImds, instance_type: str) -> None:
    """Set the type in the service's document."""
    server.tree["dynamic/instance-identity/document"] = json.dumps({"instanceType": instance_type})


def asked_host(root: Path, server: FakeImds) -> FakeKernel:
    """A Xen host whose metadata service is this one."""
    host = xen_without_a_named_type(root)
    host.metadata_service = ("127.0.0.1", server.server_port)
    return host


def status(result: Dict[str, Any]) -> str:
    """The status of the finding about the interrupts."""
    return str(next(finding["status"] for finding in result["findings"] if finding["knob"] == "policy"))


@pytest.mark.parametrize(("named", "wanted"), [("t2.xlarge", "refused"), ("m4.xlarge", "would_change")])
def test_the_metadata_service_gives_a_type_that_nobody_named(
    tmp_path: Path, call: Call, service: FakeImds, named: str, wanted: str
) -> None:
    says(service, named)
    result = call(network_irq.main, asked_host(tmp_path, service), check=True, policy="auto")
    assert status(result) == wanted
    assert service.asked == ["PUT /latest/api/token", "GET /latest/dynamic/instance-identity/document"]
    assert TOKEN not in json.dumps(result)


def test_the_option_wins_over_the_metadata_service_and_saves_the_request(
    tmp_path: Path, call: Call, service: FakeImds
) -> None:
    says(service, "t2.xlarge")
    host = asked_host(tmp_path, service)
    assert status(call(network_irq.main, host, check=True, policy="auto", instance_type="m4.xlarge")) == "would_change"
    assert service.asked == []


@pytest.mark.parametrize("kind", ["off", "slow", "drip", "junk", "huge"])
def test_without_the_metadata_service_the_finding_asks_for_the_type(
    tmp_path: Path, call: Call, service: FakeImds, kind: str
) -> None:
    service.kind = kind
    result = call(network_irq.main, asked_host(tmp_path, service), check=True, policy="auto")
    assert status(result) == "refused"


@pytest.mark.parametrize("named", ["m4.xlarge; reboot", "large machine", "x" * 5000, "\x1b[31mm4.xlarge", "", 7])
def test_a_malformed_type_is_ignored(tmp_path: Path, call: Call, service: FakeImds, named: Any) -> None:
    says(service, named)
    assert status(call(network_irq.main, asked_host(tmp_path, service), check=True, policy="auto")) == "refused"


def test_a_type_from_the_service_is_stored_for_the_unit_and_for_later_runs(
    tmp_path: Path, call: Call, service: FakeImds
) -> None:
    says(service, "m4.xlarge")
    host = asked_host(tmp_path, service)
    assert status(call(network_irq.main, host, policy="auto")) == "changed"
    kept = host.text("/var/lib/nearmetal/wanted.json") or ""
    assert json.loads(kept)["concerns"]["network_irq"]["options"]["instance_type"] == "m4.xlarge"
    assert TOKEN not in kept
    service.asked.clear()
    assert command.main(["plan"], host) == 0, "the unit plans with the type that is stored"
    assert service.asked == []
    service.kind = "off"
    again = call(network_irq.main, host, policy="auto")
    assert (status(again), again["changed"]) == ("ok", False)
    service.kind = "ok"
    says(service, "t2.xlarge")
    assert status(call(network_irq.main, host, policy="auto")) == "refused", "restarted as another type"


def test_a_type_from_the_option_counts_only_for_that_run(
    tmp_path: Path, call: Call, service: FakeImds, capsys: pytest.CaptureFixture[str]
) -> None:
    service.kind = "off"
    host = asked_host(tmp_path, service)
    assert status(call(network_irq.main, host, policy="auto", instance_type="m4.xlarge")) == "changed"
    assert command.main(["status"], host) == 0, "the unit plans with it until another run"
    capsys.readouterr()
    result = call(network_irq.main, host, policy="auto")
    assert status(result) == "refused", "the inventory says no type any more, and the service nothing"
    assert "tune_instance_type" in json.dumps(result)
    assert "instance_type" not in (host.text("/var/lib/nearmetal/wanted.json") or "")


def test_a_type_from_the_option_replaces_a_stored_type(tmp_path: Path, call: Call, service: FakeImds) -> None:
    says(service, "m4.xlarge")
    host = asked_host(tmp_path, service)
    call(network_irq.main, host, policy="auto")
    service.kind = "off"
    assert status(call(network_irq.main, host, policy="auto", instance_type="t2.xlarge")) == "refused"
    assert status(call(network_irq.main, host, policy="auto")) == "refused", "asked about: what was learnt was wrong"


def test_a_nitro_host_knows_its_type_without_the_metadata_service(
    tmp_path: Path, call: Call, service: FakeImds
) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    host.metadata_service = ("127.0.0.1", service.server_port)
    call(network_irq.main, host, check=True, policy="auto")
    assert service.asked == []
