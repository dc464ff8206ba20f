# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a plan: actions, findings, wanted. Data only. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Tuple, Union

# A value of a knob: None means "absent". A mapping is a table (queue -> CPUs, cpu -> state).
Value = Union[None, bool, int, str, Mapping[str, Any]]

STATUSES = (
    "ok",  # the host already is as wanted
    "would_change",  # check mode: an action stands behind it
    "changed",  # the action was done and seen to hold
    "needs_reboot",  # realised on disk, not yet in the running kernel
    "needs_restart",  # realised on disk, a service still runs without it
    "not_applicable",  # the hardware or kernel lacks it: nothing to do
    "refused",  # could harm: needs the opt-in that the reason names
    "unchangeable",  # the kernel does not allow it (managed IRQs)
    "unknown",  # could not be observed
    "advice",  # nothing we change; something the operator should know
    "waived",  # the operator accepted it, with a reason and an end
)


class Action(NamedTuple):
    """One typed change, as data. `what` names a lever of the engine; nothing in this file can write."""

    concern: str
    knob: str  # the option that asks for it: `source` of the concern `clocksource`
    what: str  # in the vocabulary of the facts: `clock.current`
    before: Value
    after: Value
    reason: str
    reference: str  # the talk, page or kernel commit that the reason rests on
    where: str = ""  # stable identity (cpu, node, device and queue), never an IRQ number
    scope: str = "runtime"  # runtime | boot
    disruptive: bool = False
    reversible: str = "now"  # now | by_reboot | no
    wanted_by: str = "user"  # user | workload | auto

    @property
    def key(self) -> Tuple[str, str]:
        """The place: the lever's name, and where."""
        return (self.what, self.where)

    def as_dict(self) -> dict[str, Any]:
        """The action as plain JSON data, as the result contract shows it."""
        return self._asdict()


class Finding(NamedTuple):
    """One statement about a knob, with a status of STATUSES."""

    concern: str
    knob: str
    status: str
    reason: str
    now: Value = None
    wanted: Value = None
    reference: str = ""
    where: str = ""
    gain: str = ""  # what it would bring, with the figure's source; empty: not known
    owner: str = ""  # who sets the knob today: nearmetal.ec2, tuned, kubelet, a file; empty: nobody known

    def as_dict(self) -> dict[str, Any]:
        """The finding as plain JSON data, as the result contract shows it."""
        return self._asdict()


class Plan(NamedTuple):
    """What follows from facts and wanted: actions to do, in order, and findings.

    `replan` says that another boot, size or device may need another plan: then the
    unit on the host makes it. `at_boot` has the lines by which files set the other values
    at each boot, by the kernel's path or the parameter's name. `remember` has by knob and place why one was left
    alone because of what a boot brings late, such as routes and programs; an empty reason: it wasn't.
    """

    actions: Tuple[Action, ...] = ()
    findings: Tuple[Finding, ...] = ()
    replan: bool = False
    at_boot: Mapping[str, str] = {}
    remember: Mapping[Tuple[str, str], str] = {}


PROGRAM = "program"  # who wants an exact value: one of the host's programs


class Wanted(NamedTuple):
    """The validated options of one concern. An option left out is unmanaged.

    `by` says per option who wants it: `user`, `workload`, `program` for an exact value of a limit that a program wants
    instead of a workload, or `auto` for what nobody named and nearmetal learnt; an option not listed is the user's.
    `reasons` has, per option whose value a workload chose, why it did, and the source.
    With `stored` an earlier run checked them against the host, which may have changed since; `remembered` is what that
    run's plan had in `remember`.
    """

    options: Mapping[str, Any] = {}
    by: Mapping[str, str] = {}
    stored: bool = False
    reasons: Mapping[str, Tuple[str, str]] = {}
    remembered: Mapping[Tuple[str, str], str] = {}

    def get(self, option: str) -> Any:
        """The option's value; None when it was left out."""
        return self.options.get(option)

    def wanted_by(self, option: str) -> str:
        """`auto` when the value was left to nearmetal, else `user` or `workload`."""
        if self.options.get(option) == "auto":
            return "auto"
        origin = self.by.get(option, "user")
        return "workload" if origin == PROGRAM else origin

    def for_entry(self, within: str, given: Mapping[str, Any]) -> Wanted:
        """What is wanted of one device, to which an entry of the list option `within` gives these options."""
        origins = {option: self.by.get(f"{within}.{option}", self.wanted_by(within)) for option in given}
        by = {**self.by, **origins}
        return self._replace(options={**self.options, **given}, by=by)


def joined(*plans: Plan) -> Plan:
    """The plan with the actions and findings of all, in the order of the plans."""
    return Plan(
        tuple(action for plan in plans for action in plan.actions),
        tuple(finding for plan in plans for finding in plan.findings),
        any(plan.replan for plan in plans),
        {line: value for plan in plans for line, value in plan.at_boot.items()},
        {place: reason for plan in plans for place, reason in plan.remember.items()},
    )
