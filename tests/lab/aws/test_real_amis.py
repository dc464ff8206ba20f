# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""molecule/ec2 end to end: moto's server for the AWS API, a lab host in place of the instance."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
import yaml

from dev import ROOT, suites
from dev.running import junit
from lab.host import Host, instance
from tests.support import moto_account
from tests.support.moto_account import SCENARIO, Account

STEPS = ["create", "prepare", "converge", "idempotence", "verify", "side_effect", "verify 2", "destroy"]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with instance.running("burstable", "real-ami") as running:
        yield running


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with moto_account.account() as served:
        yield served


def command(account: Account, given: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command that `make test-ec2` runs."""
    return subprocess.run(
        [sys.executable, "-m", "dev.real_amis", *arguments],
        cwd=ROOT,
        env={**account.environment(), "NEARMETAL_EC2": str(given)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_the_whole_scenario(host: Host, account: Account, tmp_path: Path) -> None:
    reach = {"address": host.address, "port": host.port, "user": "admin", "identity_file": str(host.identity_file)}
    settings = {"ec2_platforms": ["debian_12_x86_64"], "ec2_caller": "203.0.113.9/32"}
    given = tmp_path / "run.yml"
    given.write_text(yaml.safe_dump({**settings, "ec2_reach": {"debian_12_x86_64": reach}}), "utf-8")
    done = command(account, given)
    assert done.returncode == 0, done.stdout
    cases = junit.read(suites.JUNIT / "molecule-ec2.xml")
    names = [case.name.partition("::")[2].split(": ") for case in cases]
    assert [words[0] for words in names if len(words) == 1] == STEPS
    assert {words[0] for words in names if len(words) > 1} == {"verify", "verify 2"}
    assert {case.outcome for case in cases} == {"passed"}
    assert account.calls.count("RunInstances") == account.calls.count("TerminateInstances") == 1
    assert account.client().describe_volumes()["Volumes"] == account.client().describe_key_pairs()["KeyPairs"] == []


def test_leftover_resources_are_listed_and_destroyed(account: Account, tmp_path: Path) -> None:
    given = tmp_path / "run.yml"
    given.write_text("ec2_platforms: [debian_12_x86_64]\nec2_run: killed\n", "utf-8")
    tag = [{"ResourceType": "volume", "Tags": [{"Key": "nearmetal:run", "Value": "killed"}]}]
    client = account.fresh().client()
    volume = client.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=tag)["VolumeId"]
    listed = command(account, given, "left")
    assert listed.returncode != 0, listed.stdout
    assert f"Left in us-east-1: {volume}." in listed.stdout
    destroyed = command(account, given, "destroy")
    assert destroyed.returncode == 0, destroyed.stdout
    assert client.describe_volumes()["Volumes"] == []
    listed = command(account, given, "left")
    assert listed.returncode == 0, listed.stdout
    assert "Nothing is left in us-east-1." in listed.stdout


def user_data(ends: datetime.datetime) -> bytes:
    """The script that an instance gets, as create.yml fills it in."""
    text = (SCENARIO / "templates" / "user_data.sh.j2").read_text("utf-8")
    return jinja2.Template(text).render(ec2_ends=f"{ends:%Y-%m-%d %H:%M:%S} UTC").encode()


def test_the_user_data_ends_the_host_at_its_time(host: Host) -> None:
    tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    host.put(user_data(tomorrow), "/root/user_data", "0755")
    host.run("/root/user_data")
    shown = host.run("systemctl is-enabled end-of-test.timer; systemctl list-timers --no-legend end-of-test.timer")
    assert shown.splitlines()[0] == "enabled"
    assert f"{tomorrow:%Y-%m-%d %H:%M:%S} UTC" in shown
    # If the script is late, systemd catches up: the time lies after the timer's first start.
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=15)
    host.put(user_data(soon), "/root/user_data", "0755")
    host.run("systemctl stop end-of-test.timer; /root/user_data > /dev/null 2>&1 < /dev/null &")
    assert host.wait(lambda: not host.runs, 240.0)
