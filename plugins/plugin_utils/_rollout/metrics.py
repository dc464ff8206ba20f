# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the figures of a fleet come from: a command per host, or a server. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from difflib import get_close_matches
from typing import IO, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ...module_utils._error import NearmetalError
from ...module_utils._mistakes import Mistakes
from ...module_utils._planning.options import Spec, validate
from ...module_utils._prove.statistics.metrics import LARGER, NAME, NAME_WORDS, SMALLER
from ...module_utils._words import plain, printable, shown

METRIC: Spec = {
    "name": {"type": "str", "required": True},
    "better": {"type": "str", "choices": [LARGER, SMALLER], "required": True},
    "margin": {"type": "float", "range": (0.1, 99)},
    "command": {"type": "str", "lines": True},
    "prometheus": {"type": "str", "lines": True},
    "cloudwatch": {"type": "dict"},
}
SOURCES = ("command", "prometheus", "cloudwatch")
_NAMED = re.compile(r"\{\{ *(host|address|instance_id) *\}\}|\{(host|address|instance_id)\}")
_BRACED = re.compile(r"(?<!\$)\{ *(\w+) *\}", re.ASCII)
_NEAR = 0.8  # difflib's ratio: `adress` and `address` have 0.92, `hostname` and `host` 0.67
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_AT_ONCE = 32  # commands
_SECONDS = 10  # for a command whose output is looked at
_MOST_OUTPUT = 64 * 1024  # bytes of a command

Values = Dict[str, Optional[float]]  # host → its value


class Place(NamedTuple):
    """A host as a source of metrics names it."""

    host: str
    address: str
    instance_id: str = ""


def validated(metrics: Sequence[Any], margin: float) -> List[Dict[str, Any]]:
    """The option `metrics`, checked. Raises NearmetalError, which names the mistakes of all entries."""
    mistakes, checked = Mistakes(), []
    for number, given in enumerate(metrics):
        entry, before = f"metrics[{number}]", len(mistakes.found)
        with mistakes:
            checked.append(_validated(entry, given, margin))
        own = [said.replace(f"{entry}.", "").replace(entry, "the entry") for said in mistakes.found[before:]]
        mistakes.found[before:] = [f"{called(number, given)}: {said}" for said in own]
    names = [metric["name"] for metric in checked]
    twice = {name: None for name in names if names.count(name) > 1}
    mistakes.found += [f"two entries of rollout.metrics have the same name, {name}" for name in twice]
    mistakes.require_none()
    return checked


def called(number: int, metric: Any) -> str:
    """An entry of the option `metrics` in a message: its place, counted as people do, and its name."""
    name = metric.get("name") if isinstance(metric, Mapping) else None
    return f"rollout.metrics, entry {number + 1}" + (f" ({plain(name)})" if name and isinstance(name, str) else "")


def _validated(entry: str, given: Any, margin: float) -> Dict[str, Any]:
    metric = {"margin": margin, **validate(entry, METRIC, given)}
    if not re.fullmatch(NAME, metric["name"], re.ASCII):
        raise NearmetalError(f"{entry}.name is {NAME_WORDS}, not {shown(metric['name'])}")
    sources = [metric[source] for source in SOURCES if source in metric]
    if len(sources) != 1:
        raise NearmetalError(f"{entry} needs exactly one of {', '.join(SOURCES)}: where its values come from")
    for word in _BRACED.findall(str(sources[0])):
        near = get_close_matches(word, Place._fields, 1, _NEAR)
        if near and word not in Place._fields:
            raise NearmetalError(f"{{{word}}} stands for nothing; is {{{near[0]}}} meant?")
    return metric


def filled(text: str, place: Place, quote: Callable[[str], str] = str) -> str:
    """The text with a host's name in place of {host}, and so of {address} and {instance_id}."""
    return _NAMED.sub(lambda match: quote(getattr(place, match[1] or match[2])), text)


def by_command(metric: Mapping[str, Any], places: Sequence[Place], seconds: float) -> Values:
    """The last word that a command prints on the controller, for each host; None where it fails or it's no number.

    A command that prints more than 64 KiB, or takes longer than these seconds, is ended.
    """

    def ask(place: Place) -> Optional[float]:
        line = filled(metric["command"], place, shlex.quote)
        try:
            ran = subprocess.Popen(
                ["/bin/sh", "-c", line],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return None
        with ran:
            end = time.monotonic() + seconds
            output = _printed(ran.stdout, end) if ran.stdout else b""
            with suppress(subprocess.TimeoutExpired):
                if output:  # else its number is still that of its group, also if it has ended
                    ran.wait(max(0.0, end - time.monotonic()))
            if ran.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(ran.pid, signal.SIGKILL)  # with what the shell started
        words = output.decode("utf-8", "replace").split()
        return float(words[-1]) if not ran.returncode and words and _NUMBER.fullmatch(words[-1]) else None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip([place.host for place in places], pool.map(ask, places)))


def say_silent(metric: Mapping[str, Any], places: Sequence[Place]) -> str:
    """That no metric has a value of these hosts, and why the first one hasn't: its command is run once more."""
    sentence = f"no metric has a value of {' or '.join(place.host for place in places)}"
    if "command" not in metric:
        return f"{sentence}: is their source up?"
    line = ["/bin/sh", "-c", filled(metric["command"], places[0], shlex.quote)]
    try:
        ran = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"{sentence}: its command doesn't end within {_SECONDS} s"
    said = (ran.stderr or ran.stdout).decode("utf-8", "replace").strip().splitlines()[-1:] or ["nothing"]
    how = f"ended with code {ran.returncode}" if ran.returncode else "printed no number"
    return f"{sentence}: its command {how}, and said {shown(printable(said[0])[:200])}"


def _printed(stream: IO[bytes], end: float) -> bytes:
    """What a command printed; nothing if that was more than it may be, or isn't over by then, as where it left a
    program behind that prints to it too."""
    output, poll = b"", select.poll()
    poll.register(stream, select.POLLIN)
    while len(output) <= _MOST_OUTPUT and poll.poll(1000 * max(0.0, end - time.monotonic())):
        data = os.read(stream.fileno(), _MOST_OUTPUT)
        if not data:
            return output
        output += data
    return b""
