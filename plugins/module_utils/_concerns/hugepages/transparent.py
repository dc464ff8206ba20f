# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: transparent huge pages. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.hugepages import FOLDERS, HugepageFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import boot_argument

NAME = "hugepages"
REFERENCE = "S0-31"

# Option → the file in the folder.
KNOBS = {
    "thp": "enabled",
    "thp_defrag": "defrag",
    "thp_shmem": "shmem_enabled",
    "khugepaged_defrag": "khugepaged/defrag",
}
REASONS = {
    "never": "no process waits for a huge page to be found, and none stays large after a fork",
    "madvise": "only who asks for huge pages gets them",
    "always": "large heaps need fewer address translations",
}
# A kernel of 64 KiB pages (RHEL 8 on arm64).
HUGE = 512 * 1024 * 1024


def plan(facts: Facts, wanted: Wanted) -> Tuple[Plan, Dict[str, str]]:
    """The plan for what was asked, and what makes it last: kernel path → value.

    Raises NearmetalError when a word is forced that this kernel doesn't offer.
    """
    pages = facts.hugepages
    plans: List[Plan] = []
    lines: Dict[str, str] = {}
    at_boot = wanted.get("method") != "runtime" and wanted.get("thp") is not None
    for knob, name in KNOBS.items():
        asked = wanted.get(knob)
        if asked is None or (knob == "thp" and wanted.get("method") == "boot"):
            continue
        goal = _by_itself(pages, knob) if asked == "kernel" else asked
        if goal is None:
            reason = "what this kernel was built with can't be read here; a boot without our settings brings it back"
            plans.append(Plan(findings=(_finding(knob, "unknown", reason, getattr(pages, knob), asked),)))
            continue
        one = _one(pages, wanted, knob, goal)
        if pages is not None and asked != "kernel" and one.findings[0].status in ("ok", "would_change"):
            lines[f"{pages.folder}/{name}"] = _word(pages, knob, asked)
        plans.append(one)
    if at_boot:
        asked = wanted.get("thp")
        stop = _stop(pages, wanted, "thp", asked) if asked != "kernel" else None
        if stop is None:
            plans.append(_argument(facts, wanted))
        elif wanted.get("method") == "boot":  # with both it is among the plans already
            plans.append(Plan(findings=(stop,)))
    return joined(*plans), lines


def _by_itself(pages: Optional[HugepageFacts], knob: str) -> Optional[str]:
    """What the kernel chooses by itself; on one without the knob, any word."""
    if pages is None or getattr(pages, knob) is None:
        return "never"
    return pages.kernel_choice.get(knob)


def _word(pages: HugepageFacts, knob: str, asked: str) -> str:
    if knob != "khugepaged_defrag":
        return asked
    words = ("yes", "no") if pages.folder == FOLDERS[1] else ("1", "0")
    return words[asked != "enabled"]


def _stop(pages: Optional[HugepageFacts], wanted: Wanted, knob: str, asked: str) -> Optional[Finding]:
    """Why the kernel can't have the word, or shouldn't, now or at boot.

    Raises NearmetalError when the word is forced and this kernel doesn't offer it.
    """
    now: Optional[str] = getattr(pages, knob) if pages is not None else None
    if pages is None or now is None:
        return _finding(knob, "not_applicable", "this kernel has no such setting", None, asked)
    offered = getattr(pages, f"{knob}_offered", ("enabled", "disabled"))
    if asked not in offered:
        sentence = f"hugepages.{knob}: this kernel doesn't offer {asked}; it offers {' '.join(offered)}"
        if wanted.wanted_by(knob) == "workload":
            return _finding(knob, "not_applicable", sentence, now, asked)
        raise NearmetalError(sentence)
    large = pages.thp_size is not None and pages.thp_size >= HUGE and asked == "always"
    if large and now != asked and not wanted.get("allow_unverified"):
        reason = (
            "this kernel's huge page is 512 MiB (it has pages of 64 KiB): small processes would grow by that;"
            " allow_unverified: true does it"
        )
        return _finding(knob, "refused", reason, now, asked)
    return None


def _one(pages: Optional[HugepageFacts], wanted: Wanted, knob: str, asked: str) -> Plan:
    stop = _stop(pages, wanted, knob, asked)
    if stop is not None:
        return Plan(findings=(stop,))
    now = getattr(pages, knob)
    reason = REASONS.get(asked, "asked for by name")
    if now == asked:
        return Plan(findings=(_finding(knob, "ok", reason, now, asked),))
    action = Action(
        concern=NAME,
        knob=knob,
        what=f"hugepages.{knob}",
        before=now,
        after=asked,
        wanted_by=wanted.wanted_by(knob),
        reason=reason,
        reference=REFERENCE,
    )
    return Plan((action,), (_finding(knob, "would_change", reason, now, asked),))


def _argument(facts: Facts, wanted: Wanted) -> Plan:
    asked = wanted.get("thp")
    knob = boot_argument(NAME, "method", "transparent_hugepage", REFERENCE, option="thp")
    text = f"transparent_hugepage={asked}" if asked != "kernel" else None
    reason = "services that start before anything is written to /sys have it too"
    return plan_argument(facts, wanted, knob, text, reason)


def _finding(knob: str, status: str, reason: str, now: Optional[str], asked: str) -> Finding:
    return Finding(NAME, knob, status, reason, now=now, wanted=asked, reference=REFERENCE)
