# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocols of AWS's services: requests to Python, Python to answers, both by botocore's service model.

An answer with a member that the model does not know, or a value of another type, is an error of the
test, so the fake endpoint can't invent an API.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, Dict, List, Tuple
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import botocore.session

_SESSION = botocore.session.get_session()
MODELS = {name: _SESSION.get_service_model(name) for name in ("ec2", "sts", "cloudwatch", "pricing")}
JSON = ("cloudwatch", "pricing")
_TYPES = {"string": str, "integer": int, "long": int, "double": (int, float), "float": (int, float), "boolean": bool}


def form_request(body: bytes) -> Tuple[str, str, Dict[str, Any]]:
    """Service, operation and input of a request in the query protocols of EC2 and STS."""
    flat = dict(parse_qsl(body.decode(), keep_blank_values=True))
    operation, version = flat.pop("Action"), flat.pop("Version")
    service = next(name for name, model in MODELS.items() if model.api_version == version)
    request = _from_form(MODELS[service].operation_model(operation).input_shape, flat, "")
    assert not flat, f"{operation} has no {', '.join(flat)}"
    return service, operation, request or {}


def _from_form(shape: Any, flat: Dict[str, str], path: str) -> Any:
    if shape.type_name == "structure":
        found = {}
        for name, member in shape.members.items():
            given = member.serialization.get("queryName") or member.serialization.get("name", name)
            value = _from_form(member, flat, f"{path}.{given[0].upper()}{given[1:]}".lstrip("."))
            if value is not None:
                found[name] = value
        return found or None
    if shape.type_name == "list":
        items: List[Any] = []
        while any(key == f"{path}.{len(items) + 1}" or key.startswith(f"{path}.{len(items) + 1}.") for key in flat):
            items.append(_from_form(shape.member, flat, f"{path}.{len(items) + 1}"))
        return items or None
    text = flat.pop(path, None)
    if text is None or shape.type_name == "string":
        return text
    return {"true": True, "false": False}[text] if shape.type_name == "boolean" else int(text)


def xml_answer(service: str, operation: str, answer: Dict[str, Any]) -> bytes:
    """An answer in the XML of EC2 or STS."""
    model = MODELS[service]
    content = _xml(model.operation_model(operation).output_shape, answer, operation) if answer else ""
    namespace = model.metadata["xmlNamespace"]
    if service == "ec2":
        content = f"<requestId>0</requestId>{content}"
    else:
        content = f"<{operation}Result>{content}</{operation}Result>"
    return f'<{operation}Response xmlns="{namespace}">{content}</{operation}Response>'.encode()


def _xml(shape: Any, value: Any, where: str) -> str:
    if shape.type_name == "structure":
        assert isinstance(value, dict), f"{where}: not a structure"
        unknown = value.keys() - shape.members.keys()
        assert not unknown, f"{where}: the service model has no {', '.join(sorted(unknown))}"
        parts = []
        for name, inner in value.items():
            tag = shape.members[name].serialization.get("name", name)
            parts.append(f"<{tag}>{_xml(shape.members[name], inner, f'{where}.{name}')}</{tag}>")
        return "".join(parts)
    if shape.type_name == "list":
        tag = shape.member.serialization.get("name", "member")
        return "".join(f"<{tag}>{_xml(shape.member, inner, where)}</{tag}>" for inner in value)
    if shape.type_name == "timestamp":
        return str(value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z"))
    _scalar(shape, value, where)
    return escape(str(value).lower() if isinstance(value, bool) else str(value))


def _scalar(shape: Any, value: Any, where: str) -> None:
    assert isinstance(value, _TYPES[shape.type_name]), f"{where}: {value!r} is no {shape.type_name}"
    # A type that is newer than this botocore is no mistake: boto3 passes it on as text.
    allowed = getattr(shape, "enum", None) if shape.name != "InstanceType" else None
    assert not allowed or value in allowed, f"{where}: {value!r} is none of {allowed}"


def xml_error(service: str, code: str, message: str) -> bytes:
    """An error in the XML of EC2 or STS."""
    error = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    if service == "ec2":
        return f"<Response><Errors>{error}</Errors><RequestID>0</RequestID></Response>".encode()
    return f"<ErrorResponse>{error}<RequestId>0</RequestId></ErrorResponse>".encode()


def json_request(target: str, body: bytes) -> Tuple[str, str, Dict[str, Any]]:
    """Service, operation and input of a request in the JSON protocol, of CloudWatch and the price list."""
    prefix, operation = target.rsplit(".", 1)
    service = next(name for name in JSON if MODELS[name].metadata["targetPrefix"] == prefix)
    request = _from_json(MODELS[service].operation_model(operation).input_shape, json.loads(body), operation)
    return service, operation, request


def _from_json(shape: Any, value: Any, where: str) -> Any:
    if shape.type_name == "structure":
        unknown = value.keys() - shape.members.keys()
        assert not unknown, f"{where}: the service model has no {', '.join(sorted(unknown))}"
        return {name: _from_json(shape.members[name], value[name], f"{where}.{name}") for name in value}
    if shape.type_name == "list":
        return [_from_json(shape.member, element, where) for element in value]
    return datetime.fromtimestamp(value, timezone.utc) if shape.type_name == "timestamp" else value


def json_answer(service: str, operation: str, answer: Dict[str, Any]) -> bytes:
    """An answer in the JSON protocol."""
    shape = MODELS[service].operation_model(operation).output_shape
    return json.dumps(_json(shape, answer, operation) if shape else {}).encode()


def _json(shape: Any, value: Any, where: str) -> Any:
    if shape.type_name == "structure":
        unknown = value.keys() - shape.members.keys()
        assert not unknown, f"{where}: the service model has no {', '.join(sorted(unknown))}"
        return {name: _json(shape.members[name], value[name], f"{where}.{name}") for name in value}
    if shape.type_name == "list":
        return [_json(shape.member, element, where) for element in value]
    if shape.type_name == "timestamp":
        return value.timestamp()
    _scalar(shape, value, where)
    return value


def json_error(code: str, message: str) -> bytes:
    """An error in the JSON protocol."""
    return json.dumps({"__type": code, "message": message}).encode()
