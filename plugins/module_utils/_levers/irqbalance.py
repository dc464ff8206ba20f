# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever for the arguments of irqbalance, in the file that its own unit reads. PRIVATE to the collection.

The file belongs to the distribution and the operator: one variable's text is
replaced, every other byte stays. irqbalance runs as root, so a value may contain
only words that are in the file already, and nearmetal's.
"""

from __future__ import annotations

import re
import time
from typing import Iterable, List

from .._error import NearmetalError
from .._facts import irqbalance, irqbalance_process
from .._facts.irqbalance_process import UNIT
from .._facts.native_files import IRQBALANCE_POLICY
from .._facts.nic import PCI_DRIVERS
from .._host import store
from .._host.host import WritableHost
from .._parse import environment_file
from .._plan import Value
from .base import file_commands, impossible, no_place
from .capabilities import OnDisk
from .files import read_only

_STARTS_WITHIN = 10.0  # seconds
_NEARMETAL_WORD = re.compile(
    rf"--banmod=(?:{'|'.join(PCI_DRIVERS)})|--policyscript={re.escape(IRQBALANCE_POLICY)}", re.ASCII
)


class IrqbalanceArguments(OnDisk):
    """The text of the variable; `where` is the file. With `restart` the daemon is started with it."""

    waits_for = "needs_restart"

    def __init__(self, what: str, restart: bool) -> None:
        super().__init__(what)
        self.restart = restart

    def check(self, where: str, value: Value) -> None:
        if where not in irqbalance.FILES:
            raise no_place(self, where)
        if value is not None and (not isinstance(value, str) or len(value) > 1024 or irqbalance.words(value) is None):
            raise impossible(self, value, where)

    def read(self, host: WritableHost, where: str) -> Value:
        return irqbalance.observe(host).arguments.get(where)

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        file, variable, _default = irqbalance.source(host)
        if file != where or variable is None:
            raise NearmetalError(f"{UNIT} doesn't read its arguments from {where} any more")
        raw = None if value is None else str(value)
        present = str(self.read(host, where) or "")
        known = irqbalance.words(present) or ()
        foreign = [
            word
            for word in irqbalance.words(raw or "") or ()
            if word not in known and not _NEARMETAL_WORD.fullmatch(word)
        ]
        if foreign:
            raise NearmetalError(
                f"{foreign[0]} can't be written to {where}: it is neither in the file already nor an argument that"
                " nearmetal sets"
            )
        text = _text(host, where)
        after = environment_file.assigned(text, variable, raw)
        if after != text:
            data = after.encode("utf-8", "surrogateescape")
            store.replace_file(host, where, data, mode=host.mode(where), folder_mode=0o755)
        if self.restart and host.booted():
            host.command(("systemctl", "restart", UNIT))
            self._wait(host, where)

    def commands(self, host: WritableHost, where: str, value: Value) -> List[str]:
        file, variable, _default = irqbalance.source(host)
        if file != where or variable is None:
            return []
        text = environment_file.assigned(_text(host, where), variable, None if value is None else str(value))
        restart = [f"systemctl restart {UNIT}"] if self.restart else []
        return [*file_commands(where, text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")), *restart]

    def _wait(self, host: WritableHost, where: str) -> None:
        """Wait until irqbalance runs: systemctl returns before the new process has become it."""
        end = time.monotonic() + _STARTS_WITHIN
        while where not in irqbalance.observe(host).in_force and time.monotonic() < end:
            time.sleep(0.1)

    def obstacle(self, host: WritableHost, where: str) -> str:
        return read_only(host, where)

    def temporary(self, host: WritableHost, where: str) -> Iterable[str]:
        return (store.temporary_path(where),)

    def pending(self, host: WritableHost, where: str, value: Value) -> str:
        if self.restart or irqbalance_process.arguments(host) is None:
            return ""
        return f"irqbalance runs with its old arguments until systemctl restart {UNIT}, or the next boot"


def _text(host: WritableHost, path: str) -> str:
    return (store.read_file(host, path) or b"").decode("utf-8", "surrogateescape")


LEVERS = (
    IrqbalanceArguments("irqbalance.arguments", restart=False),
    IrqbalanceArguments("irqbalance.in_force", restart=True),
)
