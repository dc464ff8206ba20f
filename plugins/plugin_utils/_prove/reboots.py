# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run that reboots its host demands and says. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Tuple

from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics.order import TUNED, UNTUNED
from ...module_utils._prove.statistics.rules import FEWEST_SHAMS, most_reboots
from ...module_utils._prove.statistics.settings import (
    ANSWER_SECONDS,
    BOOT_SECONDS,
    FEWEST_PAIRS,
    Settings,
    longest_load,
)
from ...module_utils._words import clipped, sentence
from .. import _clean as clean
from . import figures

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LONGEST_LIST = 300  # characters of the kernel arguments


class Written(NamedTuple):
    """What the files of the host hold, with which it boots next."""

    state: str = UNTUNED
    arguments: Tuple[str, ...] = ()  # the kernel arguments of the tuning


def require_possible(settings: Settings, options: Mapping[str, Any], task_vars: Mapping[str, Any]) -> None:
    """Raise NearmetalError for a run whose host can't be rebooted, or not alone."""
    if not settings.reboot:
        return
    if options["against"]:
        raise NearmetalError(
            "prove.against and prove.reboot are both set: with reboots the other state is the host as it boots without"
            " nearmetal, to which every way back leads; prove each of the two tunings against that"
        )
    hosts = task_vars.get("ansible_play_batch") or ()
    if len(hosts) > 1:
        raise NearmetalError(
            f"prove.reboot is set, and this play has {len(hosts)} hosts at once, which would all be rebooted again and"
            " again: name one host with target, or set serial: 1 in a play of your own"
        )


def require_another_machine(boot_id: Any) -> None:
    """Raise NearmetalError when the host is the machine on which Ansible runs."""
    try:
        with open(_BOOT_ID, encoding="ascii") as stream:
            own = stream.read().strip()
    except OSError:
        return
    if boot_id == own:
        raise NearmetalError(
            "prove.reboot is set, and the host is the machine on which Ansible runs, which would end the run: prove it"
            " from another machine"
        )


def announcement(settings: Settings) -> str:
    """How often and how long the host is rebooted, before the first time."""
    fewest, most = 2 * (FEWEST_SHAMS + FEWEST_PAIRS), most_reboots(settings)
    step = settings.settle + longest_load(settings.seconds) + ANSWER_SECONDS + BOOT_SECONDS
    seconds = most * (settings.reboot_within + 2 * step)
    return (
        f"the host is rebooted {fewest} to {most} times, which takes at most {figures.duration(seconds)}: each reboot"
        f" up to {settings.reboot_within} s"
    )


def written(state: str, answer: Mapping[str, Any]) -> Written:
    """What a step wrote, by its untrusted answer."""
    arguments = answer.get("arguments")
    tokens = arguments if isinstance(arguments, list) and state == TUNED else []
    return Written(state, tuple(clean.text(word, 100) for word in tokens))


def not_back(within: int, reason: str, files: Written) -> str:
    """What a person needs to know of a host that didn't come back."""
    hold = "hold the tuning" if files.state == TUNED else "are as they were before the run"
    remedy = ""
    if files.arguments:
        arguments = clipped(" ".join(files.arguments), _LONGEST_LIST)
        remedy = f"; if it can't boot, remove the kernel arguments {arguments} in the menu of its boot loader"
    return (
        f"the host did not come back from its reboot within {within} s ({sentence(reason)}): its files {hold}{remedy}"
    )


def restored_by(settings: Settings) -> str:
    """What restores a host that the controller can't reach any more."""
    seconds = settings.abandon_after
    if settings.reboot:
        return (
            f"its timer restores it {seconds} s after the last step or boot, and reboots it once more if it runs tuned"
        )
    return f"its timer restores it within {seconds} s" if seconds else "run the module prove with step: back"
