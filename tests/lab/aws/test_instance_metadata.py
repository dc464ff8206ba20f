# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""instance_facts asks the real address on a host with a real kernel; the service behind it is our own.

The service lives in a network namespace, one hop away. From another namespace it is two hops away, as
from a container: there its answers, sent with a hop limit of 1, do not arrive.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.host import Host, instance, inventory

ROOT = Path(__file__).resolve().parents[3]
NETWORK = """
set -e
ip netns add service
ip netns add box
ip link add to-service type veth peer name eth0 netns service
ip link add to-box type veth peer name eth0 netns box
ip address add 169.254.169.1/24 dev to-service
ip address add 192.0.2.1/24 dev to-box
ip link set to-service up
ip link set to-box up
ip netns exec service sh -c 'ip address add 169.254.169.254/24 dev eth0; ip link set eth0 up; ip link set lo up'
ip netns exec service ip route add 192.0.2.0/24 via 169.254.169.1
ip netns exec box sh -c 'ip address add 192.0.2.2/24 dev eth0; ip link set eth0 up'
ip netns exec box ip route add default via 192.0.2.1
sysctl -q net.ipv4.ip_forward=1
printf '#!/bin/sh\\nexec ip netns exec box /usr/bin/python3 "$@"\\n' > /root/boxed
chmod 0755 /root/boxed
"""
SERVE = """
systemctl stop metadata 2>/dev/null
ip netns exec service sysctl -q net.ipv4.ip_default_ttl={hops}
systemd-run --quiet --collect --unit metadata ip netns exec service python3 /root/fake_imds.py 169.254.169.254 80 {kind}
until ip netns exec service ss -ltn | grep -q 169.254.169.254:80; do :; done
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with instance.running("default", "instance-metadata") as running:
        running.put((ROOT / "tests/support/lab/fake_imds.py").read_bytes(), "/root/fake_imds.py", mode="0600")
        running.run(NETWORK)
        yield running


def facts(host: Host, folder: Path, interpreter: str = "/usr/bin/python3") -> dict[str, Any]:
    """The facts that instance_facts returns on the host."""
    hosts = folder / "hosts.ini"
    hosts.write_text(inventory.ansible([host]).replace("/usr/bin/python3", interpreter))
    done = subprocess.run(
        ["ansible", "all", "-i", str(hosts), "-m", "nearmetal.ec2.instance_facts"],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_PIPELINING": "true", "ANSIBLE_NOCOLOR": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "AQAAAtest-token" not in done.stdout
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])["ansible_facts"]["nearmetal"]
    return found


def test_nothing_listens(host: Host, tmp_path: Path) -> None:
    assert facts(host, tmp_path)["instance"]["status"] == "off"


def test_the_instance_reports_its_type(host: Host, tmp_path: Path) -> None:
    host.run(SERVE.format(kind="ok", hops=64))
    found = facts(host, tmp_path)
    assert found["instance"]["instance_type"] == "c6in.32xlarge"
    assert "ena" in found["drivers"]["available"]


def test_a_hop_limit_of_one_keeps_containers_out(host: Host, tmp_path: Path) -> None:
    host.run(SERVE.format(kind="ok", hops=64))
    assert facts(host, tmp_path, "/root/boxed")["instance"]["status"] == "ok"
    host.run(SERVE.format(kind="ok", hops=1))
    assert facts(host, tmp_path)["instance"]["status"] == "ok"
    assert facts(host, tmp_path, "/root/boxed")["instance"]["status"] == "no_answer"


@pytest.mark.parametrize(("kind", "status"), [("off", "off"), ("slow", "no_answer")])
def test_a_service_that_refuses_or_sleeps(host: Host, tmp_path: Path, kind: str, status: str) -> None:
    host.run(SERVE.format(kind=kind, hops=64))
    assert facts(host, tmp_path)["instance"]["status"] == status
