# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The messages for an operator when AWS does not respond as it should, on our own fake endpoint over HTTP."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import botocore.endpoint
import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud import accounts, api
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

from tests.support.aws.fake_aws import FakeAws
from tests.support.aws.fake_error import AwsError


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto's pauses between attempts, without the waiting."""
    monkeypatch.setattr(botocore.endpoint.time, "sleep", lambda _seconds: None)


def test_a_burst_of_throttling_is_outlasted(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1)
    aws.fault("DescribeInstances", "RequestLimitExceeded", times=3)
    result = run("instance_info", instance_ids=[instance])
    assert list(result["instances"]) == [instance]
    assert aws.calls["DescribeInstances"] == 4


def test_persistent_throttling_ends_the_run(run: Any, aws: FakeAws) -> None:
    aws.fault("DescribeInstances", "RequestLimitExceeded")
    result = run("instance_info", instance_ids=[aws.add(1)])
    assert result["msg"] == (
        "eu-west-1: DescribeInstances: RequestLimitExceeded: AWS throttles the account and 5 attempts did not get "
        "through: run again later"
    )
    assert aws.calls["DescribeInstances"] == 5


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("RequestExpired", "the credentials have expired, or this controller's clock is wrong"),
        ("ExpiredToken", "the credentials have expired: log in again"),
        ("InvalidClientTokenId", "the credentials are not known to AWS"),
        ("UnauthorizedOperation", "the credentials lack the permission: see the module's policy in docs/iam/"),
        ("OptInRequired", "the account has not enabled this region"),
        ("InternalFailure", "as the test wants"),
    ],
)
def test_an_error_of_aws_says_what_to_do(run: Any, aws: FakeAws, code: str, message: str) -> None:
    aws.fault("DescribeInstances", code)
    result = run("instance_info", instance_ids=[aws.add(1)])
    assert result["failed"]
    assert result["msg"] == f"eu-west-1: DescribeInstances: {code}: {message}"


@pytest.mark.parametrize(("seconds_off", "direction"), [(-900, "ahead of"), (900, "behind")])
def test_a_wrong_clock_is_measured(run: Any, aws: FakeAws, seconds_off: int, direction: str) -> None:
    aws.fault("DescribeInstances", "RequestExpired", seconds_off=seconds_off)
    message = run("instance_info", instance_ids=[aws.add(1)])["msg"]
    assert f"s {direction} AWS's" in message
    assert 895 <= int(message.split("(this clock is ")[1].split()[0]) <= 905


SIGNED = (
    "The request signature we calculated does not match the signature you provided. The Canonical String for this "
    "request should have been 'POST / host:ec2 x-amz-security-token:SESSIONTOKEN'"
)
BY_POLICY = "User: arn:x is not authorized to perform: ec2:x with an explicit deny in a service control policy. Encoded"


@pytest.mark.parametrize(
    ("code", "message", "sentence"),
    [
        ("SignatureDoesNotMatch", SIGNED, "the secret key is wrong, or this controller's clock is wrong"),
        (
            "UnauthorizedOperation",
            BY_POLICY,
            "a service control policy denies it, whatever the credentials may: ask whoever manages that policy",
        ),
    ],
)
def test_what_aws_says_is_reported_as_its_cause_without_secrets(
    run: Any, aws: FakeAws, monkeypatch: pytest.MonkeyPatch, code: str, message: str, sentence: str
) -> None:
    def refuse(_request: Any, _caller: Any) -> Any:
        raise AwsError(code, message, 403)

    monkeypatch.setattr(aws, "DescribeInstances", refuse)
    result = run("instance_info", instance_ids=[aws.add(1)])
    assert result["msg"] == f"eu-west-1: DescribeInstances: {code}: {sentence}"


def test_the_password_in_the_url_of_an_endpoint_is_not_shown(run: Any, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ENDPOINT_URL", "http://operator:password@127.0.0.1:1")
    message = run("instance_info", instance_ids=["i-00000000000000001"])["msg"]
    assert "http://127.0.0.1:1" in message
    assert "password" not in message


def test_no_region_names_the_option(run: Any, aws: FakeAws, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_DEFAULT_REGION")
    result = run("instance_info", instance_ids=[aws.add(1)])
    assert result["msg"] == "no region: set regions, AWS_DEFAULT_REGION, or region in the profile"


def test_no_credentials_says_so(run: Any, aws: FakeAws, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    result = run("instance_info", instance_ids=[aws.add(1)])
    assert result["msg"] == (
        "eu-west-1: DescribeInstances: no credentials in boto3's standard chain: log in, or set profile"
    )


@pytest.mark.parametrize("name", ["instance_info", "ebs"])
@pytest.mark.parametrize(
    "source",
    [
        "credential_process = /no/such/process",
        "credential_process = /bin/echo hello",
        "credential_process = /bin/echo []",
    ],
)
def test_a_source_of_credentials_that_fails_is_named(
    run: Any, aws: FakeAws, environment: pytest.MonkeyPatch, tmp_path: Path, source: str, name: str
) -> None:
    """boto lets the bare error of Python pass."""
    environment.delenv("AWS_ACCESS_KEY_ID")
    (tmp_path / "config").write_text(f"[default]\n{source}\n")
    environment.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    result = run(name, instance_ids=[aws.add(1)])
    assert result["msg"].startswith("eu-west-1: DescribeInstances: boto3 could not make this call (")
    assert "check the source of the credentials" in result["msg"]


def test_an_endpoint_that_is_no_address_is_named(run: Any, aws: FakeAws, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ENDPOINT_URL", "ec2.example.com")
    assert "Invalid endpoint: ec2.example.com" in run("instance_info", instance_ids=[aws.add(1)])["msg"]


def test_a_token_with_a_line_break_is_not_shown(run: Any, aws: FakeAws, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_SESSION_TOKEN", "secret\ntoken")
    message = run("instance_info", instance_ids=[aws.add(1)])["msg"]
    assert "secret" not in message
    assert message.endswith("the credentials or the region have a line break in them: give them without it")


def test_an_empty_region_is_no_region(run: Any, aws: FakeAws, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_DEFAULT_REGION", "")
    assert run("instance_info", instance_ids=[aws.add(1)])["msg"].startswith("no region: set regions")


def test_an_endpoint_that_hangs_is_given_up_in_time(run: Any, aws: FakeAws) -> None:
    aws.fault("DescribeInstances", "hang")
    result = run("instance_info", instance_ids=[aws.add(1)], timeout=3)
    assert result["msg"].startswith("AWS did not answer within timeout: 3 seconds.")


def test_a_deadline_whose_exception_is_dropped_ends_the_call_by_the_next_one() -> None:
    """Python drops the exception of a signal that comes while an object is finalized."""

    def drop_the_first() -> None:
        with accounts.deadline(1):
            with suppress(BaseException):
                threading.Event().wait(20)
            threading.Event().wait(20)

    with pytest.raises(NearmetalError, match="within timeout: 1 seconds"):
        drop_the_first()


def test_an_endpoint_that_refuses_is_named(run: Any, environment: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        result = run("instance_info", instance_ids=["i-00000000000000001"])
    assert f"127.0.0.1:{port}" in result["msg"]
    assert "DescribeInstances" in result["msg"]


def test_an_answer_that_breaks_off_is_asked_again(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1)
    aws.fault("DescribeInstances", "cut", times=1)
    assert list(run("instance_info", instance_ids=[instance])["instances"]) == [instance]


def test_a_call_that_dies_half_way_keeps_the_type_that_it_found(run: Any, aws: FakeAws) -> None:
    for number in range(1, 11):
        aws.add(number)
    aws.page = 4
    aws.fault("DescribeInstances", "cut", first=1)
    result = run("instance_info", filters={})
    assert len(result["instances"]) == 4
    (error,) = result["errors"]
    assert error.startswith("eu-west-1: DescribeInstances after 4 answers: ")
    assert result["msg"].endswith(f"; instances may be missing: {error}")


def test_pages_without_end_end_the_run(run: Any, aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    describe = aws.DescribeInstances

    def with_another_page(request: Any, caller: Any) -> Any:
        answer = describe({name: value for name, value in request.items() if name != "NextToken"}, caller)
        return {**answer, "NextToken": str(aws.calls["DescribeInstances"])}

    monkeypatch.setattr(aws, "DescribeInstances", with_another_page)
    monkeypatch.setattr(api, "_MOST_PAGES", 5)
    aws.add(1)
    for options in ({"filters": {}}, {"filters": {"instance-type": "none-of-any"}}):
        before = aws.calls["DescribeInstances"]
        result = run("instance_info", **options)
        assert "DescribeInstances: after 5 pages there are still more: check the endpoint and any proxy" in str(result)
        assert aws.calls["DescribeInstances"] - before == 5


def test_a_batch_that_fails_is_unknown_for_its_instances_only(run: Any, aws: FakeAws) -> None:
    ids = [aws.add(number) for number in range(1, 151)]
    aws.fault("DescribeInstanceStatus", "UnauthorizedOperation", first=1)
    result = run("instance_info", instance_ids=ids)
    assert len(result["failed_instances"]) == 50
    lost = result["instances"][ids[-1]]["findings"][-1]
    assert (lost["status"], lost["where"]) == ("unknown", ids[-1])
    assert "DescribeInstanceStatus" in lost["reason"]


def test_an_instance_that_goes_away_meanwhile_does_not_spoil_its_batch(run: Any, aws: FakeAws) -> None:
    ids = [aws.add(number) for number in range(1, 4)]
    aws.forget_after("DescribeInstances", ids[1])
    result = run("instance_info", instance_ids=ids)
    assert result["failed_instances"] == {ids[1]: "the instance was terminated during the run"}
    assert aws.calls["DescribeInstanceStatus"] == 2


def test_a_proxy_that_answers_in_html_is_recognised(run: Any, aws: FakeAws) -> None:
    aws.fault("DescribeInstances", "html")
    result = run("instance_info", instance_ids=[aws.add(1)])
    assert result["msg"] == (
        "eu-west-1: DescribeInstances: the answer broke off or is not AWS's: check the endpoint and any proxy"
    )


def test_without_the_permission_for_types_the_table_serves(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "c4.large")
    aws.fault("DescribeInstanceTypes", "UnauthorizedOperation")
    result = run("instance_info", instance_ids=[instance])
    assert result["types_from"] == "table"
    assert result["instances"][instance]["facts"]["host_class"] == "xen_hvm"


def test_types_of_the_api_when_it_refuses(run: Any, aws: FakeAws) -> None:
    aws.fault("DescribeInstanceTypes", "UnauthorizedOperation")
    result = run("instance_type_info", instance_types=["m5.large"], source="api")
    assert "source: table" in result["msg"]


def test_types_of_the_api(run: Any, aws: FakeAws) -> None:
    result = run("instance_type_info", instance_types=["m5.large", "f1.16xlarge"], source="api")
    assert {name: kind["source"] for name, kind in result["instance_types"].items()} == {
        "m5.large": "api",
        "f1.16xlarge": "sources",
    }
    assert aws.calls == {"DescribeInstanceTypes": 1}
