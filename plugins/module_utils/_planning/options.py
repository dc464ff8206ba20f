# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checking the options of a concern against its own spec, without Ansible. PRIVATE to the collection.

A spec has the form of an Ansible argument spec, with the `range` of a number, the `step` to which it is rounded up, how
many `numbers` a text and `entries` a list may have, whether a text may have several `lines`, and the `or_word` beside
true and false, which `for_ansible` removes. The modules validate by it before Ansible turns true into 1, and so do
`tune` and, on the host, what is stored as wanted.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .._error import NearmetalError
from .._mistakes import Mistakes
from .._words import choices, shown

Spec = Mapping[str, Mapping[str, Any]]

# Options that every concern takes.
COMMON: Spec = {
    "allow_not_ec2": {"type": "bool", "default": False},
    "owner_conflict": {"type": "str", "choices": ["refuse", "take_over"], "default": "refuse"},
    "instance_type": {"type": "str"},
}

# Options that several concerns take.
SWITCH: Mapping[str, Any] = {"type": "str", "choices": ["enabled", "disabled"]}
LAST = "last"  # of persist: the unit sets it again when the boot is over
METHOD: Mapping[str, Any] = {"type": "str", "choices": ["runtime", "boot", "both"], "default": "runtime"}
PERSIST: Mapping[str, Any] = {"type": "raw", "default": True, "or_word": LAST}
CONSENT: Mapping[str, Any] = {"type": "bool", "default": False}

# Longer values are a mistake: a list of 1,000 CPUs has 4,000 characters, and no host has 1,000 disks.
LONGEST_TEXT, LONGEST_LIST = 4096, 1000

_TRUE = ("yes", "true", "1", "y", "t", "on")
_FALSE = ("no", "false", "0", "n", "f", "off")
_WHOLE = r"-?[0-9]{1,40}"
_DECIMAL = r"-?[0-9]{1,15}(\.[0-9]{1,15})?"
_LARGEST = 1e15
_SURROGATE = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that aren't UTF-8
# U+2028 and U+2029 end a line, too.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_WITHIN_LINES = re.compile("[\n\t]")
_NAME = r"\w{1,64}"


def validate(name: str, spec: Spec, given: Any) -> Dict[str, Any]:
    """The options with their defaults filled in; null is an option left out. Raises NearmetalError for wrong ones."""
    if not isinstance(given, Mapping):
        raise NearmetalError(f"{name} must be a mapping of options, not {shown(given)}")
    mistakes, options = Mistakes(), {}
    for option in given:
        with mistakes:
            _require_option(name, spec, option)
    for option, rule in spec.items():
        with mistakes:
            value = given.get(option)
            if value is None:
                value = rule.get("default")
            if value is not None:
                options[option] = _value(f"{name}.{option}", rule, value)
            elif rule.get("required"):
                raise NearmetalError(f"{name}.{option} is required")
    mistakes.require_none()
    return options


def _require_option(name: str, spec: Spec, option: Any) -> None:
    if option not in spec:
        text = option if isinstance(option, str) and re.fullmatch(_NAME, option, re.ASCII) else shown(option)
        takes = f"{name} has {choices(sorted(spec), text)}" if spec else f"{name} has none"
        raise NearmetalError(f"{name}.{text} isn't an option; {takes}")


def each_of(name: str, given: Sequence[Any], work: Callable[[str, Any], Any]) -> List[Any]:
    """What this makes of each entry of a list. Raises NearmetalError, which names the mistakes of all of them."""
    mistakes, checked = Mistakes(), []
    for number, entry in enumerate(given):
        with mistakes:
            checked.append(work(f"{name}[{number}]", entry))
    mistakes.require_none()
    return checked


class Claims:
    """What the entries of a list option set at which place: two that differ are an error that names both."""

    def __init__(self) -> None:
        self._given: Dict[Tuple[str, str], Tuple[str, Any]] = {}

    def claim(self, entry: str, place: str, given: Mapping[str, Any]) -> None:
        """Note what `entry`, such as disks[1], sets at a place. Raises NearmetalError if an earlier entry differs."""
        for option, value in given.items():
            earlier, other = self._given.setdefault((place, option), (entry, value))
            if other != value:
                raise NearmetalError(f"{earlier} and {entry} both give {option} to {shown(place)}: make them one entry")


def for_ansible(spec: Spec) -> Dict[str, Dict[str, Any]]:
    """The spec as AnsibleModule takes it."""
    return {
        option: {
            key: for_ansible(value) if key == "options" else value
            for key, value in rule.items()
            if key not in ("range", "numbers", "step", "ports", "entries", "lines", "or_word")
        }
        for option, rule in spec.items()
    }


def _value(name: str, rule: Mapping[str, Any], value: Any) -> Any:
    kind = rule.get("type", "str")
    if kind == "list":
        return _list(name, rule, value)
    if kind == "dict":
        value = _read_mapping(value) if isinstance(value, str) else value
        if "options" in rule:
            return validate(name, rule["options"], value)
        if not isinstance(value, Mapping):
            raise NearmetalError(f"{name} must be a mapping, not {shown(value)}")
        return dict(value)
    # YAML turns on and off into booleans: a list of the choices helps more than advice about quotes.
    converted = None if "choices" in rule and isinstance(value, bool) else _scalar(name, kind, rule, value)
    if "choices" in rule and converted not in rule["choices"]:
        raise NearmetalError(f"{name} can't be {shown(value)}; choose one of {', '.join(map(str, rule['choices']))}")
    return converted


def _read_mapping(text: str) -> Any:
    """A mapping as `ansible -a` hands it over: in JSON or Python, or as key=value; what is neither stays as it is."""
    import ast
    import json
    import shlex

    with suppress(ValueError, SyntaxError):
        if text.startswith("{"):
            with suppress(ValueError):
                return json.loads(text)
            return ast.literal_eval(text)
        return dict(word.split("=", 1) for word in shlex.split(text.replace(",", " ")))
    return text


def _list(name: str, rule: Mapping[str, Any], value: Any) -> List[Any]:
    element = {"type": rule.get("elements", "str"), **{key: rule[key] for key in ("options", "choices") if key in rule}}
    if isinstance(value, str) and element["type"] == "str":
        value = [word.strip() for word in value.split(",")]  # as Ansible reads it
    if not isinstance(value, list):
        raise NearmetalError(f"{name} must be a list, not {shown(value)}: begin each of its entries with a dash")
    most = rule.get("entries", LONGEST_LIST)
    if len(value) > most:
        raise NearmetalError(f"{name} must be a list of at most {most} entries, not of {len(value)}")
    return each_of(name, value, lambda where, item: _value(where, element, item))


def _scalar(name: str, kind: str, rule: Mapping[str, Any], value: Any) -> Any:
    if kind == "bool" or "or_word" in rule:
        return value if value == rule.get("or_word") else _truth(name, value, rule.get("or_word"))
    if kind == "int":
        return _number(name, rule, value)
    if kind == "float":
        return _decimal(name, rule, value)
    if isinstance(value, bool):
        word = "true" if value else "false"
        raise NearmetalError(f"{name} must be a word, not a YAML boolean: put {word} in quotes if you mean the word")
    if isinstance(value, float):
        raise NearmetalError(f"{name} must be text, not the number {value}: put it in quotes, YAML reads 5.10 as 5.1")
    if not isinstance(value, (str, int)):
        raise NearmetalError(f"{name} must be a word, not {shown(value)}")
    text = str(value)
    if len(text) > LONGEST_TEXT:
        raise NearmetalError(f"{name} must be text of at most {LONGEST_TEXT} characters, not of {len(text)}")
    if _SURROGATE.search(text):
        raise NearmetalError(f"{name} must be text, not bytes that are no UTF-8: {shown(text)}")
    if "choices" not in rule:
        text = _without_control(name, rule, text)
    return text


def _without_control(name: str, rule: Mapping[str, Any], text: str) -> str:
    """The text, which ends up in files, reports and terminals. The kernel shows numbers with tabs between them."""
    if "numbers" in rule:
        text = text.replace("\t", " ")
    if _CONTROL.search(_WITHIN_LINES.sub("", text) if rule.get("lines") else text):
        form = "text" if rule.get("lines") else "one line"
        raise NearmetalError(f"{name} must be {form} without control characters, not {shown(text)}")
    return text


def _truth(name: str, value: Any, word: Optional[str] = None) -> bool:
    text = str(value).lower() if isinstance(value, (bool, int, str)) else ""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise NearmetalError(f"{name} is true{f', false or {word}' if word else ' or false'}, not {shown(value)}")


def _number(name: str, rule: Mapping[str, Any], value: Any) -> int:
    """A whole number as people write it, not 4_096 and not true; 4096.0 is what a template's division makes."""
    number = None
    if isinstance(value, str) and re.fullmatch(_WHOLE, value.strip(), re.ASCII):
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    low, high = rule.get("range", (None, None))
    if number is None or (low is not None and not low <= number <= high):
        within = f" from {low} to {high}" if low is not None else ""
        raise NearmetalError(f"{name} must be a whole number{within}, not {shown(value)}")
    return number


def _decimal(name: str, rule: Mapping[str, Any], value: Any) -> float:
    """A number as people write it; without a range its caller checks how large it may be."""
    low, high = rule.get("range", (-_LARGEST, _LARGEST))
    is_text = isinstance(value, str) and re.fullmatch(_DECIMAL, value.strip(), re.ASCII)
    number = float(value) if is_text else value
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or not low <= number <= high:  # NaN is within no range
        within = f" from {low} to {high}" if "range" in rule else ", such as 2.5"
        raise NearmetalError(f"{name} must be a number{within}, not {shown(value)}")
    return float(number)
