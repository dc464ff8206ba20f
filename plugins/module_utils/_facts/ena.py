# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How ENA sends packets: from the host's memory, or pushed to the device (LLQ). PRIVATE to the collection.

The driver shows it only in the kernel log, and by a transmit ring of half the size.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, Optional

from .._parse import kernel_log
from . import ethtool, log
from .host import Host
from .nic import Nic

# "ena 0000:00:05.0: LLQ is not supported Fallback to host mode policy."
_FALLBACK = re.compile(r"ena ([0-9a-f:.]{7,16})[^\n]{0,40}: LLQ is not supported", re.ASCII)
_LARGE = 512


def llq(host: Host, nics: Iterable[Nic]) -> Dict[str, Optional[str]]:
    """Interface → `host` (no LLQ), `llq`, `large` (headers of 224 bytes, half a ring); None: the log doesn't say."""
    nics_of_ena = [nic for nic in nics if nic.driver == "ena"]
    boot_log = log.since_boot(host) if nics_of_ena else None
    fallen = set()
    for message in kernel_log.messages(boot_log.text, "LLQ is not supported") if boot_log is not None else ():
        fallen.update(_FALLBACK.findall(message))
    answer: Dict[str, Optional[str]] = {}
    for nic in nics_of_ena:
        rings = ethtool.rings(host, nic.name)
        if nic.place in fallen:
            answer[nic.name] = "host"
        elif rings is not None and rings["tx_max"] == _LARGE:
            answer[nic.name] = "large"
        else:
            answer[nic.name] = "llq" if boot_log is not None and boot_log.text and not boot_log.cut else None
    return answer
