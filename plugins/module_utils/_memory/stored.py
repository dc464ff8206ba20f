# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored wanted: the options that the last run gave each concern, kept on the host. PRIVATE to the collection.

The unit plans from it, `nearmetal status` shows it, and a later run compares its own
concerns with it. Options are checked against their concern's own spec at every use.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .._error import Damaged, NearmetalError, OfHost
from .._host import store
from .._host.host import WritableHost
from .._parse import json_text
from .._plan import PROGRAM, Wanted
from .._planning import waivers
from .._planning.concern import Concern
from .._planning.options import COMMON, validate
from .._version import numbers
from .._words import clipped, printable, shown

PATH = f"{store.DATA}/wanted.json"
FORMAT = 1
# Options of earlier versions, which changed nothing: concern, option.
_REMOVED = (("network_stack", "tw_recycle"),)
CHOICE = "tune"  # beside the concerns: what `auto` recognized

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_RUN = re.compile(r"[a-z0-9_ ,:.-]{1,200}", re.ASCII)
_LONGEST = 1000  # characters of a reason
_LINE = re.compile(r"[^\x00-\x1f\x7f-\x9f]{0,%d}" % _LONGEST)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)


class Stored(NamedTuple):
    """The wanted options of one concern, and the run that stored them."""

    options: Mapping[str, Any]
    by: Mapping[str, str] = {}  # option → user | workload | program
    replan: bool = False  # the unit plans it again at boot
    run: str = ""  # "tune, workload base"
    version: str = ""  # of the nearmetal that stored it
    at: str = ""  # UTC, when it was stored
    learnt: Tuple[str, ...] = ()  # options that nobody gave: nearmetal had them from the metadata service
    remembered: Mapping[Tuple[str, str], str] = {}  # what the run's plan had in `remember`
    damage: str = ""  # why it can't be read
    raw: Any = None  # the unreadable data, which is kept

    @property
    def outlives_boots(self) -> bool:
        """Whether it is to hold after a reboot, too."""
        return self.options.get("persist") is not False

    @property
    def run_and_time(self) -> str:
        """The run that stored it and when, for an operator."""
        return f"{self.run} of {self.at[:10]} {self.at[11:16]} UTC"

    def wanted(self, concern: Concern) -> Wanted:
        """The options, checked as if they were given now. Raises NearmetalError that names the wrong option."""
        if self.damage:
            raise Damaged(self.damage)
        known = {option: self.options[option] for option in self.options if (concern.name, option) not in _REMOVED}
        try:
            options = validate(concern.name, {**COMMON, **waivers.OPTIONS, **concern.options}, known)
        except NearmetalError as error:
            raise NearmetalError(f"{PATH}: {error}; run tune again") from None
        by = {**self.by, **dict.fromkeys(self.learnt, "auto")}
        return Wanted(options, by, stored=True, remembered=self.remembered)


def to_store(wanted: Wanted, replan: bool, remembered: Mapping[Tuple[str, str], str] = MappingProxyType({})) -> Stored:
    """The stored form of what is wanted; `StoredWanted.put` adds the run."""
    by = {option: origin for option, origin in wanted.by.items() if origin != "auto"}
    learnt = tuple(sorted(set(wanted.by) - set(by)))
    remembered = {place: clipped(printable(reason), _LONGEST) for place, reason in remembered.items()}
    return Stored(dict(wanted.options), by, replan, learnt=learnt, remembered=remembered)


class StoredWanted:
    """The stored wanted of one host, by concern.

    When the whole file is damaged, `damage` says so: then it has no concerns, and nothing can be stored.
    """

    def __init__(self, host: WritableHost) -> None:
        self._host = host
        self._concerns: Dict[str, Stored] = {}
        self.damage = ""
        try:
            self._concerns = _read(host)
        except Damaged as error:
            self.damage = str(error)

    @property
    def damaged(self) -> bool:
        """Whether the file or any concern in it can't be read."""
        return bool(self.damage) or any(stored.damage for stored in self._concerns.values())

    def names(self) -> List[str]:
        """The concerns, in the order in which they were first stored."""
        return list(self._concerns)

    def get(self, name: str) -> Optional[Stored]:
        """What is stored of the concern; None when there is nothing."""
        return self._concerns.get(name)

    def everything(self) -> Dict[str, Stored]:
        """Concern → what is stored of it."""
        return dict(self._concerns)

    def put(self, name: str, keep: Optional[Stored], run: str, version: str) -> None:
        """Store what is wanted of a concern now, in the name of a run.

        None forgets the concern, and with the last concern the choice of workloads. Nothing is written when nothing
        changes.
        """
        concerns = dict(self._concerns)
        if keep is None:
            concerns.pop(name, None)
            if list(concerns) == [CHOICE]:
                concerns = {}
        elif name not in concerns or _decided(concerns[name]) != _decided(keep):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            concerns[name] = keep._replace(run=run, version=version, at=at)
        self.reset(concerns)

    def differs(self, name: str, keep: Optional[Stored]) -> bool:
        """Whether another thing is stored as wanted, whichever run wants it."""
        present = self._concerns.get(name)
        if present is None or keep is None:
            return present is not keep
        return _decided(present)._replace(remembered={}) != _decided(keep)._replace(remembered={})

    def reset(self, concerns: Dict[str, Stored]) -> None:
        """Store exactly these concerns. Raises Damaged, or NearmetalError with the file as it was."""
        if concerns == self._concerns:
            return
        if self.damage:
            raise Damaged(self.damage)
        try:
            self._write(concerns)
        except NearmetalError:
            with suppress(NearmetalError):  # the error may have come after the rename of the new file
                self._write(self._concerns)
            raise
        self._concerns = concerns

    def want_again(self, earlier: Mapping[str, Optional[Stored]]) -> None:
        """Store what was wanted earlier of these concerns. A damaged file stays: the unit plans nothing from it."""
        if not self.damage:
            concerns = {**self._concerns, **earlier}
            self.reset({name: stored for name, stored in concerns.items() if stored is not None})

    def _write(self, concerns: Dict[str, Stored]) -> None:
        if concerns:
            content = {"version": FORMAT, "concerns": {name: as_data(stored) for name, stored in concerns.items()}}
            data = json.dumps(content, indent=1).encode() + b"\n"
            store.replace_file(self._host, PATH, data, mode=0o600, folder_mode=0o700)
        else:
            store.remove_file(self._host, PATH)
            store.remove_empty(self._host, store.DATA)


def _decided(stored: Stored) -> Stored:
    """What a run stores, without who stored it when, and without the figures of a moment in its reasons."""
    decided = {place: str(bool(reason)) for place, reason in stored.remembered.items()}
    return stored._replace(run="", version="", at="", remembered=decided)


def _read(host: WritableHost) -> Dict[str, Stored]:
    try:
        data = store.read_file(host, PATH)
    except NearmetalError as error:
        raise Damaged(str(error)) from None
    return _parsed(data) if data is not None else {}


def _parsed(data: bytes) -> Dict[str, Stored]:
    try:
        content = json_text.parse(data.decode("utf-8"))
        version, concerns = content["version"], {_text(name, _NAME): raw for name, raw in content["concerns"].items()}
    except json_text.DAMAGE as error:
        raise Damaged(
            f"{PATH} isn't what nearmetal stored ({json_text.reason(error)}), so nothing can be stored there:"
            " look at it, move it away, and run tune again"
        ) from None
    if version != FORMAT:
        raise OfHost(
            f"{PATH} has version {shown(version)}, this nearmetal writes version {FORMAT}: nothing was changed;"
            " use the newer nearmetal"
        )
    return {name: _stored(name, raw) for name, raw in concerns.items()}


def _stored(name: str, raw: Any) -> Stored:
    try:
        return stored_of(raw)
    except json_text.DAMAGE as error:
        remedy = "run tune with it again, or restore it"
        if name == CHOICE:
            remedy = "name the host's workload in tune_workload, or set tune_prune: true"
        damage = f"{PATH}: what is stored of {name} isn't what nearmetal stored ({json_text.reason(error)}); {remedy}"
        return Stored({}, damage=damage, raw=raw)


def as_data(stored: Stored) -> Any:
    """The data of the file for one concern."""
    data = stored._asdict()
    del data["damage"], data["raw"]
    data["remembered"] = [[*place, reason] for place, reason in sorted(stored.remembered.items())]
    return stored.raw if stored.damage else data


def earlier_of(raw: Any) -> Dict[str, Optional[Stored]]:
    """Concern → what was wanted of it earlier, from the file of a lease: data, or before 0.3.0 all of it as text."""
    if isinstance(raw, str):
        raw = {CHOICE: None, **json_text.parse(raw or '{"concerns": {}}')["concerns"]}
    return {str(name): stored_of(data) if data else None for name, data in (raw or {}).items()}


def stored_of(raw: Any) -> Stored:
    """What is stored of one concern, checked. Raises NearmetalError, KeyError or TypeError for other data."""
    options, by, replan = raw["options"], raw["by"], raw["replan"]
    if not isinstance(replan, bool):
        raise NearmetalError("a mark for the unit that is neither true nor false")
    if not isinstance(options, dict) or not isinstance(by, dict):
        raise NearmetalError("options that aren't a mapping")
    learnt = raw.get("learnt", [])  # older versions didn't tell them from the user's options
    if not isinstance(learnt, list) or not all(option in options for option in learnt):
        raise NearmetalError("a learnt option that isn't among the options")
    if not all(origin in ("user", "workload", PROGRAM) for origin in by.values()):
        raise NearmetalError("an option that neither the user nor a workload or program wants")
    if numbers(raw["version"]) is None:
        raise NearmetalError("a version of another form")
    run, at = _text(raw["run"], _RUN), _text(raw["at"], _TIME)
    # older versions remembered nothing
    remembered = {(knob, place): reason for knob, place, reason in _rows(raw.get("remembered", []))}
    return Stored(options, by, replan, run, raw["version"], at, tuple(learnt), remembered)


def _rows(rows: Any) -> List[List[str]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 3 for row in rows):
        raise NearmetalError("decisions that aren't a list of knob, place and reason")
    return [[_text(text, _LINE) for text in row] for row in rows]


def _text(value: Any, form: "re.Pattern[str]") -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise NearmetalError("a name, run or time of another form")
    return value
