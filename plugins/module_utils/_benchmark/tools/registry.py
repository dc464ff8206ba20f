# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All ready benchmarks, and how a load names one of them. Pure. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Tuple

from ..._error import NearmetalError
from ..._parse import json_text
from ..._planning.options import validate
from ..._words import shown
from .benchmark import Benchmark
from .cache import CACHE
from .clock import CLOCK
from .disk import DISK
from .ebizzy import EBIZZY
from .key_value import KEY_VALUE
from .latency import LATENCY
from .memory import MEMORY
from .network import NETWORK
from .unixbench import UNIXBENCH
from .web import WEB

BENCHMARKS: Mapping[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (CLOCK, DISK, KEY_VALUE, MEMORY, LATENCY, NETWORK, WEB, CACHE, UNIXBENCH, EBIZZY)
}
SHORTEST, LONGEST = 0.1, 3600.0  # seconds of one run
# How a record of prove names a benchmark in place of a command for the shell.
_MARK = "nearmetal benchmark "


def options_of(name: str, given: Any) -> Dict[str, Any]:
    """The options of a benchmark, checked, with their defaults. Raises NearmetalError for a wrong one."""
    benchmark = BENCHMARKS[name]
    options = validate(f"benchmark.options of {name}", benchmark.options, given)
    if not SHORTEST <= options["seconds"] <= LONGEST:
        raise NearmetalError(
            f"benchmark.options of {name}: seconds must be a number from {SHORTEST:g} to {LONGEST:g}, not"
            f" {shown(options['seconds'])}"
        )
    benchmark.check(options)
    return options


def load_of(name: str, given: Mapping[str, Any], seconds: float) -> str:
    """The load that names a benchmark with its options in a record. Raises NearmetalError for a wrong option."""
    options = options_of(name, {"seconds": seconds, **given})
    return f"{_MARK}{name} {json.dumps(options, sort_keys=True)}"


def of_client(load: str, number: int) -> str:
    """The load of one of several clients."""
    if not is_benchmark(load):
        return load
    name, options = named(load)
    return f"{_MARK}{name} {json.dumps(options_of_client(name, options, number), sort_keys=True)}"


def options_of_client(name: str, options: Mapping[str, Any], number: int) -> Dict[str, Any]:
    """Its options: its number, and where a server takes one client, each of several finds its own at the next port."""
    port = {"port": options["port"] + number} if BENCHMARKS[name].port_each else {}
    return {**options, **port, "number": number}


def is_benchmark(load: str) -> bool:
    """Whether a load is a benchmark and no command."""
    return load.startswith(_MARK)


def named(load: str) -> Tuple[str, Dict[str, Any]]:
    """The benchmark that a load names, with its options. Raises NearmetalError when it names none."""
    name, _space, text = load[len(_MARK) :].partition(" ")
    if name not in BENCHMARKS:
        raise NearmetalError(f"{shown(name)} isn't a benchmark: choose one of {', '.join(BENCHMARKS)}")
    try:
        return name, options_of(name, json_text.parse(text))
    except ValueError as error:
        raise NearmetalError(f"the options of the benchmark {name} aren't JSON: {error}") from None
