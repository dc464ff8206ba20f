# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The session of a run on one host: what the run knows, and which actions of a plan it does. PRIVATE."""

from __future__ import annotations

from typing import ContextManager, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._error import Damaged
from .._facts.facts import Facts, observe
from .._host import store
from .._host.host import IMAGE, RUNNING, SANDBOX, WritableHost
from .._memory import metrics_file
from .._memory.entry import Entry
from .._memory.image import ImageJournal
from .._memory.journal import Journal
from .._memory.stored import Stored, StoredWanted
from .._plan import Action, Finding, Plan
from .._planning.unit import METRICS
from .._planning.unit import NAME as UNIT
from .._version import VERSION

PATIENCE = 3600  # seconds that the unit waits for a run of a controller, which costs it next to no CPU time

# The concerns that can be taken back, each with what is stored of it, the last one done first.
Known = Mapping[str, Optional[Stored]]


class Origin(NamedTuple):
    """The name and version of a run, stored with what is wanted."""

    name: str
    version: str = VERSION


class Outcome(NamedTuple):
    """What a run planned for one concern, and whether it was done.

    `memory` shows how the stored wanted changes to `keep` when the concern is done.
    """

    name: str
    plan: Plan
    forget: Tuple[Entry, ...] = ()
    memory: Tuple[Action, ...] = ()
    keep: Optional[Stored] = None
    done: bool = False
    error: str = ""


class Session:
    """A run on a host: it does all of a plan, and stores what is wanted with its `origin`."""

    kind = RUNNING
    has_unit = True  # the run brings the unit, or takes it away
    learns = True  # the instance type, from the metadata service
    replans = False  # whatever is wanted is planned again at boot
    keeps_others = False  # a value of the user that a driver refuses is left out, and its concern is done

    def __init__(self, host: WritableHost, origin: Origin) -> None:
        host.kind = self.kind
        self.host, self.origin = host, origin
        self.platform = observe(host, ("platform",)).platform
        self.journal = self._journal()
        self.stored = StoredWanted(host)

    @classmethod
    def locked(cls, host: WritableHost) -> ContextManager[None]:
        """Hold the host's one lock."""
        return store.lock(host)

    def _journal(self) -> Journal:
        return Journal(self.host, self.platform.instance_id if self.platform else None)

    def require_memory(self) -> None:
        """Raise Damaged when the journal can't be read: without it nobody would know the originals."""
        if self.journal.damage:
            raise Damaged(self.journal.damage)

    def damaged(self) -> List[Outcome]:
        """An outcome for each file of nearmetal that can't be read."""
        files = {"journal": self.journal.damage, "wanted": self.stored.damage}
        return [Outcome(name, Plan(), error=damage) for name, damage in files.items() if damage]

    def known(self) -> Dict[str, Optional[Stored]]:
        """The concerns that can be taken back."""
        names = [name for name in self.journal.concerns() if name != UNIT] + self.stored.names()[::-1]
        return {name: self.stored.get(name) for name in dict.fromkeys(names)}

    def observed(self, domains: Iterable[str]) -> Facts:
        """The host's facts. The platform is observed once, because no run changes it."""
        return observe(self.host, [name for name in domains if name != "platform"])._replace(platform=self.platform)

    def prepare(self) -> None:
        """Do what must be done before the first change."""

    def in_scope(self, actions: Sequence[Action]) -> Tuple[Action, ...]:
        """The actions that this run does."""
        return tuple(action for action in actions if action.scope in self.kind.scopes)

    def outcome(self, name: str, plan: Plan, forget: Tuple[Entry, ...], keep: Optional[Stored]) -> Outcome:
        """The outcome of a plan; `keep` is stored when it is done."""
        if self.stored.damage and keep is not None:
            error = "not started: its wanted options can't be stored"
            return self.failed(name, error, Plan(findings=plan.findings))
        return Outcome(name, plan, forget, self._memory(name, keep), keep)

    def failed(self, name: str, error: str, plan: Plan) -> Outcome:
        """The outcome of a concern that can't be done; what is stored of it stays."""
        return Outcome(name, plan, keep=self.stored.get(name), error=error)

    def remember(self, outcome: Outcome) -> None:
        """Bring journal and stored wanted up to date with an outcome that was done."""
        if outcome.forget:
            self.journal.forget(outcome.forget)
        if outcome.memory and outcome.name == METRICS:
            metrics_file.remove(self.host, self.stored.get(METRICS))
        self.stored.put(outcome.name, outcome.keep, self.origin.name, self.origin.version)

    def _memory(self, name: str, keep: Optional[Stored]) -> Tuple[Action, ...]:
        if not self.stored.differs(name, keep):
            return ()
        present = self.stored.get(name)
        action = Action(
            concern=name,
            knob="state",
            what="wanted",
            where=name,
            before=dict(present.options) if present else None,
            after=dict(keep.options) if keep else None,
            scope="boot",
            reason="what is wanted is kept on the host, for `nearmetal status`, the unit and later runs",
            reference="docs/unit.md",
        )
        return (action,)


class BakeSession(Session):
    """A run on a host that an image is made of: files and kernel arguments only; the first boot does the rest."""

    kind = IMAGE
    journal: ImageJournal
    learns = False
    replans = True  # an image is started on any type and size

    def _journal(self) -> ImageJournal:
        return ImageJournal(self.host)

    def observed(self, domains: Iterable[str]) -> Facts:
        """The host's facts; it counts as booted, because the hosts started from the image will be."""
        facts = super().observed(domains)
        if facts.unit is None or facts.unit.systemd is None:
            return facts
        return facts._replace(unit=facts.unit._replace(systemd="booted"))

    def prepare(self) -> None:
        self.journal.set_aside()

    def outcome(self, name: str, plan: Plan, forget: Tuple[Entry, ...], keep: Optional[Stored]) -> Outcome:
        later = {(action.knob, action.where) for action in plan.actions if action.scope == "runtime"}
        findings = tuple(
            finding._replace(status="needs_reboot", reason=f"{finding.reason}; the first boot of the image does it")
            if finding.status == "would_change" and any((finding.knob, place) in later for place in places_of(finding))
            else finding
            for finding in plan.findings
        )
        return super().outcome(name, Plan(self.in_scope(plan.actions), findings), forget, keep)


class UnitSession(Session):
    """The unit's own run, in its sandbox: it plans from what is stored, and writes no file."""

    kind = SANDBOX
    has_unit = False
    # Devices come and change without anybody who could correct a value: one that a driver refuses costs no others.
    keeps_others = True
    learns = False

    @classmethod
    def locked(cls, host: WritableHost) -> ContextManager[None]:
        return store.lock(host, PATIENCE, store.UNIT)

    def require_memory(self) -> None:
        super().require_memory()
        if self.stored.damage:
            raise Damaged(self.stored.damage)

    def observed(self, domains: Iterable[str]) -> Facts:
        """The host's facts, without the read-only /etc that the sandbox shows on every host."""
        facts = super().observed(domains)
        return facts._replace(owners=facts.owners._replace(immutable=None)) if facts.owners is not None else facts

    def outcome(self, name: str, plan: Plan, forget: Tuple[Entry, ...], keep: Optional[Stored]) -> Outcome:
        plan = plan._replace(actions=self.in_scope(plan.actions))
        return Outcome(name, plan, forget, keep=self.stored.get(name))


def places_of(finding: Finding) -> Tuple[str, ...]:
    """The places of a finding: its own, or those in the table of its present value."""
    return (finding.where, *(finding.now if isinstance(finding.now, Mapping) and not finding.where else ()))
