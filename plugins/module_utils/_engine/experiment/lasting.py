# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The experiment that outlives reboots: one file in /var/lib says which state the host boots into. PRIVATE."""

from __future__ import annotations

import json
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ..._error import NearmetalError
from ..._facts.switch import REBOOTS
from ..._host import store
from ..._host.host import WritableHost
from ..._parse import json_text

UNTUNED, TUNED = "untuned", "tuned"


class Lasting(NamedTuple):
    """What is compared on this host across reboots, and what its files hold."""

    run: str  # the controller's name of the run
    abandon_after: int  # seconds without a step
    concerns: Tuple[str, ...]  # those in which the states differ
    places: Tuple[str, ...]  # each difference on disk
    arguments: Tuple[str, ...]  # the kernel arguments among them, as the boot loader has them
    state: str = UNTUNED  # what the files on disk hold
    written_in: str = ""  # the boot id when that was written; a boot that began before it has another state
    booted_tuned: str = ""  # the last boot that is known to have begun with the tuned files
    refused: Tuple[str, ...] = ()  # places of a workload that a driver refused
    ending: bool = False  # it is being taken back, and nothing else goes on

    def noting(self, boot_id: str) -> "Lasting":
        """The same, with a note when this boot began with the tuned files."""
        tuned = self.state == TUNED and self.written_in != boot_id
        return self._replace(booted_tuned=boot_id) if tuned else self


def lasting(host: WritableHost) -> Optional[Lasting]:
    """The experiment, checked like any input; None when there is none. Raises NearmetalError."""
    data = store.read_file(host, REBOOTS)
    if data is None:
        return None
    try:
        raw = json_text.parse(data.decode("utf-8"))
        fields: Dict[str, Any] = {name: str(raw[name]) for name in ("run", "written_in", "booted_tuned")}
        fields.update({name: tuple(map(str, raw[name])) for name in ("concerns", "places", "arguments", "refused")})
        if raw["state"] not in (UNTUNED, TUNED):
            raise NearmetalError("its state is neither untuned nor tuned")
        fields.update(abandon_after=int(raw["abandon_after"]), state=raw["state"], ending=bool(raw["ending"]))
        return Lasting(**fields)
    except json_text.DAMAGE as error:
        raise NearmetalError(
            f"{REBOOTS} isn't what prove wrote ({json_text.reason(error)}): run restore of everything, without naming"
            " concerns, and reboot the host, which brings the originals back"
        ) from None


def demand_lasting(host: WritableHost, run_id: str) -> Lasting:
    """The experiment of this run. Raises NearmetalError when the host was taken back meanwhile."""
    experiment = lasting(host)
    if experiment is None or experiment.run != run_id or experiment.ending:
        raise ended()
    return experiment


def ended() -> NearmetalError:
    """The error for a step of an experiment that somebody has ended, or is ending."""
    return NearmetalError(
        "the experiment ended on the host: its timer or a person took it back, or somebody restored the host"
    )


def write(host: WritableHost, experiment: Lasting) -> None:
    """Write the file that says that this experiment runs."""
    store.replace_file(host, REBOOTS, json.dumps(experiment._asdict()).encode(), mode=0o600, folder_mode=0o700)
