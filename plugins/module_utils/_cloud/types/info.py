# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the module instance_type_info. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ..._error import NearmetalError
from ..._plan import Finding
from ..accounts import deadline
from ..api import Cloud
from .data import AS_OF
from .name import parse_instance_type
from .table import offline_types


def answer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result: facts per type, and a finding per unknown type."""
    table = offline_types()
    names = list(dict.fromkeys(options["instance_types"] or table))
    parts = {name: parse_instance_type(name).as_dict() for name in names}
    known, trouble = {name: table[name] for name in names if name in table}, ""
    if options["source"] == "api":
        with deadline(options["timeout"]):
            known, trouble = Cloud(options).types(names)
        if trouble:
            raise NearmetalError(f"{trouble}. The table of the collection needs no permission: set source: table")
    types = {name: {**known[name].as_dict(), "name": parts[name]} for name in names if name in known}
    findings = []
    for name in names:
        if name not in known:
            types[name] = {"instance_type": name, "source": "name", "name": parts[name]}
            reason = f"{name} is not in the table of {AS_OF}: only its name is known" + (
                "" if options["source"] == "api" else "; set source: api to ask AWS"
            )
            findings.append(Finding("instance_type_info", "instance_types", "unknown", reason, where=name).as_dict())
    return {
        "changed": False,
        "msg": f"instance_type_info: {len(known)} of {len(names)} types known",
        "instance_types": types,
        "findings": findings,
        "table_as_of": AS_OF,
    }
