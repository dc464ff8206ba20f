# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `profile`: where the time of all CPUs goes. PRIVATE to the collection."""

from __future__ import annotations

import base64
import json
import time
import zlib
from contextlib import ExitStack
from typing import Any, Callable, Dict, List, Mapping

from .._benchmark.host.load import is_awaited
from .._error import NearmetalError
from .._facts import platform
from .._host.host import WritableHost
from .._planning.options import Spec
from .._tasks.task import Task
from .._words import sentence
from .advice import advice
from .counters import Counters
from .folding import Tree
from .notes import notes
from .recording import record, require_perf, require_room

FREQUENCY = 99  # per second; with 100, what happens as often would always or never be seen
OPTIONS: Spec = {
    "seconds": {"type": "float", "default": 30.0, "range": [1, 600]},
    "frequency": {"type": "int", "default": FREQUENCY, "range": [1, 999]},
    "waits": {"type": "bool", "default": False},
    "kernel_names": {"type": "bool", "default": False},
}
TOP = 20
_AT_ONCE = 4096


def forecast(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """What the module would do: its result in check mode. Raises NearmetalError."""
    _require(host, options)
    try:
        require_perf(host)
    except NearmetalError as error:
        return {"changed": False, "msg": sentence(f"profile: would only count for {options['seconds']:g} s: {error}")}
    return {"changed": False, "msg": f"profile: would record all CPUs for {options['seconds']:g} s"}


def do(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The result of the module; where perf can't record, all the rest of it. Raises NearmetalError."""
    _require(host, options)
    counters = Counters(host, options["seconds"])
    try:
        require_perf(host)
        with ExitStack() as lent:
            hidden = _show_kernel_names(host, options["seconds"], lent) if options["kernel_names"] else []
            result = profile(host, counters, options["frequency"], is_awaited, options["waits"])
            return {**result, "notes": [*result["notes"], *hidden]}
    except NearmetalError as error:
        while is_awaited():
            if counters.look():
                return _counted(host, counters, str(error))
            time.sleep(0.1)
        raise


def _require(host: WritableHost, options: Mapping[str, Any]) -> None:
    if not host.is_root():
        raise NearmetalError("a profile of all programs needs root on the host: set become: true, become_user: root")
    require_room(options["seconds"], options["frequency"])


def _show_kernel_names(host: WritableHost, seconds: float, lent: ExitStack) -> List[str]:
    from . import kernel_names  # the engine, which most profiles need not load

    try:
        lent.enter_context(kernel_names.shown(host, seconds))
    except NearmetalError as error:
        return [sentence(str(error))]
    return []


def _counted(host: WritableHost, counters: Counters, why: str) -> Dict[str, Any]:
    """The result without samples."""
    known = platform.observe(host)
    inside = ["this is a container, in which perf needs the capability PERFMON or SYS_ADMIN"]
    return {
        "changed": False,
        "msg": sentence(f"profile: no samples, only what the kernel counts: {why}"),
        "counters": counters.end(),
        "advice": advice(Tree([], [], [], []), counters.end()),
        "notes": [sentence(why), *(inside if known.host_class == "container" else [])],
        "kernel": known.kernel,
    }


def profile(
    host: WritableHost,
    counters: Counters,
    frequency: int,
    goes_on: Callable[[], bool],
    waits: bool = False,
    begin: Callable[[], None] = lambda: None,
) -> Dict[str, Any]:
    """Record while the counters count, after `begin`; `stacks` is the tree, packed. Raises NearmetalError."""
    seconds = counters.seconds

    def looks() -> bool:
        counters.look()
        return goes_on()

    recording = record(seconds, frequency, begin, looks, waits)
    folder, tree = recording.folder, recording.folder.tree()
    own = sorted(tree.shares(own=True).items(), key=lambda entry: (-entry[1], entry[0]))[:TOP]
    shares = tree.shares()
    busy = folder.samples / ((folder.samples + folder.idle) or 1)
    known = platform.observe(host)
    hides_names = host.number("/proc/sys/kernel/kptr_restrict") == 2
    said = notes(folder, recording.event, recording.lost, hides_names, known.host_class == "container")
    top = ", ".join(f"{name} {share:.1%}" for name, share in own[:3])
    return {
        "changed": False,
        "msg": sentence(f"profile: {folder.samples} samples in {seconds:g} s{f'; most in {top}' if top else ''}"),
        "seconds": recording.seconds,
        "frequency": frequency,
        "event": recording.event,
        "version": recording.version,
        "samples": folder.samples,
        "idle": folder.idle,
        "busy": round(busy, 4),
        "top": [{"name": name, "own": round(share, 4), "share": round(shares[name], 4)} for name, share in own],
        "counters": counters.end(),
        "advice": advice(tree, counters.end()),
        "notes": [*said, *recording.refused],
        **recording.waits,
        "kernel": known.kernel,
        "stacks": packed(tree),
    }


def packed(tree: Tree) -> str:
    """The tree as a result of a module has it: JSON, compressed, in letters. JSON as a whole would take 15 MiB."""
    packer = zlib.compressobj()
    parts: List[bytes] = []
    for name, column in tree._asdict().items():
        parts.append(packer.compress(f'{"," if parts else "{"}"{name}":['.encode()))
        for start in range(0, len(column), _AT_ONCE):
            text = json.dumps(list(column[start : start + _AT_ONCE]), separators=(",", ":"))
            parts.append(packer.compress(f"{',' if start else ''}{text[1:-1]}".encode()))
        parts.append(packer.compress(b"]"))
    return base64.b64encode(b"".join([*parts, packer.compress(b"}"), packer.flush()])).decode()


TASKS = {"profile": Task(OPTIONS, do, forecast)}
