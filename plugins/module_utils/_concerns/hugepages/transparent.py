# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: transparent huge pages. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional

from ..._facts.facts import Facts
from ..._facts.hugepages import HugepageFacts
from ..._facts.sys_files import (
    KHUGEPAGED_DEFRAG,
    MAX_PTES_NONE,
    THP,
    THP_DEFRAG,
    THP_FOLDERS,
    THP_SHMEM,
    SysFile,
    thp_of_size,
)
from ..._plan import Plan, Wanted, joined
from ..._planning.boot_argument import plan_argument
from ..._planning.knob import Knob, boot_argument
from .reserved import size_of

NAME = "hugepages"
REFERENCE = "AWS, 2017"


def _knob(file: SysFile, words: str, **more: Any) -> Knob:
    spec = {"type": "str", "choices": ["kernel", *words.split()]}
    return Knob(NAME, file.name, file.lever, REFERENCE, spec, at_boot=file.at_boot, kubelet=True, **more)


_OF_THP = (
    "vm.transparent_hugepages",
    "vm.transparent_hugepage",
    f"sysfs.{THP_FOLDERS[0]}/enabled",
    "cmdline.transparent_hugepage",
)
_OF_DEFRAG = ("vm.transparent_hugepage.defrag", f"sysfs.{THP_FOLDERS[0]}/defrag")
# What SAP asks for, which differs by distribution: the first versions that are to have madvise; never before them.
BY_SAP = "sap"
_SAP_MADVISE = {"rhel": (9, 2), "sles": (15, 5), "sles_sap": (15, 5)}
_NEW: Mapping[str, Any] = {"comparable": True, "takes_effect": "new_memory"}
_ENABLED = _knob(THP, "always madvise never sap", tuned=_OF_THP, by_unit=(BY_SAP,), **_NEW)
_WORDS = (
    _ENABLED,
    _knob(THP_DEFRAG, "always defer defer+madvise madvise never", tuned=_OF_DEFRAG, **_NEW),
    _knob(
        THP_SHMEM,
        "always within_size advise never deny force",
        tuned=(f"sysfs.{THP_FOLDERS[0]}/shmem_enabled",),
        **_NEW,
    ),
    _knob(
        KHUGEPAGED_DEFRAG,
        "enabled disabled",
        tuned=(f"sysfs.{THP_FOLDERS[0]}/khugepaged/defrag",),
        takes_effect="slowly",
    ),
)
_EMPTY = Knob(
    NAME,
    MAX_PTES_NONE.name,
    MAX_PTES_NONE.lever,
    "Linux kernel, transhuge",
    {"type": "int", "range": (0, 8191)},
    at_boot=MAX_PTES_NONE.at_boot,
    takes_effect="slowly",
    kubelet=True,
)
_SIZES = Knob(
    NAME,
    "thp_sizes",
    "hugepages.thp_sizes",
    "Graviton guide; Linux kernel, transhuge",
    {
        "type": "list",
        "elements": "dict",
        "options": {
            "size": {"type": "str", "required": True},
            "thp": {"type": "str", "required": True, "choices": ["always", "inherit", "madvise", "never"]},
        },
    },
    kubelet=True,
    **_NEW,
)
# A knob of its own, so that a run with another method takes it back.
_ARGUMENT = boot_argument(NAME, "method", "transparent_hugepage", REFERENCE, option="thp")
KNOBS = (*_WORDS, _EMPTY, _SIZES, _ARGUMENT)
REASONS = {
    "never": "no process waits for a huge page to be made; before Linux 5.8 a write after a fork copied it whole",
    "madvise": "only programs that ask for huge pages get them",
    "always": "large heaps need fewer address translations",
}
# Bytes: the huge page of a kernel with pages of 64 KiB (RHEL 8 on arm64).
HUGE = 512 * 1024 * 1024


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for what is wanted. Raises NearmetalError when a word is forced that this kernel doesn't offer."""
    pages, method = facts.hugepages, wanted.get("method")
    plans = []
    thp = _sap_choice(facts) if _ENABLED.value(wanted) == BY_SAP else _ENABLED.value(wanted)
    for knob in _WORDS:
        requested = thp if knob is _ENABLED else knob.value(wanted)
        if requested is not None and not (knob is _ENABLED and method == "boot"):
            plans.append(_word(pages, wanted, knob, requested))
    if _EMPTY.value(wanted) is not None:
        plans.append(_empty(pages, wanted))
    plans += [_of_size(pages, wanted, entry) for entry in _SIZES.value(wanted) or ()]
    if method != "runtime" and thp is not None:
        plans.append(_at_boot(facts, wanted, thp))
    if thp is None and _ENABLED.value(wanted) is not None:
        sentence = (
            "hugepages.thp: sap is for RHEL and SLES, on which SAP supports HANA, and this host's /etc/os-release names"
            " another distribution or no version; always, madvise and never are for any"
        )
        plans.append(_ENABLED.impossible(wanted, sentence, pages.thp))
    return joined(*plans)


def _empty(pages: HugepageFacts, wanted: Wanted) -> Plan:
    """The plan for how much unused memory khugepaged may add to a process."""
    goal, now = str(_EMPTY.value(wanted)), pages.max_ptes_none
    if now is None:
        return _EMPTY.says("not_applicable", "this kernel has no such setting", None, goal)
    # A huge page has as many small ones as a page has pointers of 8 bytes: 512 of 4 KiB, 8192 of 64 KiB.
    most = 8191 if pages.thp_size is not None and pages.thp_size >= HUGE else 511
    if int(goal) > most:
        sentence = f"hugepages.max_ptes_none: of a huge page's {most + 1} small ones at most {most} may be unused"
        return _EMPTY.impossible(wanted, sentence, now, goal)
    reason = "how many small pages of a new huge one may be memory that the process doesn't use"
    return _EMPTY.change(wanted, now, goal, reason)


def _of_size(pages: HugepageFacts, wanted: Wanted, entry: Mapping[str, str]) -> Plan:
    """The plan for who gets huge pages of one smaller size. Raises NearmetalError for a size that the kernel lacks."""
    sizes, size, goal = pages.thp_sizes, size_of(entry["size"]), entry["thp"]
    knob = _SIZES.at(size)._replace(at_boot=thp_of_size(size).at_boot)
    if not sizes:
        return knob.says("not_applicable", "this kernel has one size of transparent huge pages (Linux 6.8 has more)")
    if size not in sizes:
        sentence = f"hugepages.thp_sizes: this kernel has {' '.join(sizes)}, not {entry['size']}; thp is for whole ones"
        return knob.impossible(wanted, sentence, None, goal)
    reason = f"who gets huge pages of {size}, which are found more often than whole ones, and waste less"
    return knob.change(wanted, sizes[size], goal, reason)


def _sap_choice(facts: Facts) -> Optional[str]:
    """What SAP asks for on this distribution and version; None for one on which it doesn't support HANA."""
    first = _SAP_MADVISE.get(facts.platform.distribution or "")
    version = re.fullmatch(r"([0-9]{1,3})(?:\.([0-9]{1,3}))?", facts.platform.distribution_version or "")
    if first is None or version is None:
        return None
    return "madvise" if (int(version[1]), int(version[2] or 0)) >= first else "never"


def _refusal(pages: HugepageFacts, wanted: Wanted, knob: Knob, word: str) -> Optional[Plan]:
    """The findings for a word that the kernel can't or shouldn't have, now or at boot; None for any other word.

    Raises NearmetalError when the word is forced and this kernel doesn't offer it.
    """
    now: Optional[str] = getattr(pages, knob.name)
    if now is None:
        return knob.says("not_applicable", "this kernel has no such setting", None, word)
    offered = pages.offered.get(knob.name, ("enabled", "disabled"))
    if word not in offered:
        return knob.not_offered(wanted, "kernel", word, offered, now)
    large = pages.thp_size is not None and pages.thp_size >= HUGE and word == "always"
    if large and now != word and not wanted.get("allow_unverified"):
        reason = (
            "this kernel's huge page is 512 MiB (it has pages of 64 KiB): small processes would grow by"
            " as much; allow_unverified: true sets it anyway"
        )
        return knob.says("refused", reason, now, word)
    return None


def _word(pages: HugepageFacts, wanted: Wanted, knob: Knob, requested: str) -> Plan:
    """The plan for one file. `kernel` is the kernel's own choice, or any word where the kernel lacks the setting."""
    now: Optional[str] = getattr(pages, knob.name)
    by_kernel = pages.kernel_choice.get(knob.name) if now is not None else "never"
    goal = by_kernel if requested == "kernel" else requested
    if goal is None:
        reason = (
            "the value that this kernel was built with can't be read on this host; a boot without"
            " nearmetal's settings restores it"
        )
        return knob.says("unknown", reason, now, requested)
    refusal = _refusal(pages, wanted, knob, goal)
    if refusal is not None:
        return refusal
    change = knob.change(wanted, now, goal, REASONS.get(goal, "requested by name"))
    in_folder = wanted.get("method") == "runtime" and f"{pages.folder}/"
    lines = {path: word for path, word in change.at_boot.items() if in_folder and path.startswith(in_folder)}
    return change._replace(at_boot=lines)


def _at_boot(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    refusal = _refusal(facts.hugepages, wanted, _ENABLED, requested) if requested != "kernel" else None
    if refusal is not None:
        # With method: both the plan for the running kernel has the same refusal.
        return refusal if wanted.get("method") == "boot" else Plan()
    text = f"transparent_hugepage={requested}" if requested != "kernel" else None
    reason = "services that start before /sys is written have this value too"
    return plan_argument(facts, wanted, _ARGUMENT, text, reason)
