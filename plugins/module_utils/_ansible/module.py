# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge to Ansible: options in, the result contract out. PRIVATE to the collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Mapping, NoReturn, Optional

from .._agent.answer import answer
from .._engine.defaults import wanted_or_base
from .._engine.planning import Request, Restore
from .._engine.result import contract
from .._engine.run import Ask, Conditions, plan_run, run
from .._engine.session import Known, Origin, Outcome
from .._error import NearmetalError
from .._facts.facts import observe
from .._facts.host import Host
from .._facts.json_data import json_data
from .._host.host import WritableHost
from .._plan import Wanted
from .._planning.concern import Concern
from .._planning.options import COMMON, Spec
from .edge import HostModule

if TYPE_CHECKING:
    # Never run: this makes Ansible send the command and all that it needs, of which a run builds the agent.
    from .._agent import command

    COMMAND = command.main

STATE: Spec = {
    "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
    "strict": {"type": "bool", "default": False},
}


def state_module(concern: Concern, host: Optional[WritableHost] = None) -> None:
    """The whole main() of a state module; `host` is another machine in tests."""
    module = HostModule(concern.name, {**STATE, **COMMON, **concern.options})
    options = dict(module.options)
    strict, state = options.pop("strict"), options.pop("state")

    def ask(_known: Known) -> List[Request]:
        return [wanted_or_base(concern, options) if state == "present" else Restore(concern.name, concern)]

    conditions = Conditions(origin=Origin(f"module {concern.name}"), strict=strict)
    run_and_exit(module, host or WritableHost(), ask, conditions)


def check_module(concern: Concern, host: Optional[Host] = None) -> None:
    """The whole main() of a module that only looks: it reads no journal, so it needs no root."""
    spec = {**COMMON, "strict": STATE["strict"], **concern.options}  # what the action group sets, for all its modules
    module = HostModule(concern.name, spec)
    try:
        facts = observe(host or Host(), ("platform", *concern.domains))
        plan = concern.plan(facts, Wanted(module.options))
    except NearmetalError as error:
        module.fail_json(msg=str(error))
    result = contract([Outcome(concern.name, plan)])
    findings = [finding for finding in plan.findings if finding.status != "ok"] or list(plan.findings)
    result["msg"] = f"{concern.name}: {findings[0].reason}"
    result["platform"] = json_data(facts.platform)
    module.exit_json(**result)


def run_and_exit(module: HostModule, host: WritableHost, ask: Ask, conditions: Conditions) -> NoReturn:
    """Run what is asked and leave with its result."""
    leave(module, answer(plan_run if module.check_mode else run, host, ask, conditions))


def leave(module: HostModule, result: Mapping[str, Any]) -> NoReturn:
    """End with this result, by fail_json when it is `failed`."""
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
