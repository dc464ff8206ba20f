# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter parse_instance_type; its documentation is in parse_instance_type.yml."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ansible.errors import AnsibleFilterError

from ..module_utils._cloud.types.name import parse_instance_type
from ..module_utils._cloud.types.table import offline_types
from ..module_utils._error import NearmetalError


def parts(name: Any) -> Dict[str, Any]:
    """The parts of an instance type's name, and what the offline table knows of its hypervisor."""
    try:
        parsed = parse_instance_type(name).as_dict()
    except NearmetalError as error:
        raise AnsibleFilterError(f"parse_instance_type: {error}") from error
    known = offline_types().get(parsed["instance_type"])
    return {**parsed, "host_class": known.host_class if known else None}


class FilterModule:
    def filters(self) -> Dict[str, Callable[[Any], Dict[str, Any]]]:
        return {"parse_instance_type": parts}
