# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""service_check: whether services have threads, sockets and limits that suit the host and themselves. Pure. PRIVATE.

It changes nothing: these are settings of the services themselves.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Sequence

from .._error import NearmetalError
from .._facts.facts import Facts
from .._facts.service_load import ServiceLoad
from .._facts.services import UNIT
from .._facts.sysctl import ZONE_RECLAIM
from .._number import is_number
from .._parameters import MEMORY, NETWORK_STACK
from .._plan import Plan, Wanted, joined
from .._planning.knob import Knob, options_of
from .._planning.skeleton import checking
from .._programs.program import UNLIMITED, Check, Wish
from .._programs.registry import NAMES as PROGRAMS
from .._programs.registry import program_of
from .._words import shown

NAME = "service_check"

_SERVICES = Knob(
    NAME,
    "services",
    spec={"type": "list", "elements": "str", "default": []},
    reference="Aerospike, 2014",
)
_THREADS = Knob(NAME, "threads", reference="Aerospike, 2014; Linux kernel, psi")
_LISTENERS = Knob(NAME, "listeners", reference="Netflix, 2016; Linux 3.9, SO_REUSEPORT")
_FILES = Knob(NAME, "open_files", reference="getrlimit(2), RLIMIT_NOFILE")
_START = Knob(NAME, "start", reference="docs/programs.md")
KNOBS = (_SERVICES, _THREADS, _LISTENERS, _FILES, _START)

# A tenth of the time waiting for a CPU is ten times what a host of its own should show; nobody measured a better limit.
_WAITING_PER_MILLE = 100
_FULL_PERCENT = 80
# A main process keeps the socket that its only worker waits at.
_MAIN_AND_WORKER = 2
_UNMEASURED = "our limit, unmeasured"


def _named(wanted: Wanted) -> None:
    for unit in wanted.get("services") or ():
        if not UNIT.fullmatch(unit):
            raise NearmetalError(f"service_check.services must name units such as nginx.service, not {shown(unit)}")


def _look(facts: Facts, wanted: Wanted) -> Plan:
    loads = facts.service_load
    units = dict.fromkeys(wanted.get("services") or (unit for unit, load in loads.items() if load.programs))
    if not units:
        reason = "no service runs a program that nearmetal knows: name units such as nginx.service"
        return _SERVICES.says("not_applicable", reason)
    cpus = len(facts.online)
    looks = [_service(unit, loads.get(unit), cpus) for unit in units]
    return joined(
        *looks, *(_start(facts, unit, loads[unit]) for unit in units if unit in loads and loads[unit].programs)
    )


def _service(unit: str, load: Optional[ServiceLoad], cpus: int) -> Plan:
    if load is None or not load.processes:
        reason = "it doesn't run: systemd has no control group of this name, or no process in it"
        return _SERVICES.at(unit, unit).says("unknown", reason)
    return joined(_threads(unit, load, cpus), _listeners(unit, load), _files(unit, load))


def _threads(unit: str, load: ServiceLoad, cpus: int) -> Plan:
    knob, threads = _THREADS.at(unit, unit), load.threads
    if threads is None or not cpus:
        return knob.says("unknown", "its control group has no pids.current (systemd's TasksAccounting)")
    now, limit = f"{threads} threads", f"{cpus} vCPUs"
    if threads <= cpus:
        return knob.says("ok", "no more threads than vCPUs", now, limit)
    if load.waiting is None:
        reason = (
            "more threads than vCPUs; whether they wait for CPUs isn't known, because this kernel doesn't measure"
            " pressure (kernel argument psi=1)"
        )
        return knob.says("unknown", reason, now, limit)
    share = f"{load.waiting / 10:.0f} % of the last five minutes"
    if load.waiting <= _WAITING_PER_MILLE:
        return knob.says("ok", f"some thread waited for a CPU in {share}", now, limit)
    reason = (
        f"some of its threads waited for a CPU in more than 10 % of the last five minutes ({_UNMEASURED}):"
        " give it about as many working threads as vCPUs, or give the host fewer services"
    )
    return knob.says("advice", reason, f"{now}, waiting in {share}", limit)


def _listeners(unit: str, load: ServiceLoad) -> Plan:
    knob = _LISTENERS.at(unit, unit)
    if load.listeners is None:
        return knob.says("unknown", "the open files of its processes can't be read: that needs root")
    shared = {
        str(port): processes
        for port, (sockets, processes) in load.listeners.items()
        if sockets == 1 and processes > _MAIN_AND_WORKER
    }
    if not load.listeners:
        return knob.says("ok", "it listens on no TCP port")
    if not shared:
        reason = "at most two of its processes share a socket; whether threads share one can't be seen"
        return knob.says("ok", reason, {str(port): queue[0] for port, queue in load.listeners.items()})
    reason = (
        "several processes wait at one socket, which hands its connections out unevenly and wakes more of them than it"
        " needs: let each open its own with SO_REUSEPORT (nginx: `listen … reuseport`), and measure it; what it gains"
        " here is unmeasured"
    )
    return knob.says("advice", reason, {port: f"{processes} processes" for port, processes in shared.items()})


def _files(unit: str, load: ServiceLoad) -> Plan:
    knob = _FILES.at(unit, unit)
    if load.files is None:
        return knob.says("unknown", "the limits and open files of its processes can't be read: that needs root")
    used, most = load.files
    now, limit = f"{used * 100 / most:.1f} %", f"{_FULL_PERCENT} %"
    if used * 100 <= most * _FULL_PERCENT:
        reason = f"each of its processes has at most {_FULL_PERCENT} % of the open files that it may have"
        return knob.says("ok", reason, now, limit)
    reason = (
        f"one of its processes has more than {_FULL_PERCENT} % of the {most} open files that it may have"
        f" ({_UNMEASURED}): at the limit it can take no connection; raise LimitNOFILE in its unit"
    )
    return knob.says("advice", reason, now, limit)


def _start(facts: Facts, unit: str, load: ServiceLoad) -> Plan:
    """What the service's programs look at when they start, and would find wrong."""
    plans = []
    for name in PROGRAMS:
        program = program_of(name)
        version = next((load.programs[process] for process in program.processes if process in load.programs), None)
        if version is None:
            continue
        known, undecided = program.asks(version, facts.platform.architecture)
        checked = [wish for wish in known if wish.checked]
        by_version = sorted({wish.knob for wish in undecided if wish.checked})
        wrong = [*_unfit(facts, load, program.checks), *filter(None, (_unmet(facts, wish) for wish in checked))]
        pages = [*(check.page for check in program.checks), *(wish.page for wish in checked)]
        depends = f"; what it asks of {', '.join(by_version)} depends on its version, which isn't known here"
        unknown = depends if by_version else ""
        source = "; ".join(dict.fromkeys(page.reference for page in pages))
        knob = _START.at(unit, unit)._replace(reference=source)
        if wrong:
            remedy = f": tune_program: {name} sets what is the host's, a drop-in of {unit} its limits{unknown}"
            plans.append(knob.says("advice", f"{program.title} checks this at its start: {'; '.join(wrong)}{remedy}"))
        elif pages:
            plans.append(knob.says("ok", f"{program.title} has nothing to say of this host when it starts{unknown}"))
    return joined(*plans)


def _unfit(facts: Facts, load: ServiceLoad, checks: Iterable[Check]) -> Iterator[str]:
    for what, least, _page, otherwise in checks:
        text = facts.sysctl.get(what, "") if "." in what else str(load.limits.get(what, ""))
        if is_number(text) and int(text) < least:
            yield f"{what} is {text}, not {'unlimited' if least == UNLIMITED else least}, so {otherwise}"


def _unmet(facts: Facts, wish: Wish) -> str:
    """What the host has in place of a wish that the program checks; empty where it has what is wished, or lacks it."""
    concern, _dot, option = wish.knob.partition(".")
    if concern == "hugepages":
        now = getattr(facts.hugepages, option, None)
        what = "transparent huge pages are" if option == "thp" else f"{wish.knob} is"
        return "" if now is None or wish.suits(now) else f"{what} {now}, not {wish.value}"
    parameter = next((one for one in (*MEMORY, *NETWORK_STACK) if one.option == option), None)
    key, choices = (parameter.key, parameter.spec.get("choices")) if parameter else (ZONE_RECLAIM, None)
    text, bound = facts.sysctl.get(key, ""), parameter.bound if parameter else ""
    if not is_number(text) or _fits(wish, int(text), choices, bound):
        return ""
    return f"{key} is {text}, not {choices.index(wish.value) if choices else wish.value}"


def _fits(wish: Wish, number: int, choices: Optional[Sequence[str]], bound: str) -> bool:
    if choices:
        return number < len(choices) and wish.suits(choices[number])
    return number == wish.value or bool(bound and (number < wish.value) == (bound == "most"))


CONCERN = checking(
    NAME,
    options=options_of((_SERVICES,)),
    knobs=KNOBS,
    domains=("platform", "topology", "hugepages", "sysctl", "service_load"),
    look=_look,
    require=_named,
)
