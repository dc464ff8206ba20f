# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client host: another host of the inventory, on which only the load runs. PRIVATE to the collection."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Container, Mapping

from ...module_utils._error import NearmetalError
from ...module_utils._words import plain, shown
from . import signals


def require(name: str, host: str, inventory: Container[str]) -> None:
    """Raise NearmetalError unless the client is a host of the inventory, and not the one under test."""
    option = f"prove.load_on (prove_on in the role) is {shown(name)}"
    if name == host:
        raise NearmetalError(
            f"{option}, the host under test itself: set host to run the load on it, or name another host of the"
            " inventory"
        )
    if name not in inventory:
        raise NearmetalError(
            f"{option}, which isn't in the inventory; allowed are host, controller, and the inventory's name of another"
            " host"
        )


class Client:
    """The client of one run, reached by an action of its own."""

    def __init__(self, name: str, action: Any, task_vars: Mapping[str, Any]) -> None:
        self._name, self._action, self._task_vars = name, action, task_vars

    def reach(self) -> None:
        """Run nothing there. Raises NearmetalError when the host can't be reached or is no host for a load."""
        self.load({"command": ""})

    def load(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the load once; the host's answer, untrusted. Raises NearmetalError when it can't be run there."""
        try:
            answer: Mapping[str, Any] = self._action.step({**arguments, "step": "load"}, self._task_vars)
        except NearmetalError as error:
            raise NearmetalError(
                f"the load can't run on {self._name} ({plain(str(error)).rstrip('.')}): check that host with"
                f" `ansible {self._name} -m ping`, or set prove_on to another one"
            ) from None
        except signals.Interrupted:
            _end_connections()
            raise
        return answer

    def leave(self) -> None:
        """Remove what Ansible put there to run the load. If that fails, the run's result stays as it is."""
        with suppress(Exception):
            self._action.clean_up()


def _end_connections() -> None:
    """End the programs of this process, such as ssh: a load ends with the connection that waits for it."""
    with suppress(OSError):
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split():
            os.kill(int(pid), signal.SIGTERM)
