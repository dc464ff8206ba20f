# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: udev rules, which give a disk its settings whenever it appears. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, List, Mapping, Tuple

from ..._facts.disk import EBS, INSTANCE_STORE, MODELS, OTHER, VIRTIO, XVD
from .choice import OF_QUEUE, DiskSettings
from .queue import timeout

_END = "nearmetal_block_storage_end"
# Only when a disk appears: `change` comes after each write by somebody, and would undo what was set since.
_HEAD = (
    f'ACTION!="add", GOTO="{_END}"',
    f'SUBSYSTEM!="block", GOTO="{_END}"',
    f'ENV{{DEVTYPE}}!="disk", GOTO="{_END}"',
    f'TEST!="device", GOTO="{_END}"',
)
# A name with a dot in front stays within udev.
_KIND = "ENV{.NEARMETAL_KIND}"
_MATCH: Mapping[str, Tuple[str, ...]] = {
    **{kind: (f'ATTRS{{model}}=="{model}", ',) for model, kind in MODELS.items()},
    XVD: ('DRIVERS=="vbd", ',),
    VIRTIO: ('DRIVERS=="virtio_blk", ',),
    OTHER: ("",),
}


def rules(disk_settings: DiskSettings) -> List[str]:
    """The rules for what is wanted of kinds of disks; none when nothing is wanted.

    Raises NearmetalError for a value that no disk takes.
    """
    settings = {kind: _settings(kind, wanted) for kind, wanted in disk_settings.kinds.items()}
    if not any(settings.values()):
        return []
    kinds = [f'{match}{_KIND}="{kind}"' for kind in (OTHER, XVD, VIRTIO, EBS, INSTANCE_STORE) for match in _MATCH[kind]]
    lines = [f'{_KIND}=="{kind}", {line}' for kind, settings_of in settings.items() for line in settings_of]
    return [*_HEAD, *kinds, *lines, f'LABEL="{_END}"']


def _settings(kind: str, wanted: Mapping[str, str]) -> List[str]:
    values: Dict[str, str] = {knob.name: wanted[knob.name] for knob in OF_QUEUE if knob.name in wanted}
    if "io_timeout" in values:
        goal = timeout(kind, values.pop("io_timeout"))
        if not goal.status:
            values = {"io_timeout": goal.value, **values}
    assignments = []
    for knob, value in values.items():
        names = (value, "noop") if (knob, value) == ("scheduler", "none") else (value,)
        for name in names:
            # udev would complain at each boot about a file that is missing.
            present = f'ATTR{{queue/scheduler}}=="*{name}*"' if len(names) > 1 else f'TEST=="queue/{knob}"'
            assignments.append(f'{present}, ATTR{{queue/{knob}}}="{name}"')
    return assignments
