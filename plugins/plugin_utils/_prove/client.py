# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client hosts: other hosts of the inventory, on which only the load runs. PRIVATE to the collection."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Container, Dict, List, Mapping, Sequence

from ...module_utils._benchmark.host.benchmarking import LONGEST_START
from ...module_utils._benchmark.tools import histogram
from ...module_utils._benchmark.tools.registry import of_client
from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics import metrics
from ...module_utils._words import plain, shown
from .._together import together
from . import signals

_ATTEMPTS = 3  # to begin at the same time


def require(names: Sequence[str], host: str, inventory: Container[str]) -> None:
    """Raise NearmetalError unless each client is another host of the inventory, and not the one under test."""
    if not names or len(set(names)) < len(names):
        raise NearmetalError("prove.load_on (prove_on in the role) must name where the load runs, each client once")
    for name in names:
        option = f"prove.load_on (prove_on in the role) is {shown(name)}"
        if name == host:
            raise NearmetalError(
                f"{option}, the host under test itself: set host to run the load on it, or name another host of the"
                " inventory"
            )
        if name not in inventory:
            raise NearmetalError(
                f"{option}, which isn't in the inventory; allowed are host, controller, and the inventory's names of"
                " other hosts"
            )


class Client:
    """A client of one run, reached by an action of its own."""

    def __init__(self, name: str, action: Any, task_vars: Mapping[str, Any]) -> None:
        self.name, self._action, self._task_vars = name, action, task_vars

    def load(self, arguments: Mapping[str, Any]) -> Dict[str, Any]:
        """Run the load once; the host's answer, untrusted. Raises NearmetalError when it can't be run there."""
        try:
            answer: Dict[str, Any] = self._action.step({**arguments, "step": "load"}, self._task_vars)
        except NearmetalError as error:
            raise NearmetalError(
                f"the load can't run on {self.name} ({plain(str(error)).rstrip('.')}): check that host with"
                f" `ansible {self.name} -m ping`, or set prove_on to another one"
            ) from None
        except signals.Interrupted:
            _end_connections()
            raise
        return answer

    def leave(self) -> None:
        """Remove what Ansible put there to run the load. If that fails, the run's result stays as it is."""
        with suppress(Exception):
            self._action.clean_up()


class Clients:
    """All clients of a run, whose loads are one load: they start together, and their figures are added."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self._lead = 0.0  # seconds after which the slowest client runs what it is asked for

    def reach(self) -> None:
        """Run nothing on them. Raises NearmetalError when one can't be reached or is no host for a load."""
        for client in self._clients:
            began = time.monotonic()
            client.load({"command": ""})
            self._lead = max(self._lead, 1.5 * (time.monotonic() - began))

    def load(self, arguments: Mapping[str, Any]) -> List[Dict[str, Any]]:
        """Run the load once on all of them. Raises NearmetalError that names the client on which it can't be run."""
        if len(self._clients) == 1:
            return [self._clients[0].load(arguments)]
        commands = [of_client(str(arguments["command"]), number) for number in range(len(self._clients))]
        for _attempt in range(_ATTEMPTS):
            # Each begins when the slowest one can, by its own clock; on EC2 these agree within milliseconds.
            shared = {**arguments, "start_at": time.time() + self._lead}
            calls = [
                lambda client=client, command=command, shared=shared: client.load({**shared, "command": command})
                for client, command in zip(self._clients, commands)
            ]
            answers = together(calls, _failed)
            if any(map(_failed, answers)) or self._ran_together(answers):
                break
            self._lead = min(1.5 * self._lead + 1.0, LONGEST_START)
        return answers

    def _ran_together(self, answers: Sequence[Mapping[str, Any]]) -> bool:
        names = [client.name for client in self._clients]
        try:
            histogram.require_together(names, [answer["load"].get("span") for answer in answers])
        except NearmetalError:
            return False
        return True

    def merged(self, answers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The loads as one. One that failed is the whole, with the client's name."""
        loads: List[Dict[str, Any]] = [
            answer["load"] if isinstance(answer.get("load"), dict) else {} for answer in answers
        ]
        if len(loads) == 1:
            return loads[0]
        for client, answer, load in zip(self._clients, answers, loads):
            if answer and _failed(answer):  # others were ended, and have none
                return {**load, "message": f"{client.name}: {load.get('message') or 'no message'}"}
        try:
            figures = [metrics.metrics_of(str(load.get("output") or "").encode("utf-8", "replace")) for load in loads]
            names = [client.name for client in self._clients]
            histograms, spans = ([load.get(name) for load in loads] for name in ("histograms", "span"))
            total, merged = histogram.added(names, figures, histograms, spans)
        except NearmetalError as error:
            return {**loads[0], "code": 1, "message": str(error)}
        lines = [f"{name} {value!r} {unit} {better}" for name, value, unit, better in total]
        seconds = max(float(load.get("seconds") or 0.0) for load in loads)
        return {**loads[0], "output": "\n".join(lines), "seconds": seconds, "histograms": merged}

    def leave(self) -> None:
        """Remove what Ansible put there to run the load."""
        for client in self._clients:
            client.leave()


def _failed(answer: Mapping[str, Any]) -> bool:
    load = answer.get("load")
    return not isinstance(load, dict) or load.get("code") != 0 or bool(load.get("end"))


def _end_connections() -> None:
    """End the programs of this process, such as ssh: a load ends with the connection that waits for it."""
    with suppress(OSError):
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split():
            os.kill(int(pid), signal.SIGTERM)
