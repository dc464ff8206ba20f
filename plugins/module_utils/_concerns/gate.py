# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every concern asks first: may this host be tuned at all? Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Wanted


def host_class(facts: Facts, wanted: Wanted) -> Optional[str]:
    """The host's class; with `allow_not_ec2` a host outside EC2 counts as what its hypervisor flag says.

    None when nothing is known of the platform.
    """
    platform = facts.platform
    if platform is None:
        return None
    if platform.host_class == "not_ec2" and wanted.get("allow_not_ec2"):
        return "metal" if platform.hypervisor_flag is False else "nitro"
    return platform.host_class


def closed(concern: str, knob: str, facts: Facts, wanted: Wanted) -> Tuple[Finding, ...]:
    """The finding that ends planning on a host that isn't ours to tune; empty elsewhere."""
    reason = _stranger(facts, wanted, "tunes it")
    return (Finding(concern, knob, "refused", reason, reference="docs/host_classes.md"),) if reason else ()


def beside_the_point(concern: str, knob: str, facts: Facts, wanted: Wanted) -> Tuple[Finding, ...]:
    """The same for a concern that only looks: that does no harm, so nothing is refused."""
    reason = _stranger(facts, wanted, "looks")
    status = "unknown" if host_class(facts, wanted) is None else "not_applicable"
    return (Finding(concern, knob, status, reason, reference="docs/host_classes.md"),) if reason else ()


def _stranger(facts: Facts, wanted: Wanted, does: str) -> str:
    """Why this host isn't ours, and what a concern `does` when told to go on; empty when it is ours."""
    kind = host_class(facts, wanted)
    if kind == "container":
        return "this is a container: its kernel belongs to the host; run on the host"
    if kind == "not_ec2":
        return f"this host doesn't look like EC2; allow_not_ec2: true {does} all the same"
    if kind is None:
        return "the platform could not be observed: /sys or /proc is missing"
    return ""
