# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A callback's results, with the names that they have since ansible-core 2.19. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, List


class _Older:
    """A result of ansible-core 2.16 to 2.18; all that isn't named here is Ansible's own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.host, self.task, self.result = inner._host, inner._task, inner._result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def result_of(result: Any) -> Any:
    """The result with `host`, `task` and `result`."""
    return result if hasattr(result, "result") else _Older(result)


def warnings(result: Any) -> List[str]:
    """What the task warned of."""
    if hasattr(result, "warnings"):
        return [str(warning.event.msg) for warning in result.warnings]
    return list(map(str, result.result.get("warnings") or ()))


def deprecations(result: Any) -> List[str]:
    """What the task called deprecated."""
    if hasattr(result, "deprecations"):
        return [str(deprecation.event.msg) for deprecation in result.deprecations]
    return [str(deprecation.get("msg", "")) for deprecation in result.result.get("deprecations") or ()]
