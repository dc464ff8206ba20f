# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of the kernel log, and those about clocks. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections import deque
from typing import Iterator, List, Tuple

# A /dev/kmsg record begins "6,339,5140900,-;", a line of dmesg "[    5.140900] " or "<6>[    5.140900] ". Ubuntu
# has journalctl write /var/log/dmesg, with the word "kernel: " after the time.
_PREFIX = re.compile(
    r"[0-9]{1,10},[0-9]{1,20},[0-9]{1,20},[^;]{0,200};"
    r"|(?:<[0-9]{1,3}>)?\[\s{0,12}[0-9]{1,12}\.[0-9]{1,9}\](?:\[[^\]]{0,64}\])?\s*(?:kernel: )?",
    re.ASCII,
)
_SEQUENCE = re.compile(r"[0-9]{1,10},([0-9]{1,18}),", re.ASCII)
# "tsc: Marking TSC unstable due to clocksource watchdog", "Marking clocksource 'tsc' as unstable",
# and before Linux 4.2 "Clocksource tsc unstable (delta = 6824818792 ns)".
_UNSTABLE = re.compile(r"marking tsc unstable|marking clocksource '?tsc'? as unstable|clocksource tsc unstable", re.I)
# "clocksource: Switched to clocksource tsc"; before Linux 3.11 "Switching to clocksource tsc".
_SWITCHED = re.compile(r"Switch(?:ed|ing) to clocksource ([A-Za-z0-9_.:+-]{1,31})", re.ASCII)

# The longest record of the kernel, on either side of the word that is looked for.
_LONGEST = 1024
MAX_MARKS = 8
_MAX_SWITCHES = 16
MAX_MARK_LENGTH = 160


def messages(text: str, word: str) -> Iterator[str]:
    """The messages that contain the word, without their prefixes, from /dev/kmsg records or dmesg's output.

    No other line is parsed, because the log may be of any size and content.
    """
    place = text.find(word)
    while place >= 0:
        earliest = max(0, place - _LONGEST)
        begin = max(text.rfind("\n", earliest, place) + 1, earliest)
        newline = text.find("\n", place)
        end = newline if newline >= 0 else len(text)
        line = text[begin : min(end, place + _LONGEST)]
        prefix = _PREFIX.match(line)
        yield line[prefix.end() :] if prefix is not None else line
        place = text.find(word, end)


def tsc_unstable_marks(text: str) -> Tuple[str, ...]:
    """The messages that call the TSC unstable, without duplicates, in order; at most MAX_MARKS. Raises nothing."""
    marks: List[str] = []
    for message in messages(text, "unstable"):
        if len(marks) == MAX_MARKS:
            break
        if _UNSTABLE.search(message):
            mark = "".join(c for c in message if c.isprintable()).strip()[:MAX_MARK_LENGTH]
            if mark not in marks:
                marks.append(mark)
    return tuple(marks)


def clocksource_switches(text: str) -> Tuple[str, ...]:
    """The names of the clock sources the kernel switched to, in order; the last 16. Raises nothing."""
    return tuple(deque((match[1] for match in _SWITCHED.finditer(text)), maxlen=_MAX_SWITCHES))


def first_sequence(text: str) -> int:
    """The sequence number of the first /dev/kmsg record; above 0 the ring has lost the boot's beginning.

    It is 0, too, for a text that isn't a record of /dev/kmsg.
    """
    match = _SEQUENCE.match(text)
    return int(match.group(1)) if match else 0
