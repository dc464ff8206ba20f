# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that nearly are an option of a role, or were one, which Ansible would ignore. PRIVATE to the collection.

A name that only begins like nearmetal's options, such as `audit_log_path`, is the user's own: nothing is said of it.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping

from ansible.module_utils.common.yaml import yaml_load

from ...module_utils._concerns.registry import HEADINGS
from ...module_utils._error import NearmetalError
from ...module_utils._mistakes import several
from .plays import COLLECTION

_ROLES = Path(__file__).parents[3] / "roles"
# Their variables hold for whole runs, so they are checked whichever module runs.
_VERBS = ("audit", "benchmark", "profile", "prove", "restore", "rollout", "tune")
# Names that the playbooks read, and that the roles register beside `<role>_result`.
_OTHERS = (
    *("audit_limits", "benchmark_address", "benchmark_client", "benchmark_limit", "benchmark_on", "benchmark_port"),
    *("tune_health_result", "tune_serial"),
)
_OF_PLAYBOOKS = {"capture": frozenset({"directory"})}  # of a playbook without a role: module → its options
# Modules for several concerns, which read no variable of a concern's own role, and its names, with or without an s.
_COMBINING = ("prove", "tune")
_OF_CONCERN = re.compile(f"({'|'.join(f'{concern}?' for concern in HEADINGS)})_(.+)")
_REFUSAL = "Validation of arguments failed:"  # how Ansible begins
# How Ansible begins with a variable at a role for which the role has no option.
_UNSUPPORTED = re.compile(r"(\w+(?:, \w+)*)\. Supported parameters include: (.+?)\.?$", re.ASCII)
# How it begins with a value of another type than the option's, and those types.
_WRONG_TYPE = re.compile(r"argument '(\w+)' is of type .*? convert to (float|int|bool|dict|list)\b", re.ASCII)
_TYPES = {"float": "a number", "int": "a whole number", "bool": "true or false", "dict": "a mapping", "list": "a list"}
# Options of earlier versions, and what has come in their place.
_REMOVED = {
    "benchmark_install": "install the tools yourself",
    "network_stack_tw_recycle": "kernel_check names a host on which it is on",
}
# Options of a role that keep something from happening. Without one more would be done than the operator wants.
_LIMITS = {
    "audit": ("fail_on",),
    "benchmark": ("limit",),
    "prove": ("abandon_after", "fail_on", "guard", "health", "keep", "only", "primary"),
    "restore": ("concerns",),
    "rollout": (
        *("batches", "freeze", "guards", "health", "margin", "metrics", "most_unavailable", "on_unclear", "window"),
    ),
    "tune": (
        *("bake", "confirm_within", "exclude", "health_command", "health_on", "on_failure", "only", "owner_conflict"),
        *("serial", "strict", "waivers"),
    ),
}
# What other tools call such an option of tune.
_SYNONYMS = {"exclusions": "exclude", "ignore": "exclude", "skip": "exclude"}
# Module → the roles whose limits hold for it. A way back isn't kept from anything but by its own.
_LIMITED_BY = {
    "audit_report": ("audit", "tune"),
    "benchmark": ("benchmark",),
    "prove": ("prove", "tune"),
    "restore": ("restore",),
    "rollout": ("rollout", "prove", "tune"),
    "tune": ("tune",),
}
# difflib's ratio, of the part after the role's name: `sorce` and `source` have 0.91, `log_path` and `timeout` 0.27.
_NEAR = 0.75
_SHORT = ("dir",)  # what people write for the beginning of an option, which is too short to be near it
# Of a limit, closer: `gaurd` and `guard` have 0.80, `health_url`, a user's own, and `health` 0.75.
_NEAR_LIMIT = 0.8
# Of the role's name, where the rest is an option as it should be: `hugepage` and `hugepages` have 0.94.
_NEAR_ROLE = 0.85


@lru_cache(maxsize=None)
def _options(role: str) -> FrozenSet[str]:
    """The options of a role, without the role's name, as its argument specs have them; none for what is no role."""
    return frozenset(name[len(role) + 1 :] for name in spec_of(role)) or _OF_PLAYBOOKS.get(role, frozenset())


@lru_cache(maxsize=None)
def spec_of(role: str) -> Mapping[str, Any]:
    """The argument spec of a role; empty for what is no role."""
    path = _ROLES / role / "meta/argument_specs.yml"
    specs = yaml_load(path.read_text("utf-8")) if path.exists() else {"argument_specs": {"main": {}}}
    options: Mapping[str, Any] = specs["argument_specs"]["main"].get("options", {})
    return options


def options_of(role: str) -> List[str]:
    """The variables that are options of a role."""
    return [f"{role}_{option}" for option in _options(role)]


# Once per run of Ansible, which loads this before it starts a worker for each host. All roles would take ten times as
# long.
for _verb in _VERBS:
    _options(_verb)


def warn(result: Dict[str, Any], module: str, task_vars: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result, with a warning for each variable that was an option, or nearly is one of its role."""
    unknown = misspelt(task_vars, module)
    sentences = [
        f"the variable {name} isn't an option and has no effect: is {unknown[name]} meant?" for name in unknown
    ]
    sentences += [
        f"the variable {name} is no longer an option and has no effect: {instead}"
        for name, instead in _REMOVED.items()
        if name in task_vars
    ]
    if module.rpartition(".")[2] in _COMBINING:
        sentences += _of_single_roles(task_vars)
    if sentences:
        result["warnings"] = [*(result.get("warnings") or ()), *sentences]
    return result


def require_limits(task_vars: Mapping[str, Any], module: str) -> None:
    """Raise NearmetalError for a variable that nearly is an option that keeps the module from doing something."""
    found = []
    for role in _LIMITED_BY.get(module.rpartition(".")[2], ()):
        begin = f"{role}_"
        for name in (name for name in map(str, task_vars) if name.startswith(begin) and name not in _OTHERS):
            given = name[len(begin) :]
            swapped = [limit for limit in _LIMITS[role] if sorted(limit) == sorted(given)]  # `onyl` has 0.75 only
            called = [_SYNONYMS[given]] if role == "tune" and given in _SYNONYMS else []
            near = swapped or called or difflib.get_close_matches(given, _LIMITS[role], 1, _NEAR_LIMIT)
            if near and given not in _options(role):
                why = "It keeps something from happening, so nothing was done without it"
                found.append(f"the variable {name} isn't an option: is {begin}{near[0]} meant? {why}")
    if found:
        raise NearmetalError(several(found))


def as_typed(message: str, task: Any) -> str:
    """A message of a module with its options as they were set: of a role's task its variables, else the options."""
    role = getattr(task, "_role", None)
    module = task.action.rpartition(".")[2]
    if role is None or not str(role.get_name()).startswith(COLLECTION):
        # The sentences of tune have the role's variables; one for both says whose variable it is.
        variable = rf"(?<!role tune: )\btune_({'|'.join(_options('tune'))})\b(?! of the role)"
        return re.sub(variable, r"\1", message) if module == "tune" else message
    return of_options(message, module)


def of_options(message: str, module: str) -> str:
    """A message about options of a module, with the variables of its role in their place."""
    named = re.sub(rf"(?<![\w.]){module}\.(?=[a-z])", f"{module}_", message)
    return re.sub(r"(?<![\w.])concerns\.(?=[a-z])", f"{module}_concerns.", named)


def of_a_role(message: str) -> str:
    """Ansible's message about wrong variables of a role, each in a sentence that begins with the variable."""
    if not message.startswith(_REFUSAL):
        return message
    said = message.removeprefix(_REFUSAL)
    return several(of_a_variable(line.strip()) for line in said.splitlines() if line.strip())


def of_a_variable(message: str) -> str:
    """Ansible's message about one wrong variable of a role."""
    unknown, wrong = _UNSUPPORTED.match(message), _WRONG_TYPE.match(message)
    if wrong is not None:
        return f"{wrong[1]} must be {_TYPES[wrong[2]]}"
    if unknown is None:
        return message
    names, options = unknown[1].split(", "), unknown[2].split(", ")
    near = [close for name in names for close in difflib.get_close_matches(name, options, 1, _NEAR)]
    instead = f"is {', '.join(near)} meant?" if len(near) == len(names) else f"there are {unknown[2]}"
    verb = "isn't an option" if len(names) == 1 else "aren't options"
    return f"{unknown[1]} {verb} of the role; {instead}"


def _of_single_roles(names: Iterable[str]) -> Iterator[str]:
    """A sentence for each variable that only the role of a single concern would read."""
    for match in filter(None, (_OF_CONCERN.fullmatch(str(name)) for name in names)):
        concern, option = next((name for name in HEADINGS if name.startswith(match[1])), ""), match[2]
        if option in _options(concern) - {"state"}:
            goal = f"tune_{option}" if option in _options("tune") else f"tune_concerns.{concern}.{option}"
            yield f"{match[0]} is an option of the role {concern} and has no effect here: with tune say {goal}"


def misspelt(names: Iterable[str], module: str) -> Dict[str, str]:
    """Name → the option that is meant."""
    options = {role: _options(role) for role in (*_VERBS, module.rpartition(".")[2]) if _options(role)}
    known = {*_OTHERS, *(f"{role}_{option}" for role in options for option in (*options[role], "result"))}
    unknown = {}
    for name in sorted(name for name in map(str, names) if "_" in name and name not in known):
        option = _meant(name, options)
        if option:
            unknown[name] = option
    return unknown


def _meant(name: str, options: Mapping[str, FrozenSet[str]]) -> str:
    for role in options:
        if name.startswith(f"{role}_"):
            given = name[len(role) + 1 :]
            near = difflib.get_close_matches(given, options[role], 1, _NEAR)
            near = near or [option for option in sorted(options[role]) if given in _SHORT and option.startswith(given)]
            return f"{role}_{near[0]}" if near else ""
    for place in (place for place, sign in enumerate(name) if sign == "_"):
        first, rest = name[:place], name[place + 1 :]
        near = difflib.get_close_matches(first, [role for role in options if rest in options[role]], 1, _NEAR_ROLE)
        if near:
            return f"{near[0]}_{rest}"
    return ""


def unknown_type(name: Any) -> str:
    """A sentence about a size that no type of its family has; empty for a family of which nothing is known."""
    family, _dot, size = str(name or "").partition(".")
    if not size:
        return ""
    from ...module_utils._cloud.types.table import offline_types  # few runs need it

    sizes = [kind.partition(".")[2] for kind in offline_types() if kind.startswith(f"{family}.")]
    return f"instance_type: there is no {name}: {family} has {', '.join(sizes)}" if sizes and size not in sizes else ""
