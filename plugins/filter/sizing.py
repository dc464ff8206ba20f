# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter sizing; its documentation is in sizing.yml."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ansible.errors import AnsibleFilterError

from ..module_utils._cloud.sizing.advice import answer, question
from ..module_utils._error import NearmetalError

_OPTIONS = (
    "instance_type",
    "instance_types",
    "volumes",
    "prices",
    "work",
    "work_unit",
    "work_wanted",
    "sustained",
    "headroom_percent",
    "most",
)


def sizing(need: Any, **options: Any) -> Dict[str, Any]:
    """Which types would do for a need, and what would be used of more. Raises AnsibleFilterError."""
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise AnsibleFilterError(f"sizing: {unknown[0]} is not an option: it must be one of {', '.join(_OPTIONS)}")
    try:
        return answer(question({**options, "need": need}))
    except NearmetalError as error:
        raise AnsibleFilterError(f"sizing: {error}") from error


class FilterModule:
    def filters(self) -> Dict[str, Callable[..., Dict[str, Any]]]:
        return {"sizing": sizing}
