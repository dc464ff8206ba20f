# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running experiment: its lease, and what is compared. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional, Tuple

from ..._engine.lease import record
from ..._engine.lease.record import REBOOTED, SWITCHED, Kind, Lease, read_actions, read_texts
from ..._error import NearmetalError
from ..._facts.json_data import json_data
from ..._host.host import WritableHost
from ..._levers.registry import lever_of
from ..._parse import json_text
from ..._plan import Action


class Experiment(NamedTuple):
    """What is compared on this host."""

    lease: Lease
    # Where the host is switched while it runs:
    difference: Tuple[Action, ...] = ()  # from untuned, or another tuning, to tuned
    shared: Tuple[Action, ...] = ()  # that another tuning sets as the tuned state does
    against: bool = False  # untuned is another tuning, not the host's originals
    untested: Tuple[str, ...] = ()  # `concern.option` of all that `tune` would change, and that isn't compared
    # Where it is rebooted:
    places: Tuple[str, ...] = ()  # each difference on disk
    arguments: Tuple[str, ...] = ()  # the kernel arguments among them, as the boot loader has them
    refused: Tuple[str, ...] = ()  # places of a workload that a driver refused

    @property
    def reboots(self) -> bool:
        """Whether the host is rebooted between the states."""
        return self.lease.kind is REBOOTED


_OWN: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    SWITCHED.path: {"difference": read_actions, "shared": read_actions, "against": bool, "untested": read_texts},
    REBOOTED.path: dict.fromkeys(("places", "arguments", "refused"), read_texts),
}


def running(host: WritableHost, kind: Kind = SWITCHED) -> Optional[Experiment]:
    """The experiment, checked like any input; None when there is none. Raises NearmetalError."""
    lease = record.present(host, kind)
    if lease is None:
        return None
    try:
        own = {"untested": [], **lease.own}  # 0.2.0 wrote none
        experiment = Experiment(lease, **{name: read_own(own[name]) for name, read_own in _OWN[kind.path].items()})
        for action in experiment.difference if experiment.against else ():
            lever_of(action.what).check(action.where, action.before)  # it is written too
        return experiment
    except json_text.DAMAGE as error:
        raise kind.damaged(error) from None


def demand_running(host: WritableHost, run_id: str, kind: Kind = SWITCHED) -> Experiment:
    """The experiment of this run. Raises NearmetalError when the host was taken back meanwhile."""
    experiment = running(host, kind)
    if experiment is None or experiment.lease.run != run_id or experiment.lease.ending:
        others = ", or" if kind is REBOOTED else ","
        reboot = "" if kind is REBOOTED else ", or it was rebooted"
        raise NearmetalError(
            f"the experiment ended on the host: its timer or a person took it back{others} somebody restored the"
            f" host{reboot}"
        )
    return experiment


def with_own(experiment: Experiment) -> Lease:
    """The lease of an experiment, with what is compared beside it."""
    own = {name: json_data(getattr(experiment, name)) for name in _OWN[experiment.lease.kind.path]}
    return experiment.lease._replace(own=own)


def write(host: WritableHost, experiment: Experiment) -> None:
    """Write what is compared."""
    record.write(host, with_own(experiment))
