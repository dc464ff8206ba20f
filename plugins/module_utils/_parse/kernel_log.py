# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel log says of clocks. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Iterator, Tuple

# A /dev/kmsg record begins "6,339,5140900,-;", a line of dmesg "[    5.140900] " or "<6>[    5.140900] ".
_PREFIX = re.compile(r"(?:[0-9]+,[0-9]+,[0-9]+,[^;]*;|(?:<[0-9]+>)?\[\s*[0-9]+\.[0-9]+\](?:\[[^\]]*\])?\s*)", re.ASCII)
_SEQUENCE = re.compile(r"[0-9]+,([0-9]{1,18}),", re.ASCII)
# "tsc: Marking TSC unstable due to clocksource watchdog", "Marking clocksource 'tsc' as unstable",
# and before Linux 4.2 "Clocksource tsc unstable (delta = 6824818792 ns)".
_UNSTABLE = re.compile(r"marking tsc unstable|marking clocksource '?tsc'? as unstable|clocksource tsc unstable", re.I)
# "clocksource: Switched to clocksource tsc"; before Linux 3.11 "Switching to clocksource tsc".
_SWITCHED = re.compile(r"Switch(?:ed|ing) to clocksource ([A-Za-z0-9_.:+-]{1,31})", re.ASCII)

MAX_MARKS = 8
MAX_MARK_LENGTH = 160


def messages(text: str) -> Iterator[str]:
    """The messages without their prefixes; works on /dev/kmsg records and on the output of dmesg."""
    for line in text.splitlines():
        yield _PREFIX.sub("", line, count=1)


def tsc_unstable_marks(text: str) -> Tuple[str, ...]:
    """The messages that call the TSC unstable, each once, in order; at most MAX_MARKS. Raises nothing."""
    marks = []
    for message in messages(text):
        if _UNSTABLE.search(message):
            mark = "".join(c for c in message if c.isprintable()).strip()[:MAX_MARK_LENGTH]
            if mark not in marks:
                marks.append(mark)
    return tuple(marks[:MAX_MARKS])


def clocksource_switches(text: str) -> Tuple[str, ...]:
    """The names of the clock sources the kernel switched to, in order; the last 16. Raises nothing."""
    return tuple(_SWITCHED.findall(text))[-16:]


def first_sequence(text: str) -> int:
    """The sequence number of the first /dev/kmsg record; above 0 the ring has lost the boot's beginning.

    0 too when the text is no record of /dev/kmsg.
    """
    match = _SEQUENCE.match(text)
    return int(match.group(1)) if match else 0
