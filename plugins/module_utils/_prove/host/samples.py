# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's counters around a load, with the timers of systemd, which only systemd itself knows. PRIVATE."""

from __future__ import annotations

from typing import Collection, Dict

from ..._error import NearmetalError
from ..._host.host import WritableHost
from ..._parse import timers
from . import load_sample

_NEARMETAL_TIMER = "nearmetal"  # how its timers' names begin: the unit sets nothing in a run, and prove's own ends it
_PATIENCE = 10.0  # seconds for systemd's answer


def before_load(host: WritableHost, programs: Collection[str]) -> load_sample.Sample:
    """The counters right before the load: systemd is asked first, so that its work isn't counted."""
    of_systemd = _timers(host)
    return _with_timers(load_sample.observe(host, programs), of_systemd)


def after_load(host: WritableHost, programs: Collection[str]) -> load_sample.Sample:
    """The counters right after the load: systemd is asked last, so that its work isn't counted."""
    sample = load_sample.observe(host, programs)
    return _with_timers(sample, _timers(host))


def _with_timers(sample: load_sample.Sample, of_systemd: Dict[str, str]) -> load_sample.Sample:
    return sample._replace(jobs={**sample.jobs, **of_systemd})


def _timers(host: WritableHost) -> Dict[str, str]:
    """What each timer last started; nothing without systemd, or where it doesn't answer."""
    if not host.booted():
        return {}
    properties = [f"--property={name}" for name in timers.PROPERTIES]
    try:
        text = host.command(("systemctl", "show", *properties, "*.timer"), _PATIENCE)
    except NearmetalError:
        return {}
    return {name: last for name, last in timers.timers(text).items() if not name.startswith(_NEARMETAL_TIMER)}
