# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPUs that dedicated interrupts leave to the application: named, kept in a file, given to services. Pure. PRIVATE.

Cores for interrupts bring nothing if the application uses them too (seastar issue
2350). The list follows from the size of the host, so the unit writes it again at each boot.
"""

from __future__ import annotations

import math
from typing import FrozenSet, List, Mapping, Sequence

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._facts.native_files import COMPUTE_CPUS, COMPUTE_GENERATOR, GENERATOR, MARK
from ..._facts.network import cpus, listed
from ..._facts.services import UNIT, Process
from ..._facts.topology import TopologyFacts
from ..._plan import Plan, Wanted, joined
from ..._planning.knob import Knob
from ..._planning.native import change_file
from ..._words import counted, shown

NAME = "network_irq"
_CPUS = Knob(
    NAME,
    "compute_cpus",
    "files",
    "seastar on GitHub, issue 2350",
    option="policy",
    place=COMPUTE_CPUS,
    takes_effect="boot",
)
_UNITS = Knob(
    NAME,
    "compute_units",
    "files",
    "seastar on GitHub, issue 2350",
    {"type": "list", "elements": "str"},
    place=COMPUTE_GENERATOR,
    scope="boot",
    takes_effect="boot",
)
# What the CPUs that were kept for interrupts did with their time.
_USED = Knob(NAME, "irq_used", reference="seastar on GitHub, issue 2350; unmeasured")
KNOBS = (_CPUS, _UNITS, _USED)
_FULL = 0.7  # of a CPU's time: beyond it packets wait for it, because they come in bursts

_FILE = f"""{MARK} (concern network_irq): restore with state: restored, don't edit
COMPUTE_CPUS={{}}
"""

# On a smaller host, a list that names none of its CPUs would keep a service from starting.
SCRIPT = f"""#!/bin/sh
{MARK} (concern network_irq): restore with state: restored, don't edit
# systemd runs this at each boot and each reload. A list that is another host's binds nothing.
[ -r {COMPUTE_CPUS} ] || exit 0
. {COMPUTE_CPUS}
read -r online < /sys/devices/system/cpu/online
[ "${{{{COMPUTE_CPUS##*[,-]}}}}" -le "${{{{online##*[,-]}}}}" ] || exit 0
for unit in {{}}; do
    /bin/mkdir -p "$1/$unit.d"
    printf '[Service]\\nCPUAffinity=\\nCPUAffinity=%s\\n' "$COMPUTE_CPUS" > "$1/$unit.d/90-nearmetal-compute.conf"
done
"""


def busy_cpus(topology: TopologyFacts, assigned: Mapping[str, Mapping[int, int]]) -> FrozenSet[int]:
    """The CPUs that get interrupts of a NIC, and those that share a core with them."""
    busy = {cpu for cpus_of_queues in assigned.values() for cpu in cpus_of_queues.values()}
    return frozenset(busy.union(*(topology.siblings(cpu) for cpu in busy)))


def plan_compute(facts: Facts, busy: FrozenSet[int], wanted: Wanted) -> Plan:
    """The plan that lists the CPUs that share no core with a CPU that gets interrupts of a NIC.

    Raises NearmetalError for a name that isn't the full name of a service.
    """
    free_cpus = listed(cpu for cpu in facts.online if cpu not in busy)
    advice = f"run the application on CPUs {free_cpus}: "
    if not wanted.get("persist"):
        return _CPUS.at("").says(
            "advice", f"{advice}CPUAffinity={free_cpus} in its unit, or numactl --physcpubind={free_cpus}", free_cpus
        )
    reason = f"{advice}its unit's CPUAffinity= (compute_units), or numactl --physcpubind=$COMPUTE_CPUS"
    return joined(change_file(facts, _CPUS, _FILE.format(free_cpus), "auto", reason), _units(facts, free_cpus, wanted))


def _units(facts: Facts, free_cpus: str, wanted: Wanted) -> Plan:
    """The services that systemd starts on these CPUs, by drop-ins that it makes at each boot."""
    names = sorted(set(_UNITS.value(wanted) or ()))
    wrong = [name for name in names if not UNIT.fullmatch(name)]
    if wrong:
        raise NearmetalError(
            f"network_irq.compute_units: {shown(wrong[0])} isn't the full name of a service, such as x.service"
        )
    generator = facts.files.get(GENERATOR) or ""
    bound = [name for name in names if f"'{name}'" in generator]
    refused = [_UNITS.at(name, name).says("refused", "numa.services already binds it to a node") for name in bound]
    names = [name for name in names if name not in bound]
    if not names:
        return joined(*refused)
    reason = f"from the next start on, systemd runs {', '.join(names)} on the CPUs without interrupts of a NIC"
    plan = change_file(facts, _UNITS, SCRIPT.format(" ".join(names)), _UNITS.wanted_by(wanted), reason)
    return joined(plan, *refused, *_pending_restarts(facts.services, names, free_cpus))


def _pending_restarts(processes: Mapping[str, Process], names: Sequence[str], free_cpus: str) -> List[Plan]:
    """The findings for services that were started before and so run on other CPUs."""
    plans: List[Plan] = []
    for name in names:
        process = processes.get(name)
        if process is not None and process.cpus is not None and not set(cpus(process.cpus)) <= set(cpus(free_cpus)):
            reason = f"process {process.pid} still runs on other CPUs: run `systemctl restart {name}` when it suits"
            plans.append(_UNITS.at(name, name).says("needs_restart", reason, process.cpus, free_cpus))
    return plans


def used(load: Mapping[int, float], dedicated: FrozenSet[int]) -> Plan:
    """What the CPUs that only take interrupts needed of their time since boot, and how many would do."""
    if not dedicated or not all(cpu in load for cpu in dedicated):
        return Plan()
    needed = sum(load[cpu] for cpu in dedicated)
    enough = max(1, math.ceil(needed / _FULL))
    lead = f"{counted(len(dedicated), 'CPU')} for interrupts, which used {needed:.1f} of them since boot, on average"
    if enough > len(dedicated):
        return _USED.at("").says("advice", f"{lead}: too few for bursts; name {enough} with irq_cpus")
    if enough < len(dedicated):
        back = len(dedicated) - enough
        return _USED.at("").says(
            "advice",
            f"{lead}: if that is as busy as the host becomes, give back {back}, and name {enough} with irq_cpus",
        )
    return _USED.at("").says("ok", lead)
