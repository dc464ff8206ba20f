# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter having_hosts; its documentation is in having_hosts.yml."""

from __future__ import annotations

import difflib
import re
import sys
from typing import Any, Callable, NoReturn

from ansible import context
from ansible.plugins.loader import lookup_loader
from jinja2 import pass_context

# difflib's ratio: `traget` and `Target` have 0.83; and what begins with a role's name.
_NEAR = 0.8
_ROLE = r"(?:audit|benchmark|profile|prove|restore|rollout|tune)_"
_TARGET = re.compile(rf"{_ROLE}(?:hosts?|targets?)|(?!benchmark){_ROLE}limit|hosts?|limit")
_CHECK = re.compile(rf"(?:{_ROLE})?(?:check|check_mode|dry_?run)")
_OF_ANSIBLE = 4  # the exit status of a play that Ansible can't begin
_LISTING = ("syntax", "listhosts", "listtasks", "listtags")


@pass_context
def require_hosts(variables: Any, pattern: Any) -> Any:
    """The pattern as it is; the run ends if no host matches it, or if its variable is misspelt."""
    if any(context.CLIARGS.get(option) for option in _LISTING):
        return pattern
    given = variables.get_all()  # without those of hosts, which choose no hosts
    nearly = [
        name for name in given if _TARGET.fullmatch(name) or difflib.get_close_matches(name, ["target"], 1, _NEAR)
    ]
    for name in filter(_CHECK.fullmatch, given):
        _refuse(f"the variable {name} has no effect: is --check meant? Without it hosts are changed")
    if "target" not in given and nearly:
        _refuse(f"the variable {nearly[0]} chooses no hosts: is target meant? Without it all are taken")
    groups = variables.get("groups") or {}
    known = lookup_loader.get("ansible.builtin.inventory_hostnames")
    terms = pattern if isinstance(pattern, list) else [pattern]
    if not known.run(terms, variables={"groups": groups}):
        if not groups.get("all"):
            _refuse("the inventory has no hosts: name one with -i, or as inventory in ansible.cfg")
        near = difflib.get_close_matches(str(pattern), [*groups, *groups["all"]], 1)
        hint = f"is {near[0]} meant?" if near else "check target, and the inventory"
        _refuse(f"no host of the inventory matches {pattern}: {hint}")
    return pattern


def _refuse(sentence: str) -> NoReturn:
    """End the run with this sentence: Ansible puts four lines about the filter around what a filter raises."""
    sys.stderr.write(f"[ERROR]: {sentence}\n")  # pylint of ansible-test can't follow Ansible's Display
    raise SystemExit(_OF_ANSIBLE)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"having_hosts": require_hosts}
