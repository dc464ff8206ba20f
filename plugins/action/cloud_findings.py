# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand a host its part of a result that one call brought for all hosts. Runs on the controller as a whole."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils._plan import Finding
from ..module_utils._words import status_words
from ..plugin_utils._ansible.instances import instance_id

OPTIONS = {
    "concern": {"type": "str", "required": True},
    "result": {"type": "str", "required": True},
}
_UNKNOWN = "the instance of this host is unknown: set instance_id in the inventory, or run instance_facts before"


class ActionModule(ActionBase):
    """Reads the registered result by its name: a fleet's result is too large to template for each host."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result contract, of this host alone."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, options = self.validate_argument_spec(OPTIONS)
        variables = task_vars or {}
        fleet = variables.get(options["result"])
        if not isinstance(fleet, Mapping) or not isinstance(fleet.get("instances"), Mapping):
            raise AnsibleActionFail(f"result: {options['result']} isn't a result of a cloud module")
        result.update(_select_host(options["concern"], fleet, instance_id(variables)))
        return result


def _select_host(concern: str, fleet: Mapping[str, Any], identity: str | None) -> dict[str, Any]:
    if identity is None or identity not in fleet["instances"]:
        reason = _UNKNOWN if identity is None else f"{identity} was not among the instances that were looked at"
        part: Mapping[str, Any] = {"actions": [], "findings": [Finding(concern, "", "unknown", reason).as_dict()]}
    else:
        part = fleet["instances"][identity]
    actions, findings = list(part["actions"]), list(part["findings"])
    diff = fleet.get("diff") or {}
    return {
        **part,
        "changed": bool(actions),
        "msg": f"{concern}: {_summary(findings)}",
        "diff": {
            side: {identity: diff[side][identity]} for side in ("before", "after") if identity in diff.get(side, {})
        },
        "actions": actions,
        "findings": findings,
        "instance_id": identity,
        "reboot_required": False,
        "reboot_reasons": [],
    }


def _summary(findings: list[Mapping[str, Any]]) -> str:
    sentences = [f"{status_words(each['status'])}: {each['reason']}" for each in findings if each["status"] != "ok"]
    return sentences[0] if sentences else "as it should be" if findings else "nothing to say"
