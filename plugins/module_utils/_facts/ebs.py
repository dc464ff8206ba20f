# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long EBS held a host's I/O back, by the counters of its NVMe devices. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from .._parse import ebs_log
from .host import Host

MODEL = "Amazon Elastic Block Store"
_CONTROLLERS = "/sys/class/nvme"
_CONTROLLER = re.compile(r"nvme\d{1,5}", re.ASCII)


class EbsFacts(NamedTuple):
    """Each EBS volume that gives its counters (root only; Nitro), as device name and counters."""

    exceeded: Tuple[Tuple[str, ebs_log.Exceeded], ...]

    def as_dict(self) -> Dict[str, Any]:
        """The facts as plain JSON data."""
        return {"exceeded": [{"device": device, **counters._asdict()} for device, counters in self.exceeded]}


def observe(host: Host) -> EbsFacts:
    """Read /sys/class/nvme, and ask each EBS device for its log page."""
    return EbsFacts(tuple(_exceeded(host)))


def _exceeded(host: Host) -> Iterator[Tuple[str, ebs_log.Exceeded]]:
    names = [name for name in host.names(_CONTROLLERS) if _CONTROLLER.fullmatch(name)]
    for name in sorted(names, key=lambda name: int(name[4:])):
        # The model says whether it is EBS; other devices are asked nothing.
        if host.line(f"{_CONTROLLERS}/{name}/model") != MODEL:
            continue
        page = host.nvme_log(name, ebs_log.PAGE, ebs_log.SIZE)
        counters = ebs_log.parse(page) if page else None
        if counters:
            yield f"{name}n1", counters
