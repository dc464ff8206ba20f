# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this project uses of ansible.module_utils.basic, typed."""

from typing import Any, Mapping, NoReturn, Sequence

class AnsibleModule:
    params: dict[str, Any]
    check_mode: bool
    tmpdir: str
    def __init__(
        self,
        argument_spec: Mapping[str, Any],
        *,
        mutually_exclusive: Sequence[Sequence[str]] = ...,
        required_together: Sequence[Sequence[str]] = ...,
        required_one_of: Sequence[Sequence[str]] = ...,
        required_if: Sequence[Sequence[Any]] = ...,
        required_by: Mapping[str, Sequence[str]] = ...,
        supports_check_mode: bool = ...,
    ) -> None: ...
    def _load_params(self) -> None: ...
    def exit_json(self, **result: Any) -> NoReturn: ...
    def fail_json(self, msg: str, **result: Any) -> NoReturn: ...
    def warn(self, warning: str) -> None: ...

def missing_required_lib(library: str, reason: str | None = ..., url: str | None = ...) -> str: ...
