# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts under the same load, compared as prove compares two states of one host. PRIVATE to the collection.

The first host stands for the untuned state, and the second for the tuned one; nothing is switched or changed.
"""

from __future__ import annotations

import re
import time
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

from ....module_utils._error import NearmetalError
from ....module_utils._prove.statistics.guards import GUARDS, Firing
from ....module_utils._prove.statistics.metrics import LARGER
from ....module_utils._prove.statistics.order import TUNED, UNTUNED
from ....module_utils._prove.statistics.rules import BETTER, SAME, WORSE
from ....module_utils._prove.statistics.verdict import Verdict
from .. import loop
from ..client import Client

_SAME_BOOT, _ANOTHER_BOOT = "0", "1"
_PAUSE = 10.0  # seconds after which a host that wasn't quiet is asked again


class TwoHosts(loop.HostControl):
    """The control of a run in which another state is another host."""

    def __init__(
        self, hosts: Sequence[Client], arguments: Mapping[str, Any], wait: float, show: Callable[[str], None]
    ) -> None:
        self._hosts = dict(zip((UNTUNED, TUNED), hosts))
        self._arguments, self._wait_left, self._show = arguments, wait, show
        self._boots: Dict[str, Any] = {}

    def measure(self, state: str, without: str, stays: bool = False) -> loop.Answer:
        host, began = self._hosts[state], time.time()
        answer = host.load(self._arguments)
        load, before, after = (answer.get(name) for name in ("load", "before", "after"))
        if not isinstance(load, dict) or not isinstance(before, dict) or not isinstance(after, dict):
            raise NearmetalError(loop.UNKNOWN_FORM)
        try:
            seconds = float(after["host_seconds"]) - float(before["host_seconds"])
        except (KeyError, TypeError, ValueError):
            raise NearmetalError(loop.UNKNOWN_FORM) from None
        same = self._boots.setdefault(state, before.get("boot_id")) == before.get("boot_id") == after.get("boot_id")
        self._boots[state] = after.get("boot_id")
        boot = _SAME_BOOT if same else _ANOTHER_BOOT
        return loop.Answer(
            load, _alike(host.name, before, boot, began), _alike(host.name, after, boot, began + seconds)
        )

    def reboot_into(self, state: str) -> float:
        raise NearmetalError("two hosts are compared as they are")

    def wait_for_quiet(self, disturbances: Sequence[Firing]) -> None:
        pause = min(self._wait_left, _PAUSE)
        self._wait_left -= pause
        if pause > 0:
            self._show(f"waits {pause:.0f} s for quiet: {GUARDS[disturbances[0].guard]} ({disturbances[0].detail})")
            time.sleep(pause)

    def profile(self) -> None:
        """Profile neither host: that of another host differs in every function."""

    def keep(self) -> bool:
        return False

    def restore(self) -> None:
        return None


def _alike(host: str, sample: Mapping[str, Any], boot: str, at: float) -> Dict[str, Any]:
    """A sample as if both hosts were one: their clocks and boots differ, and what counts is a change in the run."""
    jobs = {f"{host} {job}": mark for job, mark in dict(sample.get("jobs") or {}).items()}
    return {**sample, "boot_id": boot, "host_seconds": at, "jobs": jobs}


def with_names(text: str, first: str, second: str) -> str:
    """A text about states as one about hosts."""
    names = {UNTUNED: first, TUNED: second}
    return re.sub(rf"\b({UNTUNED}|{TUNED})\b", lambda found: names[found[1]], text)


def sentence(first: str, second: str, result: Verdict, margin: float) -> str:
    """`guest 4.1 % slower than metal (2.0 to 6.3): requests, 14 pairs`"""
    figure = result.metrics[0] if result.metrics else None
    if figure is None or figure.change is None or not result.by_primary or result.verdict not in (BETTER, WORSE, SAME):
        return f"{second} against {first}: {result.verdict}: {with_names(result.reasons[0], first, second)}"
    of = f"{figure.name}, {result.pairs} pairs"
    if result.verdict == SAME:
        return f"{second} as fast as {first} within {margin:g} % ({_bound(figure.low)} to {_bound(figure.high)}): {of}"
    faster = (figure.change > 0) == (figure.better == LARGER)
    # Of a change that is negative, the larger bound is the smaller effect.
    small, large = (figure.low, figure.high) if figure.change > 0 else (figure.high, figure.low)
    word = "faster" if faster else "slower"
    bounds = f"({_bound(small, True)} to {_bound(large, True)})"
    return f"{second} {abs(figure.change):.1f} % {word} than {first} {bounds}: {of}"


def _bound(percent: Optional[float], without_sign: bool = False) -> str:
    return "any" if percent is None else f"{abs(percent) if without_sign else percent:.1f}"
