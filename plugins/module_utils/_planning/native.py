# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How values survive a reboot: literal ones in our files, all others by the unit. Pure. PRIVATE to the collection."""

from __future__ import annotations

import posixpath
from typing import Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.native_files import MARK
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning import unit

# Folder → who reads it, and what that does with our file.
_READERS: Mapping[str, Tuple[str, str]] = {
    "/etc/tmpfiles.d": ("tmpfiles.d(5)", "systemd-tmpfiles writes it"),
    "/etc/sysctl.d": ("sysctl.d(5)", "systemd-sysctl writes it"),
    "/etc/udev/rules.d": ("udev(7)", "udev writes it for each disk that appears, and for all of them"),
}


def tmpfiles(concern: str, values: Mapping[str, str]) -> Tuple[str, str]:
    """Path and text of a tmpfiles.d file that writes kernel path → value at each boot.

    `w!` is written at boot only: a package's `systemd-tmpfiles --create` in
    between doesn't undo what somebody sets at run time.
    """
    lines = [f"{MARK} (concern {concern}): restore with state: restored, don't edit"]
    lines += [f"w! {path} - - - - {value}" for path, value in values.items()]
    return f"/etc/tmpfiles.d/nearmetal-{concern}.conf", "\n".join(lines) + "\n"


def sysctl_d(concern: str, values: Mapping[str, str]) -> Tuple[str, str]:
    """Path and text of a sysctl.d file that sets kernel parameter → value at each boot, after the distribution's."""
    lines = [f"{MARK} (concern {concern}): restore with state: restored, don't edit"]
    lines += [f"{key} = {value}" for key, value in values.items()]
    return f"/etc/sysctl.d/99-nearmetal-{concern}.conf", "\n".join(lines) + "\n"


def udev_rules(concern: str, rules: Sequence[str]) -> Tuple[str, str]:
    """Path and text of udev rules, which sort before those of the unit: it plans on what they set."""
    head = f"{MARK} (concern {concern}): restore with state: restored, don't edit"
    return f"/etc/udev/rules.d/90-nearmetal-{concern}.rules", "\n".join((head, *rules)) + "\n"


def plan_file(concern: str, facts: Facts, path: str, text: Optional[str], wanted_by: str) -> Plan:
    """Make the file `path` hold `text`, or (None) not exist."""
    present = (facts.files or {}).get(path)
    reference, tool = _READERS.get(posixpath.dirname(path), _READERS["/etc/tmpfiles.d"])
    if present == text:
        if text is None:
            return Plan()
        return Plan(findings=(Finding(concern, "persist", "ok", "persisted", path, path, reference, path),))
    if text is None:
        reason = "not wanted at boot any more"
    else:
        reason = f"the kernel forgets it at a reboot; {tool} at each boot"
    action = Action(
        concern=concern,
        knob="persist",
        what="files",
        where=path,
        before=present,
        after=text,
        scope="boot",
        wanted_by=wanted_by,
        reason=reason,
        reference=reference,
    )
    finding = Finding(
        concern=concern,
        knob="persist",
        status="would_change",
        where=path,
        now=path if present is not None else None,
        wanted=path if text is not None else None,
        reason=reason,
        reference=reference,
    )
    return Plan((action,), (finding,))


def by_unit(concern: str, facts: Facts) -> Plan:
    """A value that is left to us is planned anew at each boot by the unit; refused where the unit can't live.

    Needs the domain `unit`. Call it when something is left to us and is to be persisted.
    """
    here = facts.unit
    stop = unit.obstacle(here) if here is not None else "it could not be observed whether this host runs systemd"
    if here is None or stop:
        reason = f"{stop}; so it lasts until the next boot: name the value, or set persist: false"
        return Plan(findings=(Finding(concern, "persist", "refused", reason, reference=unit.REFERENCE),))
    lives = here.enabled and here.agent is not None
    finding = Finding(
        concern=concern,
        knob="persist",
        status="ok" if lives else "would_change",
        reason="nearmetal.service plans it anew at each boot, for the size that the host has then",
        now=unit.SERVICE_NAME if lives else None,
        wanted=unit.SERVICE_NAME,
        reference=unit.REFERENCE,
    )
    return Plan(findings=(finding,), replan=True)
