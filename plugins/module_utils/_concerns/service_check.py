# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""service_check: whether named services have threads, sockets and open files that suit the host. Pure. PRIVATE.

It changes nothing: these are settings of the services themselves.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .._error import NearmetalError
from .._facts.facts import Facts
from .._facts.service_load import ServiceLoad
from .._facts.services import UNIT
from .._plan import Plan, Wanted
from .._planning.join import joined
from .._planning.knob import Knob, options_of
from .._planning.skeleton import checking
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
KNOBS = (_SERVICES, _THREADS, _LISTENERS, _FILES)
OPTIONS: Mapping[str, Mapping[str, Any]] = options_of((_SERVICES,))

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
    units = dict.fromkeys(wanted.get("services") or ())
    if not units:
        return _SERVICES.says("not_applicable", "no service is named: name units such as nginx.service")
    loads = facts.service_load or {}
    cpus = len(facts.online)
    return joined(*(_service(unit, loads.get(unit), cpus) for unit in units))


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


CONCERN = checking(
    NAME,
    options=OPTIONS,
    knobs=KNOBS,
    domains=("platform", "topology", "service_load"),
    look=_look,
    require=_named,
)
