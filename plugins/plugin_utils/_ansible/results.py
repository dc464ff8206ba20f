# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of tasks: what is in them, and in a callback the names since ansible-core 2.19. PRIVATE."""

from __future__ import annotations

from typing import Any, List, Mapping


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


def follows_contract(result: Any) -> bool:
    """Whether a task's result is that of a state module: it has lists of actions and findings.

    A cloud module's result covers many hosts; `cloud_findings` gives each host its own part.
    """
    if not isinstance(result, Mapping) or "instances" in result:
        return False
    return all(isinstance(result.get(name), (list, tuple)) for name in ("findings", "actions"))


def error_of_loop(result: Mapping[str, Any]) -> str:
    """The error of the last item of a loop that failed without a report; empty when there is none."""
    items = [item for item in result.get("results") or () if isinstance(item, Mapping) and not follows_contract(item)]
    # Since 2.21 Ansible keeps only the exception of a failed item.
    failed = [item for item in items if item.get("failed") is True or "exception" in item]
    return str(failed[-1].get("msg") or "failed") if failed else ""
