# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module `run_agent` orders of the agent: the task of a module, by its name. PRIVATE to the collection."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any, Dict, Mapping, Optional

from .._error import NearmetalError
from .._host.host import WritableHost
from .._planning.options import validate
from .._words import sentence
from .task import Task, Work

# Module → the file in whose TASKS it is; those of concerns are all alike.
_FILES = {
    "benchmark": ".._benchmark.host.benchmarking",
    "capture": ".observing",
    "confirm": ".changing",
    "host_facts": ".observing",
    "instance_facts": ".observing",
    "network_facts": ".observing",
    "profile": ".._profile.profiling",
    "prove": ".._prove.host.proving",
    "restore": ".changing",
    "rollout": ".._rollout.vitals",
    "topology_facts": ".observing",
    "tune": ".tuning",
}


def task_of(module: str) -> Task:
    """The task of a module, loaded when it is needed, because loading costs milliseconds."""
    if module not in _FILES:
        from . import changing

        return changing.task_of(module)
    task: Task = import_module(_FILES[module], __package__).TASKS[module]
    return task


def carry_out(work: Work, host: WritableHost, options: Mapping[str, Any], **more: Any) -> Dict[str, Any]:
    """The result of a task; `failed` is in it when something went wrong."""
    try:
        result = work(host, options, **more)
    except NearmetalError as error:
        result = {"failed": True, "msg": str(error)}
    if result.get("failed"):
        result["msg"] = sentence(result["msg"])
    return result


def answer(order: Mapping[str, Any], host: WritableHost) -> Dict[str, Any]:
    """The result of what the module `run_agent` orders. Options that are wrong are shown nowhere but in the message."""
    task = task_of(order["module"])
    try:
        options = validate(order["module"], task.options, order["wanted"])
    except NearmetalError as error:
        return {"failed": True, "mistake": True, "msg": sentence(str(error)), "invocation": {"module_args": {}}}
    return carry_out(task.forecast if order["check"] else task.run, host, options, **order["more"])


def main(host: Optional[WritableHost] = None) -> int:
    """Answer the order on standard input."""
    order = json.load(sys.stdin)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        # A load ends when nobody reads any more what the module will print.
        os.dup2(order["reader"], sys.stdout.fileno())
        json.dump(answer(order, host or WritableHost()), answers)
    return 0
