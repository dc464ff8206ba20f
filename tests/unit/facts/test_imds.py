# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata service as a host asks it, on a small server of our own."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any, Callable, Iterator, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import imds
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.json_data import json_data
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.platform import PlatformFacts

from tests.support.lab.fake_imds import TOKEN, FakeImds

NITRO = PlatformFacts(
    host_class="nitro",
    hypervisor="nitro",
    virtualization="hvm",
    hypervisor_flag=True,
    container="none",
    architecture="x86_64",
    instance_type="c6in.32xlarge",
    instance_id="i-0123456789abcdef0",
    burstable=False,
    distribution="amzn",
    distribution_version="2023",
    kernel="6.1.94",
    kernel_version=(6, 1, 94),
    kernel_build=(),
    boot_loader="grub_bls",
    scheduler=None,
)
Serve = Callable[..., FakeImds]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """serve("slow") runs the service in the background."""
    running = []

    def start(kind: str = "ok") -> FakeImds:
        server = FakeImds("127.0.0.1", 0, kind)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.released.set()
        server.shutdown()
        server.server_close()


def place(server: FakeImds) -> Tuple[str, int]:
    """Where the server listens."""
    return "127.0.0.1", server.server_port


def test_the_document_that_the_instance_prints(serve: Serve) -> None:
    found = json_data(imds.observe(NITRO, place(serve())))
    interfaces = found.pop("interfaces")
    assert found == {
        "status": "ok",
        "reason": "",
        "instance_id": "i-0123456789abcdef0",
        "instance_type": "c6in.32xlarge",
        "account": "123456789012",
        "region": "eu-west-1",
        "availability_zone": "eu-west-1b",
        "architecture": "x86_64",
        "image_id": "ami-0123456789abcdef0",
        "kernel_id": None,
        "lifecycle": "spot",
        "placement_group": "together",
        "partition": 3,
        "workload": "cache",
        "events": ["system-reboot not before 24 Dec 2026 03:00:00 GMT"],
        "spot_notice": "terminate at 2026-12-24T03:00:00Z",
    }
    assert interfaces == [
        {"interface_id": "eni-1", "device_number": 0, "card": None},
        {"interface_id": "eni-2", "device_number": 1, "card": 1},
    ]


def test_the_token_is_kept_nowhere_and_user_data_is_not_read(serve: Serve) -> None:
    server = serve()
    found = imds.observe(NITRO, place(server))
    assert TOKEN not in repr(found)
    assert server.asked[0] == "PUT /latest/api/token"
    assert not [path for path in server.asked if "user-data" in path or "iam" in path]


def test_a_host_that_is_not_ec2_is_not_asked(serve: Serve) -> None:
    server = serve()
    found = imds.observe(NITRO._replace(host_class="not_ec2", instance_id=None), place(server))
    assert (found.status, server.asked) == ("not_ec2", [])
    container = NITRO._replace(host_class="container", instance_id=None)
    assert imds.observe(container, place(server)).status == "not_ec2"
    assert server.asked == []


def test_a_container_on_ec2_gets_the_advice_on_the_hop_limit(serve: Serve) -> None:
    found = imds.observe(NITRO._replace(host_class="container"), place(serve("slow")))
    assert found.status == "no_answer"
    assert "hop limit" in found.reason


@pytest.mark.parametrize("kind", ["slow", "drip"])
def test_a_service_that_does_not_answer_costs_one_second_in_all(serve: Serve, kind: str) -> None:
    started = time.monotonic()
    found = imds.observe(NITRO, place(serve(kind)))
    assert found.status == "no_answer"
    assert 0.9 <= time.monotonic() - started < 3


def test_answers_of_a_slow_service_in_time_are_kept(serve: Serve) -> None:
    found = imds.observe(NITRO, place(serve("tired")))
    assert (found.status, found.instance_id, found.lifecycle) == ("ok", "i-0123456789abcdef0", None)
    assert "slow" in found.reason


def test_a_service_that_is_off(serve: Serve) -> None:
    found = imds.observe(NITRO, place(serve("off")))
    assert found.status == "off"
    assert "metadata options" in found.reason


def test_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = imds.observe(NITRO, taken.getsockname())
    assert found.status == "off"


def test_an_answer_without_http_counts_as_no_service(serve: Serve) -> None:
    assert imds.observe(NITRO, place(serve("junk"))).status == "off"


def test_endless_answers_are_cut_and_null(serve: Serve) -> None:
    found = imds.observe(NITRO, place(serve("huge")))
    assert found.status == "ok"
    assert (found.instance_id, found.lifecycle, found.interfaces) == (None, None, ())


def test_no_proxy_is_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.1:3128")
    assert imds.observe(NITRO, place(serve())).status == "ok"


HOSTILE: Any = [
    ("dynamic/instance-identity/document", "[" * 5000, {"instance_id": None}),
    ("dynamic/instance-identity/document", json.dumps({"instanceId": "i-1; rm -rf /\n"}), {"instance_id": None}),
    ("dynamic/instance-identity/document", json.dumps([1]), {"region": None}),
    ("meta-data/placement/partition-number", "9" * 5000, {"partition": None}),
    ("meta-data/placement/group-name", "\x1b[31mred", {"placement_group": None}),
    ("meta-data/network/interfaces/macs/", "../../user-data\n", {"interfaces": ()}),
    ("meta-data/events/maintenance/scheduled", json.dumps({"a": 1}), {"events": ()}),
    ("meta-data/events/maintenance/scheduled", json.dumps([7, None]), {"events": ()}),
    ("meta-data/spot/instance-action", json.dumps("soon"), {"spot_notice": None}),
]


@pytest.mark.parametrize(("path", "text", "wanted"), HOSTILE)
def test_malformed_values_are_null(serve: Serve, path: str, text: str, wanted: Any) -> None:
    server = serve()
    server.tree[path] = text
    found = imds.observe(NITRO, place(server))
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert not [request for request in server.asked if ".." in request]


def test_without_anything_but_the_document(serve: Serve) -> None:
    server = serve()
    server.tree = {"dynamic/instance-identity/document": server.tree["dynamic/instance-identity/document"]}
    found = imds.observe(NITRO, place(server))
    assert (found.status, found.instance_type, found.events, found.spot_notice) == ("ok", "c6in.32xlarge", (), None)
