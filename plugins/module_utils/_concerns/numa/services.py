# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""numa: services bound to nodes by drop-ins, which a generator makes at each boot. Pure. PRIVATE to the collection.

A drop-in on disk that names a node would keep the service from starting (exit
code 242) once the host is smaller and lacks that node. So the file on disk is a
generator (systemd.generator(7)): at each boot it asks the kernel for the node, its CPUs
and the device's node, and makes no drop-in for a node that is absent or has no
memory.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..._error import NearmetalError
from ..._facts import systemd
from ..._facts.facts import Facts
from ..._facts.native_files import GENERATOR, MARK
from ..._facts.services import UNIT, Process, listed, shown
from ..._plan import Finding, Plan, Wanted, joined
from ..._planning.knob import Knob
from ..._words import shown as shown_value

NAME = "numa"
PLACES = ("nodes", "near_interface", "near_device")
SERVICES = Knob(
    NAME,
    "services",
    reference="AWS, 2017",
    takes_effect="boot",
    spec={
        "type": "list",
        "elements": "dict",
        "options": {
            "unit": {"type": "str", "required": True},
            "nodes": {"type": "str"},
            "near_interface": {"type": "str"},
            "near_device": {"type": "str"},
            "policy": {"type": "str", "choices": ["bind", "preferred", "interleave"], "default": "bind"},
        },
    },
)
_GENERATOR = Knob(NAME, "services", "files", "systemd.generator(7)", place=GENERATOR, scope="boot", takes_effect="boot")

# Red Hat documents NUMAPolicy= for the systemd 239 of RHEL 8 too.
_BACKPORTED = ("rhel", "centos", "rocky", "almalinux", "ol")

# The policy's word in numa_maps, and numactl's option for it.
_KERNELS = {"bind": "bind", "preferred": "prefer", "interleave": "interleave"}
_NUMACTL = {"bind": "membind", "preferred": "preferred", "interleave": "interleave"}

_SCRIPT = f"""#!/bin/sh
{MARK} (concern numa): restore with state: restored, don't edit
# systemd runs this at each boot and each reload. A node that isn't there, or has no memory, binds nothing: the
# service starts as it did. A node without CPUs binds memory alone.
out=$1
memory() {{
    [ "${{4:-0}}" != 0 ]  # Node 1 MemTotal: 8388608 kB
}}
bind() {{
    mask='' cpus=''
    for number in $3; do
        [ -r "/sys/devices/system/node/node$number/cpulist" ] || return 0
        memory $(/bin/cat "/sys/devices/system/node/node$number/meminfo") || return 0
        # Not by read: dash asks for single bytes, to which the kernel answers that there are none.
        mask="$mask $number" cpus="$cpus $(/bin/cat "/sys/devices/system/node/node$number/cpulist")"
    done
    cpus=$(echo $cpus)
    /bin/mkdir -p "$out/$1.d"
    printf '[Service]\\nNUMAPolicy=%s\\nNUMAMask=%s\\n' "$2" "${{mask# }}" > "$out/$1.d/90-nearmetal-numa.conf"
    [ -z "$cpus" ] || printf 'CPUAffinity=\\nCPUAffinity=%s\\n' "$cpus" >> "$out/$1.d/90-nearmetal-numa.conf"
}}
near() {{
    [ -r "/sys/bus/pci/devices/$3/numa_node" ] || return 0
    bind "$1" "$2" "$(/bin/cat "/sys/bus/pci/devices/$3/numa_node")"
}}
"""


class _Binding(NamedTuple):
    """One service, as it is to run."""

    unit: str
    policy: str
    nodes: Tuple[int, ...]
    line: str  # of the generator


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for `services`; without any, it removes the generator.

    Raises NearmetalError for an entry that makes no sense.
    """
    entries = SERVICES.value(wanted) or []
    bindings: List[_Binding] = []
    findings: List[Finding] = []
    entry_of_unit: Dict[str, int] = {}
    for number, entry in enumerate(entries):
        name = f"numa.services[{number}]"
        unit = _unit(name, entry, entry_of_unit)
        entry_of_unit[unit] = number
        result = _binding(name, unit, entry, facts, wanted)
        if isinstance(result, _Binding):
            bindings.append(result)
        else:
            findings += result.findings
    version = facts.unit.version
    if entries and not _known_to_systemd(facts, version):
        return joined(_file(facts, None, wanted), *(_too_old_systemd(binding, version) for binding in bindings))
    text = _SCRIPT + "".join(f"{binding.line}\n" for binding in bindings) if bindings else None
    written = (facts.files.get(GENERATOR) or "").splitlines()
    for binding in bindings:
        findings += _findings(facts, binding, binding.line in written)
    return joined(_file(facts, text, wanted), Plan(findings=tuple(findings)))


def _unit(name: str, entry: Mapping[str, Any], entry_of_unit: Mapping[str, int]) -> str:
    unit = str(entry["unit"])
    if not UNIT.fullmatch(unit):
        raise NearmetalError(
            f"{name}.unit must be the full name of a service, such as postgresql.service, not {shown_value(unit)}"
        )
    if unit in entry_of_unit:
        raise NearmetalError(f"{name}.unit: {unit} is in services[{entry_of_unit[unit]}] already")
    if sum(entry.get(place) is not None for place in PLACES) != 1:
        raise NearmetalError(f"{name} ({unit}): give one of nodes, near_interface and near_device")
    return unit


def _binding(name: str, unit: str, entry: Mapping[str, Any], facts: Facts, wanted: Wanted) -> "_Binding | Plan":
    policy = str(entry.get("policy") or "bind")
    if entry.get("nodes") is not None:
        try:
            nodes = listed(str(entry["nodes"]))
        except NearmetalError as error:
            raise NearmetalError(f"{name}.nodes: {error}") from None
        present = [node.id for node in facts.nodes]
        absent = [node for node in nodes if node not in present]
        if absent or not nodes:
            sentence = f"{name}.nodes: this host has nodes {shown(present)}, not {shown_value(entry['nodes'])}"
            return SERVICES.at(unit).impossible(wanted, sentence)
        empty = _without_memory(facts, nodes)
        if empty:
            return SERVICES.at(unit).impossible(wanted, f"{name}.nodes: {shown_value(entry['nodes'])}: {empty}")
        if policy == "preferred" and len(nodes) != 1:
            raise NearmetalError(f"{name} ({unit}): policy preferred takes one node, not {entry['nodes']}")
        numbers = " ".join(map(str, nodes))
        return _Binding(unit, policy, nodes, f"bind '{unit}' {policy} '{numbers}'")
    option = "near_interface" if entry.get("near_interface") is not None else "near_device"
    device = facts.numa.devices.get(str(entry[option]))
    if device is None:
        sentence = f"{name}.{option}: there is no {entry[option]} on this host's PCI bus"
        return SERVICES.at(unit).impossible(wanted, sentence)
    if device.node is None:
        of_device = "" if entry[option] == device.address else f" ({device.address})"
        reason = f"the kernel names no node for {entry[option]}{of_device}"
        return SERVICES.at(unit).says("not_applicable", reason)
    empty = _without_memory(facts, (device.node,))
    if empty:
        return SERVICES.at(unit).says("not_applicable", f"{entry[option]} ({device.address}): {empty}")
    return _Binding(unit, policy, (device.node,), f"near '{unit}' {policy} {device.address}")


def _without_memory(facts: Facts, nodes: Tuple[int, ...]) -> str:
    """Why no memory policy can name these nodes; empty when one can."""
    empty = [node.id for node in facts.nodes if node.id in nodes and node.memory == 0]
    return f"node {shown(empty)} has no memory" if empty else ""


def _known_to_systemd(facts: Facts, version: Optional[int]) -> bool:
    major = (facts.platform.distribution_version or "").split(".")[0]
    rhel_8 = facts.platform.distribution in _BACKPORTED and major == "8"
    return systemd.reads(version, "NUMAPolicy=") or (rhel_8 and version is not None)


def _too_old_systemd(binding: _Binding, version: Optional[int]) -> Plan:
    nodes = shown(binding.nodes)
    seen = f"systemd {version}" if version is not None else "this host's systemd"
    start = f"/usr/bin/numactl --cpunodebind={nodes} --{_NUMACTL[binding.policy]}={nodes}"
    reason = (
        f"{seen} has no NUMAPolicy= (systemd 243 has), and nearmetal doesn't rewrite ExecStart=: run"
        f" `systemctl edit {binding.unit}`, add an empty ExecStart=, then ExecStart={start} and the"
        " unit's own command"
    )
    return SERVICES.at(binding.unit).says("refused", reason)


def _findings(facts: Facts, binding: _Binding, written: bool) -> List[Finding]:
    """The findings for one service: whether it is bound, and whether its running process is."""
    numa, knob, unit = facts.numa, SERVICES.at(binding.unit), binding.unit
    process = numa.processes.get(unit)
    goal = f"{binding.policy} {shown(binding.nodes)}"
    now = _now(process) if process is not None else None
    findings = []
    if not written:
        reason = (
            _REASONS[binding.policy] if _cpus(facts, binding) else "its memory comes from the node, which has no CPUs"
        )
        findings.append(knob.finding("would_change", f"from its next start on, {reason}", now, goal))
    if process is None:
        absent = _file_of(unit) not in numa.units
        if written:
            reason = "it isn't installed yet" if absent else "it isn't running; its next start binds it"
            findings.append(knob.finding("ok", reason, None, goal))
        elif absent:
            findings.append(knob.finding("advice", f"this host has no {unit} yet: check its name"))
    elif process.policy is None or process.cpus is None:
        findings.append(knob.finding("unknown", f"CPUs and memory of process {process.pid} can't be read", now, goal))
    elif not _is_bound(facts, process, binding):
        reason = f"process {process.pid} isn't bound like that yet: run `systemctl restart {unit}` when it suits"
        findings.append(knob.finding("needs_restart", reason, now, goal))
    elif written:
        findings.append(
            knob.finding(
                "ok", f"process {process.pid} runs on the nodes' CPUs and takes its memory as wanted", now, goal
            )
        )
    return findings


_REASONS = {
    "bind": "its threads and its memory stay on the node, and an allocation fails when the node is full",
    "preferred": "its threads stay on the node, its memory as long as there is room",
    "interleave": "its memory is spread evenly over the nodes",
}


def _cpus(facts: Facts, binding: _Binding) -> Set[int]:
    """The nodes' CPUs that are online; empty for nodes that only have memory."""
    return {cpu for node in facts.nodes if node.id in binding.nodes for cpu in node.cpus}


def _is_bound(facts: Facts, process: Process, binding: _Binding) -> bool:
    """Whether the process runs on the nodes' CPUs alone, not counting offline ones, and its memory has the policy."""
    of_nodes = _cpus(facts, binding)
    allowed = set(listed(process.cpus or "")).intersection(facts.online)
    placed = not of_nodes or (bool(allowed) and allowed <= of_nodes)
    return placed and process.policy == (_KERNELS[binding.policy], binding.nodes)


def _now(process: Process) -> str:
    word, nodes = process.policy or ("unknown", ())
    return f"CPUs {process.cpus}, memory {word} {shown(nodes)}".strip()


def _file_of(unit: str) -> str:
    """The unit's file name: for an instance, its template's."""
    name, at, _instance = unit.partition("@")
    return f"{name}@.service" if at else unit


def _file(facts: Facts, text: Optional[str], wanted: Wanted) -> Plan:
    present = facts.files.get(GENERATOR)
    if present == text:
        return Plan()
    reason = "no service is bound any longer" if text is None else "systemd runs it to write the services' drop-ins"
    return Plan((_GENERATOR.action(_GENERATOR.wanted_by(wanted), present, text, reason),))
