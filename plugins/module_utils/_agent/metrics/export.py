# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit's export for node_exporter's textfile collector. PRIVATE to the collection."""

from __future__ import annotations

import os
import time
from typing import Dict, Mapping, Optional

from ..._engine.session import PATIENCE
from ..._facts import ethtool
from ..._host import store
from ..._host.host import WritableHost
from ..._memory import metrics_file
from ..._memory.stored import StoredWanted
from ..._planning.unit import METRICS
from .. import report
from .text import render


def export(host: WritableHost) -> None:
    """Write what the host knows of itself. Raises NearmetalError when the file can't be written."""
    text = render(report.collect(host), _allowances(host), time.time(), _planned(host))
    # A restore that ran meanwhile has removed the file, and what is stored says so.
    with store.lock(host, PATIENCE, store.UNIT):
        directory = metrics_file.directory_of(StoredWanted(host).get(METRICS))
        if directory:
            metrics_file.write(host, directory, text)


def _allowances(host: WritableHost) -> Dict[str, Mapping[str, int]]:
    allowances = {name: ethtool.allowances(host, name) for name in host.names("/sys/class/net")}
    return {name: counters for name, counters in allowances.items() if counters}


def _planned(host: WritableHost) -> Optional[float]:
    try:
        return os.stat(host.real(store.FINGERPRINT)).st_mtime
    except OSError:
        return None
