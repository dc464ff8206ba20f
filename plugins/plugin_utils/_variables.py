# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that are no option of a role but nearly one, which Ansible would ignore. PRIVATE to the collection.

A name that only begins like our options, such as `audit_log_path`, is the user's own: nothing is said of it.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Set

from ansible.module_utils.common.yaml import yaml_load

_ROLES = Path(__file__).parents[2] / "roles"
# Their variables hold for whole runs, so they are checked whichever module runs.
_VERBS = ("audit", "benchmark", "prove", "restore", "tune")
# Names that the playbooks read, and that the roles register beside `<role>_result`.
_OTHERS = (
    *("audit_limits", "benchmark_address", "benchmark_client", "benchmark_limit", "benchmark_port"),
    *("tune_health_result", "tune_serial"),
)
# difflib's ratio, of the part after the role's name: `sorce` and `source` have 0.91, `log_path` and `timeout` 0.27.
_NEAR = 0.75
# Of the role's name, where the rest is an option as it should be: `hugepage` and `hugepages` have 0.94.
_NEAR_ROLE = 0.85


def _options() -> Dict[str, Set[str]]:
    """Role → its options, without the role's name, as its argument specs have them."""
    found = {}
    for path in _ROLES.glob("*/meta/argument_specs.yml"):
        role = path.parts[-3]
        options = yaml_load(path.read_text("utf-8"))["argument_specs"]["main"]["options"]
        found[role] = {name[len(role) + 1 :] for name in options}
    return found


# Once per run of Ansible, which loads this before it starts a worker for each host.
_OPTIONS = _options()
_KNOWN = {
    *_OTHERS,
    *(f"{role}_{option}" for role, options in _OPTIONS.items() for option in (*options, "result")),
}


def warn(result: Dict[str, Any], module: str, task_vars: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result, with a warning for each variable that nearly is an option of its role or of a verb."""
    found = misspelt(task_vars, module)
    sentences = [f"the variable {name} isn't an option and has no effect: is {found[name]} meant?" for name in found]
    if sentences:
        result["warnings"] = [*(result.get("warnings") or ()), *sentences]
    return result


def misspelt(names: Iterable[str], module: str) -> Dict[str, str]:
    """Name → the option that is meant."""
    roles = {*_VERBS, module.rpartition(".")[2]} & _OPTIONS.keys()
    found = {}
    for name in sorted(name for name in map(str, names) if "_" in name and name not in _KNOWN):
        option = _meant(name, roles)
        if option:
            found[name] = option
    return found


def _meant(name: str, roles: Set[str]) -> str:
    for role in roles:
        if name.startswith(f"{role}_"):
            near = difflib.get_close_matches(name[len(role) + 1 :], _OPTIONS[role], 1, _NEAR)
            return f"{role}_{near[0]}" if near else ""
    for place in (place for place, sign in enumerate(name) if sign == "_"):
        first, rest = name[:place], name[place + 1 :]
        near = difflib.get_close_matches(first, [role for role in roles if rest in _OPTIONS[role]], 1, _NEAR_ROLE)
        if near:
            return f"{near[0]}_{rest}"
    return ""
