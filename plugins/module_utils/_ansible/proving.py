# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of `prove` on a host: each is one call of the module. PRIVATE to the collection."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Mapping, Sequence

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.tuning import WANTED, Asked, asked
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.experiment import load, states
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.result import described
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Conditions, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Origin
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import load_sample
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import Spec, validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

STEPS = ("begin", "measure", "look", "load", "back", "keep")
OPTIONS: Spec = {
    "command": {"type": "str"},
    "load_on": {"type": "str", "choices": ["host", "controller"], "default": "host"},
    "programs": {"type": "list", "elements": "str", "default": []},
    "seconds": {"type": "float", "default": 10.0},
    "settle": {"type": "float", "default": 10.0},
    "pairs": {"type": "int", "default": 40},
    "effect": {"type": "float", "default": 5.0},
    "margin": {"type": "float", "default": 2.0},
    "primary": {"type": "str", "default": ""},
    "keep": {"type": "str", "choices": ["better", "not_worse"], "default": "better"},
    "abandon_after": {"type": "int", "default": 900},
    "seed": {"type": "int"},
    "only": {"type": "list", "elements": "str", "default": []},
    "resume": {"type": "str", "default": ""},
    "tune": {"type": "dict", "default": {}},
    "step": {"type": "str", "choices": list(STEPS), "default": "back"},
    "run": {"type": "str", "default": ""},
    "state": {"type": "str", "choices": list(states.STATES), "default": states.UNTUNED},
}
_LOUD = 5  # programs that used the CPU most, of those that aren't the load's


def longest_load(seconds: float) -> float:
    """Seconds that a command may take whose measurements are expected to take `seconds`."""
    return 3 * seconds + 30


def wanted(host: WritableHost, options: Mapping[str, Any]) -> Asked:
    """What is proven: what `tune` would do with its options. Raises NearmetalError for a wrong one."""
    return asked(host, validate("tune", WANTED, options["tune"]))


def do(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """One step, and what there is to tell of it. Raises NearmetalError."""
    return _STEPS[options["step"]](host, options)


def _begin(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    ask = wanted(host, options).ask
    knobs = options["only"]
    _demand_known(knobs)
    begun = states.begin(host, options["run"], ask, knobs, options["abandon_after"])
    difference = begun.experiment.difference
    return {
        "tested": list(dict.fromkeys(f"{action.concern}.{action.knob}" for action in difference)),
        "untested": [f"{finding.concern}.{finding.knob}: {finding.reason}" for finding in begun.untested],
        "actions": [action.as_dict() for action in difference],
        "platform": begun.platform,
    }


def _demand_known(knobs: Sequence[str]) -> None:
    for knob in knobs:
        concern, _dot, option = knob.partition(".")
        if concern not in CONCERNS:
            raise NearmetalError(f"prove.only has {shown(knob)}; its concerns are {', '.join(sorted(CONCERNS))}")
        names = sorted({each.name for each in CONCERNS[concern].knobs if each.lever})
        if option not in names:
            raise NearmetalError(f"prove.only has {shown(knob)}; the settings of {concern} are {', '.join(names)}")


def _measure(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Switch, settle, and measure where the load runs on this host."""
    started = time.monotonic()
    found = states.switch(host, options["run"], options["state"])
    switched = time.monotonic() - started
    time.sleep(options["settle"])
    before = load_sample.observe(host)
    answer: Dict[str, Any] = {"switch_seconds": round(switched, 3)}
    if options["load_on"] != "host":
        return {**answer, "before": before.as_dict(None)}
    ran = load.run(options["command"] or "", longest_load(options["seconds"]), lambda: _goes_on(host, options))
    after = load_sample.observe(host)
    return {**answer, "load": ran._asdict(), **_compared(host, found, options, before, after)}


def _compared(
    host: WritableHost,
    found: states.Experiment,
    options: Mapping[str, Any],
    before: load_sample.Sample,
    after: load_sample.Sample,
) -> Dict[str, Any]:
    others = load_sample.foreign(before, after, options["programs"])
    return {
        "before": before.as_dict(0.0),
        "after": after.as_dict(round(sum(seconds for _name, seconds in others), 2)),
        "others": [{"name": name, "seconds": round(seconds, 2)} for name, seconds in others[:_LOUD]],
        **_in_force(host, found, options),
    }


def _look(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """After a load that ran elsewhere."""
    found = states.demand_running(host, options["run"])
    return {"after": load_sample.observe(host).as_dict(None), **_in_force(host, found, options)}


def _in_force(host: WritableHost, found: states.Experiment, options: Mapping[str, Any]) -> Dict[str, Any]:
    return {"taken_back": states.taken_back(host, found, options["state"])}


def _load(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Run the load on a host that isn't under test."""
    before = load_sample.ticks(host)
    ran = load.run(options["command"] or "", longest_load(options["seconds"]), lambda: True)
    return {"load": ran._asdict(), "busy": load_sample.busy(before, load_sample.ticks(host))}


def _back(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    return {"ended": states.end(host, options["run"])}


def _keep(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """End the experiment tuned, and do what `tune` does: the same values are kept for the next boot."""
    chosen, ask = wanted(host, options)
    before = states.leave(host, options["run"])
    try:
        done = run(host, ask, check=False, conditions=Conditions(origin=Origin(chosen.run)))
    except NearmetalError:
        states.back(host, before)
        raise
    result = described(done.facts, done.outcomes)
    if result["errors"]:
        states.back(host, before)
        raise NearmetalError("; ".join(f"{name}: {error}" for name, error in result["errors"].items()))
    return {"tuned": result["msg"], "reboot_required": result["reboot_required"]}


def _goes_on(host: WritableHost, options: Mapping[str, Any]) -> bool:
    """Whether the experiment still runs: what takes it back removes its file."""
    return host.exists(states.RUNNING)


_STEPS: Mapping[str, Callable[[WritableHost, Mapping[str, Any]], Dict[str, Any]]] = {
    "begin": _begin,
    "measure": _measure,
    "look": _look,
    "load": _load,
    "back": _back,
    "keep": _keep,
}
