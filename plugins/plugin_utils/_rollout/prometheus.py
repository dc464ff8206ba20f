# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a fleet from Prometheus, by range queries of its HTTP API. PRIVATE to the collection."""

from __future__ import annotations

import base64
import http.client
import json
import math
import re
import urllib.error
import urllib.parse
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible.module_utils.urls import ConnectionError as NotConnected
from ansible.module_utils.urls import open_url

from ...module_utils._error import NearmetalError
from ...module_utils._planning.options import Spec
from ...module_utils._words import sentence
from .metrics import Place, Values

PROMETHEUS: Spec = {
    "url": {"type": "str", "required": True},
    "label": {"type": "str", "default": "instance"},
    "user": {"type": "str"},
    "password_file": {"type": "str"},
    "token_file": {"type": "str"},
    "ca_file": {"type": "str"},
    "timeout": {"type": "float", "default": 30.0},
}
_AT_ONCE = 100  # hosts that one query names, by a regular expression
_MOST_BYTES = 64 * 1024 * 1024
_NAMES = re.compile(r"\{\{ *(?:host|address) *\}\}|\{(?:host|address)\}")


def ask(
    server: Mapping[str, Any], query: str, places: Sequence[Place], start: float, end: float, step: float
) -> Values:
    """The mean value of each host's series between two times. Raises NearmetalError where the server can't be asked.

    In the query {host} or {address} stands for a regular expression of several hosts; the label says whose a series is.
    """
    found: Dict[str, List[float]] = {}
    for first in range(0, len(places), _AT_ONCE):
        names = {name: place.host for place in places[first : first + _AT_ONCE] for name in (place.host, place.address)}
        # In a string of PromQL a backslash is written twice, and a quotation mark after one.
        pattern = "(?:" + "|".join(re.escape(name).replace("\\", "\\\\").replace('"', '\\"') for name in names) + ")"
        text = pattern.join(_NAMES.split(query))
        for label, values in _series(server, {"query": text, "start": start, "end": end, "step": max(1.0, step)}):
            host = names.get(label) or names.get(label.rpartition(":")[0])
            if host is not None:
                found.setdefault(host, []).extend(filter(math.isfinite, values))
    return {host: sum(values) / len(values) if values else None for host, values in found.items()}


def _series(server: Mapping[str, Any], wanted: Mapping[str, Any]) -> List[Tuple[str, List[float]]]:
    """Of each series that the server answers its label and its values."""
    url = f"{server['url'].rstrip('/')}/api/v1/query_range"
    headers = {}
    try:
        if "token_file" in server:
            headers["Authorization"] = f"Bearer {_secret(server['token_file'])}"
        elif "user" in server:
            pair = f"{server['user']}:{_secret(server.get('password_file', '/dev/null'))}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        answer = open_url(
            url,
            data=urllib.parse.urlencode(wanted).encode(),
            headers=headers,
            unredirected_headers=list(headers),  # whoever it is sent on to learns no secret
            timeout=server["timeout"],
            ca_path=server.get("ca_file"),
        )
        with answer:
            data = json.loads(answer.read(_MOST_BYTES))
        return [
            (str(series["metric"].get(server["label"], "")), [float(value) for _time, value in series["values"]])
            for series in data["data"]["result"]
        ]
    except urllib.error.HTTPError as error:
        raise NearmetalError(sentence(f"{url}: {error.code} {error.read(400).decode('utf-8', 'replace')}")) from None
    except (AttributeError, KeyError, TypeError):
        raise NearmetalError(f"{url}: its answer isn't one of Prometheus") from None
    except (OSError, ValueError, http.client.HTTPException, NotConnected) as error:
        raise NearmetalError(sentence(f"{url}: {getattr(error, 'reason', error)}")) from None


def _secret(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        secret = stream.read().strip()
    if not secret.isprintable():  # http.client would quote it in its error
        raise ValueError(f"{path} has more than one line")
    return secret
