# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checking the options of a concern against its own spec, without Ansible. PRIVATE to the collection.

The spec has the form of an Ansible argument spec, so that a state module hands
the same data to Ansible. Here it serves `tune` and, on the host, stored wanted.
`raw` is text that Ansible must not make of a number before it can be refused here.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

# Options that every concern takes.
COMMON: Mapping[str, Mapping[str, Any]] = {
    "allow_not_ec2": {"type": "bool", "default": False},
    "owner_conflict": {"type": "str", "choices": ["refuse", "take_over"], "default": "refuse"},
}

_TRUE = ("yes", "true", "1", "y", "t")
_FALSE = ("no", "false", "0", "n", "f")


def validate(name: str, spec: Mapping[str, Mapping[str, Any]], given: Any) -> Dict[str, Any]:
    """The options with their defaults filled in; NearmetalError names the option that is wrong."""
    if not isinstance(given, Mapping):
        raise NearmetalError(f"{name}: its options are a mapping, not {given!r}")
    for option in given:
        if option not in spec:
            raise NearmetalError(f"{name}.{option} is no option; {name} has {', '.join(sorted(spec))}")
    options = {}
    for option, rule in spec.items():
        value = given.get(option, rule.get("default"))
        if value is None:
            if rule.get("required"):
                raise NearmetalError(f"{name}.{option} is required")
            continue
        options[option] = _value(f"{name}.{option}", rule, value)
    return options


def _value(name: str, rule: Mapping[str, Any], value: Any) -> Any:
    kind = rule.get("type", "str")
    if kind == "list":
        items = value if isinstance(value, list) else [value]
        element = {
            "type": rule.get("elements", "str"),
            **{key: rule[key] for key in ("options", "choices") if key in rule},
        }
        return [_value(f"{name}[{number}]", element, item) for number, item in enumerate(items)]
    if kind == "dict":
        return validate(name, rule["options"], value)
    converted = _scalar(name, kind, value)
    if "choices" in rule and converted not in rule["choices"]:
        raise NearmetalError(f"{name} can't be {value!r}; choose one of {', '.join(map(str, rule['choices']))}")
    return converted


def _scalar(name: str, kind: str, value: Any) -> Any:
    if kind == "bool":
        text = str(value).lower()
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        raise NearmetalError(f"{name} is true or false, not {value!r}")
    if kind == "int":
        try:
            if not isinstance(value, bool):
                return int(value)
        except (TypeError, ValueError):
            pass
        raise NearmetalError(f"{name} is a whole number, not {value!r}")
    if isinstance(value, bool):
        raise NearmetalError(f"{name} is a word, not a YAML boolean: put {value!r} in quotes if you mean the word")
    if isinstance(value, float):
        raise NearmetalError(f"{name} is text, not the number {value}: put it in quotes, YAML reads 5.10 as 5.1")
    if isinstance(value, (str, int)):
        return str(value)
    raise NearmetalError(f"{name} is a word, not {value!r}")
