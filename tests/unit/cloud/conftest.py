# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the cloud tests run a module: its real main(), in this process, with options as Ansible passes them."""

from __future__ import annotations

import importlib
import json
import time
from typing import Any, Callable, Dict, Iterator

import botocore.loaders
import botocore.session
import pytest
from ansible.module_utils.testing import patch_module_args

from tests.support.aws.fake_aws import FakeAws
from tests.support.aws.fake_http import serve

LOADER = botocore.loaders.create_loader()
Run = Callable[..., Dict[str, Any]]


class Clock:
    """A clock that only pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, aws: FakeAws) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(time, "sleep", self.wait)
        monkeypatch.setattr(time, "monotonic", lambda: self.seconds)
        aws.elapsed = lambda: self.seconds

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """run("ebs", check=True, instance_ids=[…]) gives what the module prints; failure is `failed: True`."""

    def module(name: str, check: bool = False, **options: Any) -> Dict[str, Any]:
        main = importlib.import_module(f"ansible_collections.nearmetal.ec2.plugins.modules.{name}").main
        capsys.readouterr()
        with patch_module_args({"_ansible_check_mode": check, **options, "_ansible_diff": True}), pytest.raises(
            SystemExit
        ):
            main()
        result: Dict[str, Any] = json.loads(capsys.readouterr().out)
        result.pop("invocation", None)
        return result

    return module


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """boto3's standard chain, without what this machine has of it."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    # Reading EC2's service model takes 0.4 s, so it is read once.
    monkeypatch.setattr(botocore.session, "create_loader", lambda _path: LOADER)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    return monkeypatch


@pytest.fixture
def aws(environment: pytest.MonkeyPatch) -> Iterator[FakeAws]:
    """Our own fake endpoint: boto3 talks to it over HTTP."""
    fake = FakeAws()
    server = serve(fake)
    environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    yield fake
    fake.released.set()
    server.shutdown()
    server.server_close()
    assert not fake.problems


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, aws: FakeAws) -> Clock:
    """Waiting costs nothing: each pause moves the clock, of the modules and of the fake AWS."""
    return Clock(monkeypatch, aws)
