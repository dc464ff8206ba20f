# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for boto3's session: the fake AWS without HTTP between, for thousands of runs.

A request is checked against botocore's service model, and an error is what boto would raise after its own attempts.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.validate import ParamValidator

from tests.support.aws.fake_aws import FakeAws, LostAnswer
from tests.support.aws.fake_error import AwsError
from tests.support.aws.wire import MODELS


class FakeSession:
    """What the modules use of boto3.Session."""

    def __init__(self, aws: FakeAws) -> None:
        self.aws = aws
        self.region_name = "eu-west-1"

    def client(self, service: str, region_name: str, config: Any) -> "_Client":
        """A client; `config` is boto's business."""
        assert config.retries
        return _Client(self.aws, service, region_name)


class _Client:
    def __init__(self, aws: FakeAws, service: str, region: str) -> None:
        self._aws, self._service, self._region = aws, service, region

    def __getattr__(self, method: str) -> Callable[..., Dict[str, Any]]:
        operation = "".join(word.capitalize() for word in method.split("_"))

        def call(**request: Any) -> Dict[str, Any]:
            shape = MODELS[self._service].operation_model(operation).input_shape
            report = ParamValidator().validate(request, shape)
            assert not report.has_errors(), report.generate_report()
            fault = self._aws.count(operation, request)
            try:
                answer = self._aws.respond(operation, request, ("111111111111", self._region), fault)
            except LostAnswer:
                raise ConnectionClosedError(endpoint_url="https://ec2.invalid") from None
            except AwsError as error:
                details = {"Code": error.code, "Message": str(error)}
                raise ClientError(
                    {"Error": details, "ResponseMetadata": {"HTTPStatusCode": error.status}}, operation
                ) from None
            date = self._aws.now().strftime("%a, %d %b %Y %H:%M:%S GMT")
            return {**_copy(answer), "ResponseMetadata": {"HTTPHeaders": {"date": date}}}

        return call


def _copy(value: Any) -> Any:
    """A copy of plain data, so that later changes of the fake don't change an answer."""
    if isinstance(value, dict):
        return {name: _copy(element) for name, element in value.items()}
    return [_copy(element) for element in value] if isinstance(value, list) else value
