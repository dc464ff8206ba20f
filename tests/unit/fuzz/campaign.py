# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The targets of hostile inputs. NEARMETAL_FUZZ says how many of them, NEARMETAL_FUZZ_SEED which."""

from __future__ import annotations

import io
import json
import os
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS, options_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import imds
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import (
    boot_line,
    cmdline,
    ebs_log,
    environment_file,
    ethtool,
    interrupts,
    json_text,
    kernel_arguments,
    kernel_counters,
    kernel_log,
    link_settings,
    numa_maps,
    tuned_profile,
)

from tests.unit.properties.test_any_bytes import PARSERS

INPUTS = int(os.environ.get("NEARMETAL_FUZZ", "10000"))
SEED = os.environ.get("NEARMETAL_FUZZ_SEED", "1")
CAPTURES = INPUTS // 100  # a plan takes as long as hundreds of texts
SLOW = 2.0  # seconds of CPU: such an input is shown, and fails nothing

RECORDED = Path(__file__).parents[1] / "benchmark/tools/read"
_NAMES = ("tx-checksum-ipv4", "rx-gro") * 40


def _json(text: str) -> Any:
    try:
        return json_text.parse(text)
    except ValueError:
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


MORE: Tuple[Callable[[str], Any], ...] = (
    _json,
    kernel_counters.cpu_times,
    numa_maps.policy,
    tuned_profile.parse,
    lambda text: tuned_profile.merged(tuned_profile.parse(text), tuned_profile.parse(f"[main]\ndrop={text}")),
    lambda text: boot_line.read(boot_line.KERNEL_CMDLINE, text),
    lambda text: boot_line.append(text, ("tsc=reliable",)),
    lambda text: kernel_arguments.without(cmdline.tokens(text), cmdline.tokens(text[:50])),
    lambda text: environment_file.extended(text, "word"),
    lambda text: environment_file.assignment(text, "A"),
    lambda text: list(kernel_log.messages(text, "a")),
    lambda text: interrupts.parse("           CPU0       CPU1\n" + text),
    lambda text: link_settings.matches(link_settings.lines(f"[Match]\nName={text}"), {"Name": text[:15]}),
    lambda text: ebs_log.parse(_bytes(text)),
    lambda text: ethtool.count(_bytes(text)),
    lambda text: ethtool.strings(_bytes(text)),
    lambda text: ethtool.statistics(_bytes(text)),
    lambda text: ethtool.driver(_bytes(text)),
    lambda text: ethtool.numbers(_bytes(text), ethtool.CHANNELS),
    lambda text: ethtool.features(_bytes(text), _NAMES),
    imds.word,
    lambda text: imds._parsed(_bytes("HTTP/1.1 200 OK\r\n" + text), "GET"),
    lambda text: imds._parsed(_bytes(text), "GET"),
)
ALL = PARSERS + MORE


def random_of(number: int) -> Random:
    """The source of one input."""
    return Random(f"{SEED}/{number}")


def parse(parser: Callable[[str], Any], text: str) -> None:
    """Parse; our own error has one line."""
    try:
        parser(text)
    except NearmetalError as error:
        message = str(error)
        assert "\n" not in message, message
        assert len(message) < 2000, message[:2000]


def printed(name: str) -> List[Tuple[Dict[str, Any], List[str]]]:
    """The options of each recorded run of a benchmark, and what its tools printed."""
    found = []
    for path in sorted((RECORDED / name).glob("*.json")):
        case = json.loads(path.read_text("utf-8"))
        # A text stands in the case itself, or in a file beside it.
        files = {output: RECORDED / name / output for output in case["outputs"] if output.endswith(".out")}
        texts = [files[output].read_text("utf-8") if output in files else output for output in case["outputs"]]
        found.append((options_of(name, case["options"]), texts))
    return found


def read(name: str, options: Mapping[str, Any], outputs: Sequence[str]) -> None:
    """Read what tools printed, and say what would be run next."""
    benchmark = BENCHMARKS[name]
    parse(lambda _text: benchmark.read(outputs, options), "")
    parse(lambda _text: benchmark.then(outputs[:1], options), "")


def plan(place: Path, capture: str) -> None:
    """Plan a capture: it is planned, or refused in one sentence."""
    place.write_bytes(capture.encode("utf-8", "surrogatepass"))
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = command.main(["plan", "--from", str(place)])
    printed, complained = out.getvalue(), err.getvalue()
    if complained:
        assert code == 1
        assert complained.startswith("nearmetal: "), complained
        assert complained.count("\n") == 1, complained
        assert len(complained) < 2000, complained[:2000]
        assert not printed
    else:
        assert printed.startswith("captured on "), printed
        assert all(len(line) <= 1500 and line.isprintable() for line in printed.split("\n"))


class Finds:
    """The failures of a test's inputs: `with finds.of(…)` keeps an error and goes on."""

    def __init__(self) -> None:
        self.texts: List[str] = []
        self._place = ""
        self._begun = 0.0

    def of(self, number: int, what: str) -> "Finds":
        """The input that comes next."""
        self._place = f"NEARMETAL_FUZZ_SEED={SEED}, input {number}: {what[:1000]}"
        return self

    def __enter__(self) -> None:
        self._begun = time.process_time()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if isinstance(error, Exception):
            lines = traceback.format_exception(kind, error, trace, limit=-3)
            self.texts.append(f"{self._place}\n{''.join(lines)[-2000:]}")
            return True
        taken = time.process_time() - self._begun
        if taken > SLOW:
            print(f"slow, {taken:.1f} s: {self._place}")
        return False
