# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running experiment: one file in /run says that two states of this host are compared. PRIVATE."""

from __future__ import annotations

import json
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ..._error import NearmetalError
from ..._facts.json_data import json_data
from ..._facts.switch import EXPERIMENT
from ..._host import store
from ..._host.host import WritableHost
from ..._levers.registry import lever_of
from ..._parse import json_text
from ..._plan import Action
from .lasting import ended, lasting

_NAMES = ("concerns", "knobs", "owned", "unfelt", "untested")


class Experiment(NamedTuple):
    """What is compared on this host, and how to take it back."""

    run: str  # the controller's name of the run
    boot_id: str
    concerns: Tuple[str, ...]
    knobs: Tuple[str, ...]  # `concern.option`; empty: all of the concerns
    abandon_after: int  # seconds without a step; 0: no timer
    python: str = ""
    owned: Tuple[str, ...] = ()  # `concern.option` of what `tune` leaves to another owner
    unfelt: Tuple[str, ...] = ()  # `concern.option` of what a load right after a switch may not show
    untested: Tuple[str, ...] = ()  # `concern.option` of all that `tune` would change, and that isn't compared
    difference: Tuple[Action, ...] = ()  # from untuned, or another tuning, to tuned
    shared: Tuple[Action, ...] = ()  # that another tuning sets as the tuned state does
    against: bool = False  # untuned is another tuning, not the host's originals
    earlier: Tuple[Action, ...] = ()  # from untuned to what nearmetal had set before the experiment
    order: Tuple[Tuple[str, str], ...] = ()  # the journal's places, in its order before the experiment
    ending: bool = False  # it is being taken back, and nothing else goes on
    wanted: Optional[str] = None  # while the tuning is being kept: the text of what was wanted before

    def names(self, concern: str, knob: str) -> bool:
        """Whether the run is about the knob, be it compared or not."""
        name = f"{concern}.{knob}"
        return concern in self.concerns and name not in self.owned and (not self.knobs or name in self.knobs)

    def selects(self, concern: str, knob: str) -> bool:
        """Whether the knob takes part."""
        return self.names(concern, knob) and f"{concern}.{knob}" not in self.unfelt


def demand_running(host: WritableHost, run_id: str) -> Experiment:
    """The experiment of this run. Raises NearmetalError when the host was taken back meanwhile."""
    experiment = running(host)
    if experiment is None or experiment.run != run_id or experiment.ending:
        raise NearmetalError(
            "the experiment ended on the host: its timer or a person took it back, somebody restored the host, or it"
            " was rebooted"
        )
    return experiment


def running(host: WritableHost) -> Optional[Experiment]:
    """The experiment of this boot, checked like any input; None when there is none. Raises NearmetalError."""
    data = store.read_file(host, EXPERIMENT)
    if data is None:
        return None
    try:
        raw = json_text.parse(data.decode("utf-8"))
        fields: Dict[str, Any] = {name: tuple(map(str, raw[name])) for name in _NAMES}
        fields.update({name: tuple(map(_action, raw[name])) for name in ("difference", "shared", "earlier")})
        fields.update({name: str(raw[name]) for name in ("run", "boot_id", "python")})
        fields["order"] = tuple((str(what), str(where)) for what, where in raw["order"])
        fields["wanted"] = None if raw["wanted"] is None else str(raw["wanted"])
        fields.update({name: bool(raw[name]) for name in ("ending", "against")})
        experiment = Experiment(abandon_after=int(raw["abandon_after"]), **fields)
        for action in experiment.difference if experiment.against else ():
            lever_of(action.what).check(action.where, action.before)  # it is written too
    except json_text.DAMAGE as error:
        raise NearmetalError(
            f"{EXPERIMENT} isn't what prove wrote ({json_text.reason(error)}): remove it, and run restore, which brings"
            " the originals back"
        ) from None
    return experiment if experiment.boot_id == host.boot_id() else None


def demand_own(host: WritableHost, run_id: str, tunes: bool) -> None:
    """Raise NearmetalError unless the experiment of this run is on the host; while it is taken back it never tunes."""
    experiment = lasting(host) or running(host)
    if experiment is None or experiment.run != run_id or (tunes and experiment.ending):
        raise ended()


def write(host: WritableHost, experiment: Experiment) -> None:
    """Write the file that says that this experiment runs."""
    store.replace_file(host, EXPERIMENT, json.dumps(json_data(experiment)).encode(), mode=0o600, folder_mode=0o755)


def _action(raw: Any) -> Action:
    action = Action(**raw)
    lever_of(action.what).check(action.where, action.after)
    return action
