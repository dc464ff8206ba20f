# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account of moto's with images as publishers name them, and a way to run the playbooks of molecule/ec2 on it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple
from unittest import mock

import boto3
import moto.ec2.models.amis
import moto.ec2.models.elastic_block_store
import yaml
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from dev import ROOT
from dev.programs import amazon_aws

SCENARIO = ROOT / "molecule" / "ec2"
REGION = "us-east-1"
AMAZON, CANONICAL, DEBIAN, RED_HAT, SUSE = (
    "137112412989",
    "099720109477",
    "136693071363",
    "309956199498",
    "013907871322",
)
SECRET = "not-a-secret-of-anyone"
SOMEBODY = "111122223333"
UBUNTU = "ubuntu/images/hvm-ssd"

# (platform, owner, architecture, name, day of creation): the newest of each platform, as its publisher calls it.
NEWEST: List[Tuple[str, str, str, str, int]] = [
    ("al2023_x86_64", AMAZON, "x86_64", "al2023-ami-2023.9.20251014.0-kernel-6.1-x86_64", 14),
    ("al2023_arm64", AMAZON, "arm64", "al2023-ami-2023.9.20251014.0-kernel-6.1-arm64", 14),
    ("ubuntu_22_04_x86_64", CANONICAL, "x86_64", f"{UBUNTU}/ubuntu-jammy-22.04-amd64-server-20251015", 15),
    ("ubuntu_22_04_arm64", CANONICAL, "arm64", f"{UBUNTU}/ubuntu-jammy-22.04-arm64-server-20251015", 15),
    ("ubuntu_24_04_x86_64", CANONICAL, "x86_64", f"{UBUNTU}-gp3/ubuntu-noble-24.04-amd64-server-20251015", 15),
    ("ubuntu_24_04_arm64", CANONICAL, "arm64", f"{UBUNTU}-gp3/ubuntu-noble-24.04-arm64-server-20251015.1", 15),
    ("debian_12_x86_64", DEBIAN, "x86_64", "debian-12-amd64-20251006-2257", 6),
    ("debian_12_arm64", DEBIAN, "arm64", "debian-12-arm64-20251006-2257", 6),
    ("debian_13_x86_64", DEBIAN, "x86_64", "debian-13-amd64-20251006-2257", 6),
    ("debian_13_arm64", DEBIAN, "arm64", "debian-13-arm64-20251006-2257", 6),
    ("rhel_9_x86_64", RED_HAT, "x86_64", "RHEL-9.6.0_HVM-20251003-x86_64-0-Hourly2-GP3", 3),
    ("rhel_9_arm64", RED_HAT, "arm64", "RHEL-9.6.0_HVM-20251003-arm64-0-Hourly2-GP3", 3),
    ("rhel_10_x86_64", RED_HAT, "x86_64", "RHEL-10.0.0_HVM-20251002-x86_64-0-Hourly2-GP3", 2),
    ("rhel_10_arm64", RED_HAT, "arm64", "RHEL-10.0.0_HVM-20251002-arm64-0-Hourly2-GP3", 2),
    ("sles_15_x86_64", SUSE, "x86_64", "suse-sles-15-sp7-v20251001-hvm-ssd-x86_64", 1),
    ("sles_15_arm64", SUSE, "arm64", "suse-sles-15-sp7-v20251001-hvm-ssd-arm64", 1),
]
# Newer than all of those, but not the wanted images.
OTHERS: List[Tuple[str, str, str]] = [
    (AMAZON, "x86_64", "al2023-ami-minimal-2023.9.20251020.0-kernel-6.1-x86_64"),
    (AMAZON, "x86_64", "al2023-ami-ecs-hvm-2023.0.20251020-kernel-6.1-x86_64"),
    (CANONICAL, "x86_64", f"{UBUNTU}-gp3/ubuntu-noble-24.04-amd64-pro-server-20251020"),
    (DEBIAN, "x86_64", "debian-12-backports-amd64-20251020-2270"),
    (SOMEBODY, "x86_64", "debian-12-amd64-20251020-2270"),
    (SOMEBODY, "arm64", "ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-arm64-server-20251020"),
    (RED_HAT, "x86_64", "RHEL-9.7.0_HVM_BETA-20251020-x86_64-0-Hourly2-GP3"),
    (RED_HAT, "x86_64", "RHEL-9.6.0_HVM-20251020-x86_64-0-Access2-GP3"),
    (RED_HAT, "x86_64", "RHEL_HA-9.6.0_HVM-20251020-x86_64-0-Hourly2-GP3"),
    (SUSE, "x86_64", "suse-sles-15-sp7-byos-v20251020-hvm-ssd-x86_64"),
    (SUSE, "x86_64", "suse-sles-15-sp7-v20251020-ecs-hvm-ssd-x86_64"),
    (SUSE, "x86_64", "suse-sles-sap-15-sp7-v20251020-hvm-ssd-x86_64"),
]


def images() -> List[Dict[str, Any]]:
    """Each publisher's newest image, an older one of the same name, and those that only look like it."""
    rows = [(owner, arch, name, day) for _platform, owner, arch, name, day in NEWEST]
    rows += [(owner, arch, name.replace("2025", "2024"), day) for owner, arch, name, day in rows]
    rows += [(owner, arch, name, 20) for owner, arch, name in OTHERS]
    return [
        {
            "ami_id": f"ami-{number:017x}",
            "name": name,
            "owner_id": owner,
            "architecture": arch,
            "creation_date": f"{2024 if '2024' in name else 2025}-10-{day:02d}T12:00:00.000Z",
            "public": True,
            "virtualization_type": "hvm",
            "root_device_name": "/dev/sda1",
            "root_device_type": "ebs",
            "state": "available",
        }
        for number, (owner, arch, name, day) in enumerate(rows, 1)
    ]


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_of: Any, **_more: Any) -> None:
        """A line per request would hide what a failing test says."""


class Account:
    """moto's account behind a proxy that counts calls and can refuse them."""

    def __init__(self) -> None:
        self.calls: List[str] = []
        self.launches_left = 1000
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.address = f"http://127.0.0.1:{self._server.port}"

    def _answer(self, environ: Dict[str, Any], start: Any) -> Any:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if environ["PATH_INFO"] == "/caller":
            start("200 OK", [("Content-Type", "text/plain")])
            return [b"198.51.100.7\n"]
        action = body.decode().partition("Action=")[2].partition("&")[0]
        self.calls.append(action)
        if action == "RunInstances":
            self.launches_left -= 1
            if self.launches_left < 0:
                start("400 Bad Request", [("Content-Type", "text/xml")])
                error = "<Code>VcpuLimitExceeded</Code><Message>You have requested more vCPU capacity</Message>"
                return [f"<Response><Errors><Error>{error}</Error></Errors></Response>".encode()]
        return self._moto(environ, start)

    @contextmanager
    def served(self) -> Iterator["Account"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def environment(self) -> Dict[str, str]:
        """The variables with which boto3 and Ansible use only this account."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "AWS_"))}
        return {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": f"{ROOT / '.ansible' / 'collections'}{os.pathsep}{amazon_aws.HOME}",
            "ANSIBLE_PIPELINING": "true",
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "AKIATEST",
            # Ansible hides it wherever it occurs, so it must not occur in anything else.
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> Any:
        return boto3.client(
            "ec2",
            endpoint_url=self.address,
            region_name=REGION,
            aws_access_key_id="AKIATEST",
            aws_secret_access_key=SECRET,
        )

    def fresh(self) -> "Account":
        """Forget everything that was created, and refuse no call."""
        self.launches_left = 1000
        with urllib.request.urlopen(f"{self.address}/moto-api/reset", b""):
            self.calls.clear()
        return self


def _snapshot_of(volume: Any) -> str:
    return volume.__dict__.get("snapshot_id") or ""


def _set_snapshot(volume: Any, value: Any) -> None:
    volume.__dict__["snapshot_id"] = value


@contextmanager
def account() -> Iterator[Account]:
    """An account with our images; a volume without a snapshot has an empty id for it, as on EC2."""
    volume = moto.ec2.models.elastic_block_store.Volume
    with mock.patch.object(moto.ec2.models.amis, "AMIS", images()), mock.patch.object(
        volume, "snapshot_id", property(_snapshot_of, _set_snapshot), create=True
    ), mock.patch.dict(os.environ, {"MOTO_AMIS_PATH": "ours"}), Account().served() as served:
        yield served


def play(name: str, folder: Path, environment: Dict[str, str], **settings: Any) -> "subprocess.CompletedProcess[str]":
    """Run create.yml, destroy.yml or left.yml as molecule would, with a file of variables."""
    given = folder / "run.yml"
    given.write_text(yaml.safe_dump({"ec2_run": "a-run", "ec2_caller": "203.0.113.9/32", **settings}))
    words = ["ansible-playbook", "--inventory", "localhost,", str(SCENARIO / name)]
    for key, path in (("molecule_instance_config", "hosts.yml"), ("molecule_ephemeral_directory", "")):
        words += ["--extra-vars", f"{key}={folder / path}"]
    return subprocess.run(
        words,
        env={"NEARMETAL_EC2": str(given), **environment},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
