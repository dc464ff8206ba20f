# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of `prove` on a host: each is one call of the module. PRIVATE to the collection."""

from __future__ import annotations

import time
from threading import Thread
from typing import Any, Callable, Dict, Mapping, Tuple

from ..._benchmark.host import load
from ..._benchmark.tools.registry import BENCHMARKS, is_benchmark
from ..._engine.lease.record import REBOOTED, SWITCHED, UNTUNED
from ..._error import NearmetalError
from ..._facts.state_files import compares
from ..._host.host import WritableHost
from ..._planning.options import Spec
from ..._tasks.task import Task
from ..._words import sentence
from ..statistics.record_lines import MOST_CLIENTS
from ..statistics.rules import VERDICTS
from ..statistics.settings import KEEP, SEVERAL, Settings, longest_load
from . import health, load_sample, running, second_clock, states
from .running import Experiment

STEPS = ("plan", "begin", "switch", "measure", "load", "profile", "look", "back", "keep")
HOST, CONTROLLER = "host", "controller"  # where the load runs; any other value is a host of the inventory
_SETTINGS: Spec = {
    name: {"type": type(default).__name__, "default": default} for name, default in Settings._field_defaults.items()
}
OPTIONS: Spec = {
    "command": {"type": "str", "lines": True},
    "benchmark": {"type": "str", "choices": list(BENCHMARKS)},
    "benchmark_options": {"type": "dict", "default": {}},
    "load_on": {"type": "list", "elements": "str", "default": [HOST], "entries": MOST_CLIENTS},
    "health": {"type": "str", "default": "", "lines": True},
    "restart": {"type": "str", "default": "", "lines": True},
    "programs": {"type": "list", "elements": "str", "default": []},
    "tolerate": {"type": "list", "elements": "str", "default": []},
    **_SETTINGS,
    "keep": {**_SETTINGS["keep"], "choices": list(KEEP)},
    "several": {**_SETTINGS["several"], "choices": list(SEVERAL)},
    "seed": {"type": "int"},
    "only": {"type": "list", "elements": "str", "default": []},
    "resume": {"type": "str", "default": ""},
    "fail_on": {"type": "list", "elements": "str", "choices": list(VERDICTS), "default": []},
    "tune": {"type": "dict", "default": {}},
    "against": {"type": "dict", "default": {}},
    "step": {"type": "str", "choices": list(STEPS), "default": "back"},
    "run": {"type": "str", "default": ""},
    "state": {"type": "str", "choices": list(states.STATES), "default": UNTUNED},
    "without": {"type": "str", "default": ""},
    "stays": {"type": "bool", "default": False},
    "profile": {"type": "bool", "default": False},
    "at_knee": {"type": "int", "default": 0, "range": (0, 100)},
    "start_at": {"type": "float", "default": 0.0},
}
_CHANGES = ("begin", "switch", "measure", "profile", "back", "keep")
_BUSIEST = 5  # how many of the other programs are named, those that used the CPU most


def forecast(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The result in check mode, in which only the step `plan` is done. Raises NearmetalError."""
    step = options["step"]
    if step == "plan":
        result = carry_out(host, options)
        served = load_sample.served(host, options["programs"])
        result["answer"]["absent"] = [name for name, processes in served.items() if not processes]
        return result
    return {"changed": False, "skipped": True, "msg": f"{step} would switch the host"}


def carry_out(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The result of one step. Raises NearmetalError."""
    answer, step = _do(host, options), options["step"]
    if step in ("back", "keep") and answer.get("ended", True):  # programs keep what they were started with
        health.restart(options["restart"])
    return {"changed": step in _CHANGES, "msg": f"{step}: {answer.pop('msg', 'done')}", "answer": answer}


def _do(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    step = options["step"]
    if step in _STEPS:
        return _STEPS[step](host, options)
    # Planning is imported for the steps that need it: a measurement, some fifty times in it, costs what it imports.
    from . import proposal

    if step == "begin" and options["profile"]:
        from ..._profile import profiling, recording

        recording.require_perf(host)
        recording.require_room(options["seconds"], profiling.FREQUENCY)
    return proposal.STEPS[step](host, options)


def _ready(host: WritableHost, options: Mapping[str, Any]) -> Tuple[Experiment, load_sample.Served, Dict[str, Any]]:
    """Switch and settle; the answer so far has `unhealthy` if the load is not to run."""
    started = time.monotonic()
    compared, served = _brought_into_state(host, options)
    unhealthy = "" if options["stays"] else health.restart(options["restart"])
    if options["restart"]:
        served = load_sample.served(host, options["programs"])
    switched = time.monotonic() - started
    if not options["stays"]:
        time.sleep(options["settle"])
    answer: Dict[str, Any] = {"switch_seconds": round(switched, 3)}
    obstacles = {"unhealthy": unhealthy or health.failure(options["health"]), "ended": health.ended(host, served)}
    return compared, served, {**answer, **obstacles} if any(obstacles.values()) else answer


def _measure(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Switch, settle, and measure where the load runs on this host."""
    compared, served, answer = _ready(host, options)
    if "unhealthy" in answer:
        return answer
    if options["load_on"] != [HOST]:
        return {**answer, "before": load_sample.before_load(host, options["programs"]).as_dict(None)}
    by_real_time = options["timed"] and _compares_clocks(compared)
    first = second_clock.next_second(host) if by_real_time else None
    before = load_sample.before_load(host, options["programs"])
    ran = _with_missing_programs(_run(host, options), served)
    after = load_sample.after_load(host, options["programs"])
    if first is not None:
        # The clock that times the load is held against the controller's.
        last = second_clock.next_second(host)
        ran = ran._replace(seconds=second_clock.seconds(ran.seconds, first, last))
        before, after = (
            observed._replace(counters=observed.counters._replace(host_seconds=float(second.real)))
            for observed, second in ((before, first), (after, last))
        )
    around = _around(before, after, options)
    return {**answer, "load": ran._asdict(), **around, **_in_force(host, compared, options)}


def _run(host: WritableHost, options: Mapping[str, Any]) -> load.Ran:
    """One run of the command, or of the benchmark in its place."""
    # What takes the experiment back removes its file, and ends the load.
    return _run_load(host, options["command"] or "", longest_load(options["seconds"]), lambda: compares(host))


def _with_missing_programs(ran: load.Ran, served: load_sample.Served) -> load.Ran:
    """The run; if it failed, its message names the programs that should serve it and of which no process runs."""
    missing = " and ".join(name for name, processes in served.items() if not processes)
    if not missing or not (ran.code or ran.end):
        return ran
    message = f"{ran.message.strip()} (no process of {missing} runs)"
    return ran._replace(message=message.lstrip())


def _run_load(host: WritableHost, command: str, limit: float, goes_on: Callable[[], bool]) -> load.Ran:
    if not is_benchmark(command):
        load.adopt_orphans()
        ran = load.run(command, limit, goes_on)
        return ran._replace(version=load.identify(command))
    from ..._benchmark.host import benchmarking

    return benchmarking.run_load(host, command, goes_on)


def _around(before: load_sample.Observed, after: load_sample.Observed, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The counters of the host on which the load ran, before and after it, and the programs that weren't its own."""
    others = load_sample.foreign(before, after, (*options["programs"], *options["tolerate"]))
    return {
        "before": before.as_dict(0.0),
        "after": after.as_dict(round(sum(seconds for _name, seconds in others), 2)),
        "others": [{"name": name, "seconds": round(seconds, 2)} for name, seconds in others[:_BUSIEST]],
    }


def _load(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Run the load on a client host, and change nothing else there; at the same time as other clients."""
    if options["start_at"]:
        from ..._benchmark.host import benchmarking

        benchmarking.wait_for(options["start_at"])
    before = load_sample.before_load(host, ())
    ticks = load_sample.ticks(host)  # around the load alone: observing keeps a CPU busy too
    ran = _run_load(host, options["command"] or "", longest_load(options["seconds"]), load.is_awaited)
    ticks_after = load_sample.ticks(host)
    after = load_sample.after_load(host, ())
    others = sum(used for _name, used in load_sample.foreign(before, after, ()))
    seconds = max(0.01, after.counters.host_seconds - before.counters.host_seconds)
    busy = load_sample.busy(ticks, ticks_after, others / seconds)
    return {"load": ran._asdict(), "busy": busy, **_around(before, after, options)}


def _profile(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Switch, settle, and record where the time goes while the load runs."""
    from ..._profile import profiling
    from ..._profile.counters import Counters

    _compared, _served, answer = _ready(host, options)
    if "unhealthy" in answer:
        return {"unhealthy": answer["unhealthy"] or answer["ended"]}
    ran = Thread(target=_run, args=(host, options), daemon=True)

    def goes_on() -> bool:
        return compares(host)

    try:
        counters = Counters(host, min(max(options["seconds"], 1.0), 600.0))
        return {"profile": profiling.profile(host, counters, profiling.FREQUENCY, goes_on, begin=ran.start)}
    except NearmetalError as error:
        return {"profile": {"failed": sentence(str(error))}}
    finally:
        if ran.ident is not None:
            ran.join()


def _look(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Look at the host after a load that ran elsewhere."""
    compared = running.require_running(host, options["run"], REBOOTED if options["reboot"] else SWITCHED)
    return {
        "after": load_sample.after_load(host, options["programs"]).as_dict(None),
        **_in_force(host, compared, options),
    }


def _brought_into_state(host: WritableHost, options: Mapping[str, Any]) -> Tuple[Experiment, load_sample.Served]:
    """The experiment, when the host is in the state of the step, and the programs that served before the switch."""
    served: load_sample.Served = {}

    def observe() -> None:
        served.update(load_sample.served(host, options["programs"]))

    if not options["reboot"]:
        observe()
        way = states.stay if options["stays"] else states.switch
        return way(host, options["run"], options["state"], options["without"]), served
    from . import proposal

    return proposal.arrive(host, options, observe), served


def _compares_clocks(compared: Experiment) -> bool:
    """Whether the states may differ in the clock by which the load would be timed."""
    return second_clock.CONCERN in compared.lease.concerns if compared.reboots else second_clock.needed(compared)


def _in_force(host: WritableHost, compared: Experiment, options: Mapping[str, Any]) -> Dict[str, Any]:
    if compared.reboots:
        from . import proposal

        return {"taken_back": proposal.not_in_force(host, compared, options)}
    return {"taken_back": running.taken_back(host, compared, options["state"], options["without"])}


def _back(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    if not host.exists(REBOOTED.path):
        ended = states.end(host, options["run"])
        return {"ended": ended is not None, **running.set_by_others(host, ended)}
    from . import proposal

    return proposal.take_back(host, options)


_STEPS: Mapping[str, Callable[[WritableHost, Mapping[str, Any]], Dict[str, Any]]] = {
    "measure": _measure,
    "load": _load,
    "profile": _profile,
    "look": _look,
    "back": _back,
}
TASKS = {"prove": Task(OPTIONS, carry_out, forecast)}
