# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPUs that dedicated interrupts leave to the application: named, kept in a file, given to services. Pure. PRIVATE.

Without that, cores of their own for interrupts only cost (seastar issue 2350). The
list follows from the size of the host, so the unit writes it anew at each boot.
"""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.native_files import (
    COMPUTE_CPUS,
    COMPUTE_GENERATOR,
    GENERATOR,
    MARK,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.network import cpus, listed
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.services import UNIT, Process
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.topology import TopologyFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.network_choice import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

NAME = "network_irq"
KNOB, UNITS = "compute_cpus", "compute_units"
REFERENCE = "seastar issue 2350"

_FILE = f"""{MARK} (concern network_irq): restore with state: restored, don't edit
COMPUTE_CPUS={{}}
"""

# The list of a bigger host would keep a service from starting where none of its CPUs is there.
SCRIPT = f"""#!/bin/sh
{MARK} (concern network_irq): restore with state: restored, don't edit
# systemd runs this at each boot and each reload. A list that is another host's binds nothing.
[ -r {COMPUTE_CPUS} ] || exit 0
. {COMPUTE_CPUS}
read -r online < /sys/devices/system/cpu/online
[ "${{{{COMPUTE_CPUS##*[,-]}}}}" -le "${{{{online##*[,-]}}}}" ] || exit 0
for unit in {{}}; do
    /bin/mkdir -p "$1/$unit.d"
    printf '[Service]\\nCPUAffinity=%s\\n' "$COMPUTE_CPUS" > "$1/$unit.d/90-nearmetal-compute.conf"
done
"""


def plan_compute(facts: Facts, topology: TopologyFacts, found: Mapping[str, Mapping[int, int]], wanted: Wanted) -> Plan:
    """What to say and to write of the CPUs that get no interrupt of a NIC, and share no core with one that does.

    Raises NearmetalError for a service's name that is none.
    """
    busy = {cpu for one in found.values() for cpu in one.values()}
    busy |= {sibling for cpu in busy for sibling in topology.siblings(cpu)}
    rest = listed(cpu for cpu in topology.cpus_online or () if cpu not in busy)
    told = f"run the application on CPUs {rest}: "
    if not wanted.get("persist"):
        reason = f"{told}CPUAffinity={rest} in its unit, or numactl --physcpubind={rest}"
        return Plan(findings=(Finding(NAME, KNOB, "advice", reason, now=rest, reference=REFERENCE),))
    reason = f"{told}its unit's CPUAffinity= (compute_units), or numactl --physcpubind=$COMPUTE_CPUS"
    return joined([_file(facts, COMPUTE_CPUS, _FILE.format(rest), KNOB, reason, "auto"), _units(facts, rest, wanted)])


def _units(facts: Facts, rest: str, wanted: Wanted) -> Plan:
    """The services that systemd starts on these CPUs, by drop-ins that it makes at each boot."""
    names = sorted(set(wanted.get(UNITS) or ()))
    wrong = [name for name in names if not UNIT.fullmatch(name)]
    if wrong:
        raise NearmetalError(
            f"network_irq.compute_units: {shown(wrong[0])} isn't the full name of a service, such as x.service"
        )
    generator = (facts.files or {}).get(GENERATOR) or ""
    bound = [name for name in names if f"'{name}'" in generator]
    told = tuple(_finding(name, "refused", "numa.services binds it to a node already") for name in bound)
    names = [name for name in names if name not in bound]
    if not names:
        return Plan(findings=told)
    reason = f"{', '.join(names)} from the next start on where no interrupts are"
    text = SCRIPT.format(" ".join(names))
    plan = _file(facts, COMPUTE_GENERATOR, text, UNITS, reason, wanted.wanted_by(UNITS), "boot")
    return joined([plan, Plan(findings=(*told, *_started(facts.services or {}, names, rest)))])


def _started(processes: Mapping[str, Process], names: Sequence[str], rest: str) -> Tuple[Finding, ...]:
    """The services that run elsewhere, because they were started before."""
    found: List[Finding] = []
    for name in names:
        process = processes.get(name)
        if process is not None and process.cpus is not None and not set(cpus(process.cpus)) <= set(cpus(rest)):
            reason = f"process {process.pid} was started before; `systemctl restart {name}` when it suits"
            found.append(_finding(name, "needs_restart", reason, process.cpus, rest))
    return tuple(found)


def _finding(unit: str, status: str, reason: str, now: Optional[str] = None, goal: Optional[str] = None) -> Finding:
    return Finding(NAME, UNITS, status, f"{unit}: {reason}", now, goal, REFERENCE, unit)


def _file(facts: Facts, path: str, text: str, knob: str, reason: str, by: str, scope: str = "runtime") -> Plan:
    present = (facts.files or {}).get(path)
    status = "ok" if present == text else "would_change"
    finding = Finding(NAME, knob, status, reason, path if present else None, path, REFERENCE, path)
    if present == text:
        return Plan(findings=(finding,))
    action = Action(
        concern=NAME,
        knob=knob,
        what="files",
        where=path,
        before=present,
        after=text,
        scope=scope,
        wanted_by=by,
        reason=reason,
        reference=REFERENCE,
    )
    return Plan((action,), (finding,))
