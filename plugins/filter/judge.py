# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter judge; its documentation is in judge.yml."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ansible.errors import AnsibleFilterError

from ..module_utils._error import NearmetalError
from ..plugin_utils._prove.judge import judge as judge_record


def judge(record: Any, report: Any = "") -> Dict[str, Any]:
    """The verdict that follows from the record in a file, and whether its report says the same."""
    try:
        return judge_record(str(record), str(report))
    except NearmetalError as error:
        raise AnsibleFilterError(f"judge: {error}") from None


class FilterModule:
    def filters(self) -> Dict[str, Callable[..., Dict[str, Any]]]:
        return {"judge": judge}
