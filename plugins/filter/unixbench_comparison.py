# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter unixbench_comparison; its documentation is in unixbench_comparison.yml."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ansible.errors import AnsibleFilterError

from ..module_utils._benchmark.tools.unixbench import compare
from ..module_utils._words import shown
from ..plugin_utils._clean import mapping


def unixbench_comparison(second: Any, first: Any) -> Dict[str, Any]:
    """What changed from `first` to `second`, two results of the benchmark unixbench."""
    return compare(_rows("the earlier result", first), _rows("the result", second))


def _rows(name: str, result: Any) -> Dict[str, float]:
    rows = mapping(mapping(result).get("details")).get("rows")
    if not isinstance(rows, dict) or not rows:
        raise AnsibleFilterError(f"unixbench_comparison: {name} isn't what the benchmark unixbench returned")
    for test, value in rows.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e15:
            raise AnsibleFilterError(f"unixbench_comparison: {name} has {shown(value)} for {shown(test)}")
    return rows


class FilterModule:
    def filters(self) -> Dict[str, Callable[..., Dict[str, Any]]]:
        return {"unixbench_comparison": unixbench_comparison}
