# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: transparent and reserved huge pages. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.hugepages import access, reserved, transparent
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import plan_file, sysctl_d, tmpfiles

NAME = "hugepages"

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "thp": {"type": "str", "choices": ["kernel", "always", "madvise", "never"]},
    "thp_defrag": {"type": "str", "choices": ["kernel", "always", "defer", "defer+madvise", "madvise", "never"]},
    "thp_shmem": {"type": "str", "choices": ["kernel", "always", "within_size", "advise", "never", "deny", "force"]},
    "khugepaged_defrag": {"type": "str", "choices": ["kernel", "enabled", "disabled"]},
    "pages": {
        "type": "list",
        "elements": "dict",
        "options": {
            "size": {"type": "str", "required": True},
            "count": {"type": "int", "range": (0, 1 << 30)},
            "percent_of_memory": {"type": "int", "range": (0, reserved.SHARE)},
            "nodes": {"type": "str", "default": "spread"},
        },
    },
    "mount": {"type": "dict", "options": {"path": {"type": "str", "required": True}, "size": {"type": "str"}}},
    "group": {"type": "str"},
    "method": {"type": "str", "choices": ["runtime", "boot", "both"], "default": "runtime"},
    "persist": {"type": "bool", "default": True},
    "allow_unverified": {"type": "bool", "default": False},
}


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for transparent and reserved huge pages.

    Raises NearmetalError when a value is forced that the host can't take.
    """
    path, _text = tmpfiles(NAME, {})
    asked = [knob for knob in (*transparent.KNOBS, "pages", *access.KNOBS) if wanted.get(knob) is not None]
    shut: List[Finding] = [finding for knob in asked for finding in closed(NAME, knob, facts, wanted)]
    if not asked or shut:
        sysctls, _text = sysctl_d(NAME, {})
        gone = [plan_file(NAME, facts, one, None, "user") for one in (path, sysctls)]
        return joined(Plan(findings=tuple(shut)), *gone)
    chosen, lines = transparent.plan(facts, wanted)
    path, text = tmpfiles(NAME, lines)
    persisted = text if lines and wanted.get("persist") and wanted.get("method") == "runtime" else None
    files = plan_file(NAME, facts, path, persisted, _by(wanted, asked))
    opened, parameters = access.plan(facts, wanted)
    path, text = sysctl_d(NAME, parameters)
    persisted = text if parameters and wanted.get("persist") else None
    more = plan_file(NAME, facts, path, persisted, wanted.wanted_by("group"))
    return joined(chosen, reserved.plan(facts, wanted), opened, files, more, Plan(findings=_morecore(facts)))


def _morecore(facts: Facts) -> Tuple[Finding, ...]:
    """S0-33's way to put malloc on huge pages is gone since glibc 2.34."""
    pages = facts.hugepages
    if pages is None or not pages.morecore or not pages.libc_without_morecore:
        return ()
    reason = (
        f"HUGETLB_MORECORE in {' and '.join(pages.morecore)} does nothing with this glibc: 2.34 removed its hook;"
        " use GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (transparent) or =2 (reserved pages), glibc 2.35 and newer"
    )
    return (Finding(NAME, "pages", "advice", reason, reference="S0-33"),)


def _by(wanted: Wanted, asked: List[str]) -> str:
    return "user" if any(wanted.wanted_by(knob) == "user" for knob in asked) else "workload"


CONCERN = Concern(
    name=NAME,
    options=OPTIONS,
    domains=("platform", "topology", "hugepages", "sysctl", "boot", "unit", "files"),
    plan=plan,
    by_place=True,
)
