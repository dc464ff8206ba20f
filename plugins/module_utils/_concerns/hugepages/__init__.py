# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: transparent and reserved huge pages. Pure. PRIVATE to the collection."""

from __future__ import annotations

from ..._facts.facts import Facts
from ..._plan import Plan, Wanted
from ..._planning.native import sysctl_d, tmpfiles
from ..._planning.options import CONSENT, METHOD, PERSIST
from ..._planning.skeleton import tuning
from . import access, reserved, transparent

NAME = "hugepages"
KNOBS = (*transparent.KNOBS, *reserved.KNOBS, *access.KNOBS)


def _morecore(facts: Facts, _wanted: Wanted) -> Plan:
    """Advice about HUGETLB_MORECORE, by which AWS's talk of 2017 put malloc on huge pages."""
    pages = facts.hugepages
    if not pages.morecore or not pages.libc_without_morecore:
        return Plan()
    reason = (
        f"HUGETLB_MORECORE in {' and '.join(pages.morecore)} does nothing with this glibc: 2.34"
        " removed its hook; use GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (transparent) or =2 (reserved"
        " pages), with glibc 2.35 or newer"
    )
    return reserved.PAGES.says("advice", reason)


CONCERN = tuning(
    NAME,
    tmpfiles,
    sysctl_d,
    knobs=KNOBS,
    manner={"method": METHOD, "persist": PERSIST, "allow_unverified": CONSENT},
    domains=("platform", "topology", "hugepages", "sysctl", "boot", "unit", "files"),
    decide=[transparent.plan, reserved.plan, access.plan, _morecore],
    by_place=True,
)
