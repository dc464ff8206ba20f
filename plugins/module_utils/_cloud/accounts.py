# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts, regions and deadlines of calls to AWS, and the meaning of its errors. PRIVATE to the collection."""

from __future__ import annotations

import importlib
import re
import signal
import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Type

from .._error import NearmetalError

# boto's standard mode waits up to 1, 2, 4, 8 s between attempts, so five attempts outlast a burst of throttling.
_ATTEMPTS = 5
_CONNECT_SECONDS = 5
_READ_SECONDS = 15
_ARN = re.compile(r"arn:[a-z0-9-]{1,32}:iam::[0-9]{12}:role/[\w+=,.@/-]{1,512}", re.ASCII)
_NOT_ALLOWED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")

# Error codes that an operator can act on. Every other error is shown as AWS words it.
_MEANINGS = {
    "AuthFailure": "the credentials are not valid in this region, or this controller's clock is wrong",
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException"), "the credentials have expired: log in again"),
    "InsufficientInstanceCapacity": "AWS has no room for this type in the zone at the moment: run again later",
    "InvalidClientTokenId": "the credentials are not known to AWS",
    "OptInRequired": "the account has not enabled this region",
    "RequestExpired": "the credentials have expired, or this controller's clock is wrong",
    # AWS's own words repeat the signed headers, the session token among them.
    "SignatureDoesNotMatch": "the secret key is wrong, or this controller's clock is wrong",
    "RequestTimeTooSkewed": "this controller's clock is wrong: synchronize it",
    **dict.fromkeys(
        ("RequestLimitExceeded", "Throttling", "ThrottlingException"),
        f"AWS throttles the account and {_ATTEMPTS} attempts did not get through: run again later",
    ),
    **dict.fromkeys(_NOT_ALLOWED, "the credentials lack the permission: see the module's policy in docs/iam/"),
}
# Temporary errors. A status of 500 or more, or no readable answer, is temporary too, whatever the code.
_PASSING = (
    "EC2ThrottledException",
    "InsufficientInstanceCapacity",
    "InternalError",
    "InternalFailure",
    "RequestLimitExceeded",
    "RequestThrottled",
    "ServerInternal",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
    "Unavailable",
)
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
_DENIED_BY = re.compile(r"with an explicit deny in an? ([a-z -]{1,60} policy)")
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")  # in the URL of an endpoint or a proxy
_CLOCK_CODES = ("AuthFailure", "RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch")

# The Price List API answers for all regions, and has an endpoint in three of them.
_ONLY_IN = {"pricing": "us-east-1"}

# What boto lets pass from a source of credentials: a process or a file that is missing, an answer of another form,
# credentials that were renewed and are still expired, a prompt without a terminal.
_BARE = (AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError)

_LONGEST_DEADLINE = 86400  # a day; the kernel's timer doesn't take every number
_AGAIN_SECONDS = 5  # Python drops an exception in a finalizer, so the signal of a deadline is repeated


class _Late(BaseException):
    """The deadline has passed. Not an Exception, so that boto can't take it for a fault of the network and retry."""


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """End whatever runs inside after `seconds`, with NearmetalError. For the main thread of a module."""

    if not 1 <= seconds <= _LONGEST_DEADLINE:
        raise NearmetalError(f"timeout: {seconds}: it must be at least 1 second, and at most {_LONGEST_DEADLINE}")

    def ring(_signal: int, _frame: Any) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
    try:
        yield
    except _Late:
        raise NearmetalError(
            f"AWS did not answer within timeout: {seconds} seconds. Check network and endpoint, or raise timeout."
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Boto:
    """boto3, loaded when it is needed, and its errors as one sentence."""

    def __init__(self) -> None:
        try:
            self.boto3 = importlib.import_module("boto3")
            self.config = importlib.import_module("botocore.config")
            exceptions = importlib.import_module("botocore.exceptions")
            parsers = importlib.import_module("botocore.parsers")
        except ImportError as error:
            raise NearmetalError(
                f"boto3 is missing for the controller's Python ({error}): install it, or set "
                "ansible_python_interpreter: '{{ ansible_playbook_python }}' for localhost"
            ) from error
        self.unreadable: Type[Exception] = parsers.ResponseParserError
        self._unusable: Callable[..., Exception] = exceptions.InvalidConfigError
        self.errors: Tuple[Type[Exception], ...] = (exceptions.BotoCoreError, exceptions.ClientError, self.unreadable)
        # urllib3's errors, in boto's classes: no connection, no answer, an answer that broke off.
        self._lost: Tuple[Type[Exception], ...] = (
            exceptions.ConnectionError,
            exceptions.HTTPClientError,
            self.unreadable,
        )

    def unusable(self, error: Exception) -> Exception:
        """The error of boto for what boto raised as it was, so that a run which has stopped instances goes on."""
        message = (
            f"boto3 could not make this call ({type(error).__name__}: {error}): check the source of the credentials,"
            " the configuration of boto3 and the endpoint"
        )
        return self._unusable(error_msg=message)

    def passes(self, error: BaseException) -> bool:
        """Whether the same call may succeed later."""
        response: Mapping[str, Any] = getattr(error, "response", None) or {}
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return isinstance(error, self._lost) or error_code(error) in _PASSING or status >= 500

    def explain(self, error: BaseException, where: str) -> str:
        """What a boto error means, in one sentence that names the call and the place."""
        if type(error).__name__ == "NoRegionError":
            return "no region: set regions, AWS_DEFAULT_REGION, or region in the profile"
        if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
            return f"{where}: no credentials in boto3's standard chain: log in, or set profile"
        if type(error).__name__ == "ResponseParserError":
            return f"{where}: the answer broke off or is not AWS's: check the endpoint and any proxy"
        code = error_code(error)
        if "Invalid header value" in str(error):  # its text repeats the header, such as the session token
            return f"{where}: the credentials or the region have a line break in them: give them without it"
        if not code:
            return f"{where}: {_one_line(error)}"
        message = str(getattr(error, "response", {})["Error"].get("Message", ""))
        denied_by = _DENIED_BY.search(message) if code in _NOT_ALLOWED else None
        meaning = _MEANINGS.get(code, _one_line(message))
        if denied_by:
            meaning = f"a {denied_by[1]} denies it, whatever the credentials may: ask whoever manages that policy"
        return f"{where}: {code}: {meaning}{_skew(error) if code in _CLOCK_CODES else ''}"


def error_code(error: BaseException) -> str:
    """The code in an error answer of AWS; empty when AWS did not answer."""
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def title(operation: str) -> str:
    """An operation of boto's as AWS writes it: StopInstances."""
    return "".join(word.capitalize() for word in operation.split("_"))


def not_allowed(error: BaseException) -> bool:
    return error_code(error) in _NOT_ALLOWED


def _one_line(error: object) -> str:
    return _PASSWORD.sub("", " ".join(str(error).split()))[:300]


def _skew(error: BaseException) -> str:
    """By how much this machine's clock differs from the answer's Date; empty when it doesn't."""
    headers = getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        aws_time = parsedate_to_datetime(headers["date"])
        seconds = int((datetime.now(timezone.utc) - aws_time).total_seconds())
    except (KeyError, TypeError, ValueError):
        return ""
    if abs(seconds) < 60:
        return ""
    return f" (this clock is {abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'} AWS's)"


class Target:
    """One account and region: its clients, made when first used."""

    def __init__(
        self, boto: Boto, session: Any, renew: Callable[[], Any], account: str, region: str, read_seconds: int
    ) -> None:
        self.boto, self._session, self._renew, self.account, self.region = boto, session, renew, account, region
        self._config = boto.config.Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=read_seconds,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            user_agent_extra="nearmetal.ec2",
        )
        self._clients: Dict[str, Any] = {}
        self._ahead = timedelta()  # by how much AWS's clock is ahead of this machine's

    @property
    def name(self) -> str:
        """For messages: `production/eu-west-1`, or the region alone."""
        return f"{self.account}/{self.region}" if self.account else self.region

    def call(self, service: str, operation: str, **request: Any) -> Dict[str, Any]:
        """One call, made again when the credentials have expired and new ones are to be had.

        boto's own errors pass, so that the caller can read their code.
        """
        try:
            answer = self._ask(service, operation, request)
        except self.boto.errors as error:
            if error_code(error) not in _EXPIRED:
                raise
            self._session = self._renew()
            self._clients.clear()
            answer = self._ask(service, operation, request)
        self._set_clock(answer)
        return answer

    def _ask(self, service: str, operation: str, request: Mapping[str, Any]) -> Dict[str, Any]:
        try:
            client = self._client(service)
        except self.boto.errors:
            raise
        except (*_BARE, ValueError) as error:
            raise self.boto.unusable(error) from error
        try:
            answer: Dict[str, Any] = getattr(client, operation)(**request)
        except self.boto.errors:
            raise
        except (OverflowError, ValueError) as error:  # a time or a number in the answer that is none
            raise self.boto.unreadable(str(error)) from error
        except _BARE as error:
            raise self.boto.unusable(error) from error
        return answer

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            region = _ONLY_IN.get(service, self.region)
            self._clients[service] = self._session.client(service, region_name=region, config=self._config)
        return self._clients[service]

    def now(self) -> datetime:
        """The time by AWS's clock, from its last answer."""
        return datetime.fromtimestamp(time.time(), timezone.utc) + self._ahead

    def _set_clock(self, answer: Mapping[str, Any]) -> None:
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        try:
            self._ahead = parsedate_to_datetime(headers["date"]) - datetime.fromtimestamp(time.time(), timezone.utc)
        except (KeyError, TypeError, ValueError):
            self._ahead = timedelta()

    def read(self, service: str, operation: str, **request: Any) -> Dict[str, Any]:
        """A call that changes nothing: asked once more when its answer broke off, which boto does not do."""
        try:
            return self.call(service, operation, **request)
        except self.boto.unreadable:
            return self.call(service, operation, **request)


def targets(options: Mapping[str, Any]) -> Tuple[List[Target], List[str]]:
    """The accounts and regions that the options name, in order, and why a role could not be assumed."""
    boto = Boto()

    def log_in() -> Any:
        return boto.boto3.Session(profile_name=options.get("profile"))

    try:
        session = log_in()
    except boto.errors as error:
        raise NearmetalError(boto.explain(error, "profile")) from error
    regions = options.get("regions") or [session.region_name]
    if not all(regions):
        raise NearmetalError("no region: set regions, AWS_DEFAULT_REGION, or region in the profile")
    home = Target(boto, session, log_in, "", regions[0], _READ_SECONDS)
    log_ins: Dict[str, Callable[[], Any]] = {"": log_in}
    sessions: Dict[str, Any] = {"": session}
    failed: List[str] = []
    if options.get("assume_roles"):
        log_ins = {str(account): _log_in(home, account, role) for account, role in options["assume_roles"].items()}
        sessions, failed = _assumed(boto, log_ins)
    read_seconds = min(_READ_SECONDS, options["timeout"])
    all_targets = [
        Target(boto, account_session, log_ins[account], account, region, read_seconds)
        for account, account_session in sessions.items()
        for region in regions
    ]
    return all_targets, failed


def _assumed(boto: Boto, log_ins: Mapping[str, Callable[[], Any]]) -> Tuple[Dict[str, Any], List[str]]:
    sessions, failed = {}, []
    for account, log_in in log_ins.items():
        try:
            sessions[account] = log_in()
        except boto.errors as error:
            failed.append(boto.explain(error, f"assume_roles: {account}"))
    return sessions, failed


def _log_in(home: Target, account: object, role: Any) -> Callable[[], Any]:
    """What makes a session with a role's credentials; they live for an hour, and a run can take longer."""
    request = {"RoleArn": _role_arn(account, role), "RoleSessionName": "nearmetal"}
    external_id: Optional[str] = role.get("external_id") if isinstance(role, dict) else None
    if external_id:
        request["ExternalId"] = external_id

    def log_in() -> Any:
        given = home.call("sts", "assume_role", **request)["Credentials"]
        return home.boto.boto3.Session(
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
        )

    return log_in


def _role_arn(account: object, role: object) -> str:
    arn = role.get("role_arn") if isinstance(role, dict) else role
    if not isinstance(arn, str) or not _ARN.fullmatch(arn):
        raise NearmetalError(
            f"assume_roles: {account}: {_one_line(arn)!r} isn't a role: expected arn:aws:iam::123456789012:role/NAME"
        )
    return arn
