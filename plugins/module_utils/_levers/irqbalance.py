# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever for the arguments of irqbalance, in the file that its own unit reads. PRIVATE to the collection.

The file belongs to the distribution and the operator: one variable's text is
replaced, every other byte stays. irqbalance runs as root, so a value may contain
only words that are in the file already, and nearmetal's.
"""

from __future__ import annotations

import re
import time
from typing import Iterable, Optional

from .._error import NearmetalError
from .._facts import irqbalance, irqbalance_process
from .._facts.irqbalance_process import UNIT
from .._facts.native_files import IRQBALANCE_POLICY
from .._facts.nic import PCI_DRIVERS
from .._host import store
from .._parse import environment_file
from .._plan import Value
from .base import Lever
from .files import read_only

_STARTS_WITHIN = 10.0  # seconds
_NEARMETAL_WORD = re.compile(
    rf"--banmod=(?:{'|'.join(PCI_DRIVERS)})|--policyscript={re.escape(IRQBALANCE_POLICY)}", re.ASCII
)


class IrqbalanceArguments(Lever):
    """The text of the variable; `where` is the file. With `restart` the daemon is started with it."""

    scope = "boot"
    waits_for = "needs_restart"

    def __init__(self, what: str, restart: bool) -> None:
        super().__init__(what)
        self.restart = restart

    def has_place(self, where: str) -> bool:
        return where in irqbalance.FILES

    def fits(self, where: str, value: Value) -> bool:
        return value is None or (isinstance(value, str) and len(value) <= 1024 and irqbalance.words(value) is not None)

    def read(self) -> Value:
        return irqbalance.observe(self.host).arguments.get(self.where)

    def write(self, value: Value) -> None:
        raw = None if value is None else str(value)
        text = changed_text(self, raw)
        if text is None:
            raise NearmetalError(f"{UNIT} doesn't read its arguments from {self.where} any more")
        present = str(self.read() or "")
        known = irqbalance.words(present) or ()
        foreign = [
            word
            for word in irqbalance.words(raw or "") or ()
            if word not in known and not _NEARMETAL_WORD.fullmatch(word)
        ]
        if foreign:
            raise NearmetalError(
                f"{foreign[0]} can't be written to {self.where}: it is neither in the file already nor an argument that"
                " nearmetal sets"
            )
        data = text.encode("utf-8", "surrogateescape")
        if data != (store.read_file(self.host, self.where) or b""):
            store.replace_file(self.host, self.where, data, mode=self.host.mode(self.where), folder_mode=0o755)
        if self.restart and self.host.booted():
            self.host.command(("systemctl", "restart", UNIT))
            self._wait()

    def _wait(self) -> None:
        """Wait until irqbalance runs: systemctl returns before the new process has become it."""
        end = time.monotonic() + _STARTS_WITHIN
        while self.where not in irqbalance.observe(self.host).in_force and time.monotonic() < end:
            time.sleep(0.1)

    def obstacle(self) -> str:
        return read_only(self.host, self.where)

    def temporary(self) -> Iterable[str]:
        return (store.temporary_path(self.where),)

    def pending(self, value: Value) -> str:
        if self.restart or irqbalance_process.arguments(self.host) is None:
            return ""
        return f"irqbalance runs with its old arguments until systemctl restart {UNIT}, or the next boot"


def changed_text(place: IrqbalanceArguments, raw: Optional[str]) -> Optional[str]:
    """The file's text with this one in its variable; None when irqbalance reads its arguments from elsewhere."""
    file, variable, _default = irqbalance.source(place.host)
    if file != place.where or variable is None:
        return None
    present = (store.read_file(place.host, place.where) or b"").decode("utf-8", "surrogateescape")
    return environment_file.assigned(present, variable, raw)


LEVERS = (
    IrqbalanceArguments("irqbalance.arguments", restart=False),
    IrqbalanceArguments("irqbalance.in_force", restart=True),
)
