# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of roles that a play comes to only later, checked before its first host is changed. PRIVATE."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Mapping

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ...module_utils._engine.requests import tune_requests
from ...module_utils._mistakes import Mistakes
from ...module_utils._requests.combined import require_known
from ...module_utils._words import span
from . import variables

Check = Callable[[Mapping[str, Any]], None]  # of a role's options; raises NearmetalError


def mistakes(checks: Mapping[str, Check], hosts: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """What is wrong with the variables of roles, each with its check, and on which hosts where it isn't so on all."""
    found: Dict[str, List[str]] = {}
    said: Dict[str, List[str]] = {}
    for host, own in hosts.items():
        given = {role: _given(role, own) for role in checks}
        key = repr(given)
        if key not in said:
            said[key] = [sentence for role in checks for sentence in _of_role(role, checks[role], given[role])]
        for sentence in said[key]:
            found.setdefault(sentence, []).append(host)
    return [sentence if len(names) == len(hosts) else f"{span(names)}: {sentence}" for sentence, names in found.items()]


def of_tune(options: Mapping[str, Any]) -> None:
    """Raise NearmetalError for options of tune that no host can do."""
    names = [name for name in options.get("workload") or () if name != "auto"] or ["base"]
    found = Mistakes()
    found.of(require_known, names)
    more = {name: options[name] for name in ("exclude", "waivers", "workload_concerns", "only") if options.get(name)}
    found.of(partial(tune_requests, ["base"] if found.found else names, options.get("concerns") or {}, {}, **more))
    found.require_none()


def _given(role: str, own: Mapping[str, Any]) -> Dict[str, Any]:
    """The role's variables of a host, but for a template that only the host's own facts can fill."""
    given = {}
    for name in (name for name in variables.spec_of(role) if name in own):
        try:
            given[name] = own[name]
            repr(given[name])
        except AnsibleError:
            given.pop(name, None)
    return given


def _of_role(role: str, require: Check, given: Mapping[str, Any]) -> List[str]:
    result = ArgumentSpecValidator(dict(variables.spec_of(role))).validate(dict(given))
    if result.error_messages:
        return [variables.of_a_variable(message) for message in result.error_messages]
    found = Mistakes()
    found.of(require, {name[len(role) + 1 :]: result.validated_parameters[name] for name in given})
    return [variables.of_options(sentence, role) for sentence in found.found]
