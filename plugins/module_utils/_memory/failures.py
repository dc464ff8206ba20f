# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failed in the last run of each concern, kept for `nearmetal status`. PRIVATE to the collection.

A concern that fails is taken back, so nothing else on the host shows that it was wanted. No run plans from it.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Dict, Mapping, NamedTuple

from .._error import NearmetalError
from .._host import store
from .._host.host import WritableHost
from .._parse import json_text
from .._words import sentence

PATH = f"{store.RUN}/failed.json"  # in /run, because /var may be full, and a boot plans again


class Failure(NamedTuple):
    """The failure of one concern."""

    run: str  # "tune, workload base"
    at: str  # UTC
    error: str


def failure(run: str, error: str) -> Failure:
    """A failure at the present time."""
    return Failure(run, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), sentence(error))


def read(host: WritableHost) -> Dict[str, Failure]:
    """Concern → failure; empty when the file can't be read."""
    with suppress(NearmetalError, ValueError, KeyError, TypeError, AttributeError):
        content = json_text.parse((store.read_file(host, PATH) or b"{}").decode("utf-8"))
        return {
            str(name): Failure(str(raw["run"]), str(raw["at"]), sentence(str(raw["error"])))
            for name, raw in content.items()
        }
    return {}


def write(host: WritableHost, failures: Mapping[str, Failure]) -> None:
    """Store exactly these. An error of the disk is ignored, because the run reports the failures itself."""
    with suppress(NearmetalError):
        if failures:
            data = json.dumps({name: failure._asdict() for name, failure in failures.items()}, indent=1).encode()
            store.replace_file(host, PATH, data, mode=0o600, folder_mode=0o755)
        else:
            store.remove_file(host, PATH)
