# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates on options: a role that swallows a variable, or forgets an option, is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.gates.__main__ import GATES
from tests.unit.dev.test_gates import copy_with

MODULE = """DOCUMENTATION = '''
options:
  a: {type: str, choices: [x, y], default: x}
extends_documentation_fragment:
  - nearmetal.ec2.common
  - nearmetal.ec2.common.group
'''
from somewhere import CONCERN
"""
FRAGMENTS = """class ModuleDocFragment:
    DOCUMENTATION = '''
options:
  b: {type: int}
'''
    GROUP = '''
attributes:
  action_group: {membership: [nearmetal.ec2.tuning]}
'''
"""
TASKS = """- name: Do
  nearmetal.ec2.c:
    a: "{{ c_a }}"
    b: "{{ c_b | default(omit) }}"
"""
SPECS = """argument_specs:
  main:
    options:
      c_a: {type: str, choices: [x, y], default: x}
      c_b: {type: int}
"""
README = "| variable | default | meaning |\n|---|---|---|\n| `c_a` | `x` | what |\n| `c_b` | unset | what |\n"
RUNTIME = "action_groups: {tuning: [c]}\n"
WHOLE = {
    "plugins/modules/c.py": MODULE,
    "plugins/doc_fragments/common.py": FRAGMENTS,
    "roles/c/tasks/main.yml": TASKS,
    "roles/c/meta/argument_specs.yml": SPECS,
    "roles/c/README.md": README,
    "meta/runtime.yml": RUNTIME,
}
NAMES = ("roles-pass-options", "role-variables-arrive", "readmes-list-variables", "action-groups-are-whole")

# gate, file, what is there, what breaks the rule, what the gate says
CASES = [
    ("roles-pass-options", "roles/c/tasks/main.yml", "    b:", "    z:", "c takes b, and nothing is passed"),
    ("roles-pass-options", "roles/c/tasks/main.yml", "    b:", "    z:", "z is passed, and c takes none"),
    ("roles-pass-options", "roles/c/tasks/main.yml", "{{ c_a }}", "x", "a is passed without c_a"),
    ("role-variables-arrive", "roles/c/tasks/main.yml", "{{ c_a }}", "x", "c_a is used by no task"),
    ("role-variables-arrive", "roles/c/meta/argument_specs.yml", "type: int", "type: str", "has the type 'str'"),
    ("role-variables-arrive", "roles/c/meta/argument_specs.yml", "[x, y]", "[x]", "has the choices ['x']"),
    ("readmes-list-variables", "roles/c/README.md", "| `c_b` | unset | what |\n", "", "no row for c_b"),
    ("readmes-list-variables", "roles/c/README.md", "`c_b`", "`c_c`", "c_c is no variable of the role"),
    ("readmes-list-variables", "roles/c/README.md", "`x`", "`y`", "c_a has the default 'x', not `y`"),
    ("action-groups-are-whole", "meta/runtime.yml", "[c]", "[]", "tuning lacks c"),
    ("action-groups-are-whole", "meta/runtime.yml", "[c]", "[c, d]", "tuning has d"),
    ("action-groups-are-whole", "plugins/modules/c.py", "  - nearmetal.ec2.common.group\n", "", "isn't in the group"),
]


def test_a_role_that_hands_on_everything_passes(tmp_path: Path) -> None:
    copy = copy_with(tmp_path, **WHOLE)
    assert [problem for name in NAMES for problem in GATES[name](copy)] == []


@pytest.mark.parametrize(("gate", "name", "there", "broken", "says"), CASES)
def test_an_option_that_is_lost_is_named(
    tmp_path: Path, gate: str, name: str, there: str, broken: str, says: str
) -> None:
    copy = copy_with(tmp_path, **{**WHOLE, name: WHOLE[name].replace(there, broken)})
    assert says in "\n".join(GATES[gate](copy))
