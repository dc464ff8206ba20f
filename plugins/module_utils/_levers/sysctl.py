# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever of kernel parameters. PRIVATE to the collection."""

from __future__ import annotations

import errno
import os
import re

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import sysctl
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import Lever
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Value

_VALUE = re.compile(r"[A-Za-z0-9_-]{1,32}(?: [0-9]{1,20}){0,2}", re.ASCII)


class Sysctl(Lever):
    """A kernel parameter that a concern manages; `where` is its key, words are separated by one blank."""

    def check(self, where: str, value: Value) -> None:
        if where not in sysctl.KEYS:
            raise NearmetalError(f"{where!r} is no kernel parameter that nearmetal manages")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise NearmetalError(f"{where} can't be {value!r}")

    def read(self, host: WritableHost, where: str) -> Value:
        text = host.text(sysctl.path(where), 4096)
        return " ".join(text.split()) if text is not None else None

    def write(self, host: WritableHost, where: str, value: Value) -> None:
        try:
            host.write_value(sysctl.path(where), f"{value}\n")
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "error")
            reason = os.strerror(error.errno or 0)
            raise NearmetalError(f"the kernel refused {value} for {where} ({name}: {reason})") from None

    def obstacle(self, host: WritableHost, where: str) -> str:
        path = sysctl.path(where)
        return "" if host.writable(path) else f"{path} can't be written here: run on the host itself"


LEVERS = (Sysctl("sysctl"),)
