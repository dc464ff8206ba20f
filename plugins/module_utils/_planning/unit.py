# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit: the files that a host needs to plan for itself at boot. Pure. PRIVATE to the collection.

The engine installs it when a concern's plan asks for it, and takes it back when no
concern does any more.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from .._facts import systemd
from .._facts.native_files import LAUNCHER, MARK, RULES, SERVICE, TIMER
from .._facts.state_files import ARGUMENT, BAKED, DISABLED, METRICS_VARIABLE
from .._facts.unit import AGENT, UnitFacts
from .._plan import Plan, Value
from .._version import numbers
from .knob import Knob

NAME = "unit"
METRICS = "metrics"  # in results and beside the stored concerns: where the unit exports metrics
SERVICE_NAME = "nearmetal.service"
REFERENCE = "docs/unit.md"
LAST = "multi-user.target"  # what it waits for where a concern has persist: last

_AGENT, _ENABLED, _FILE = (
    Knob(NAME, "agent", lever, REFERENCE, scope="boot") for lever in ("unit.agent", "unit.enabled", "files")
)

_HEAD = f"{MARK}: the unit that plans at each boot. Taken back with the concerns that need it, don't edit.\n"

# No start of it is a job that lasts: with Type=simple it counts as started as soon as it is forked, so a boot is over
# while it still plans, however slow the host. So systemd has no limit of time for it, only one of CPU time, which ends
# a run that spins. Nice= and no CPUWeight=, which would redistribute the CPUs among all services of the host.
#
# SIGTERM reaches the agent alone, which ends between two concerns; a tool that it has started may finish.
#
# Sockets of AF_UNIX and AF_NETLINK carry every ethtool call; without the others nothing leaves the host. A network
# namespace of its own (PrivateNetwork) would hide the very NICs that are tuned, as ProtectHome=yes would hide a disk
# that is mounted at /home, and ProtectKernelModules= the schedulers that are modules: no capability and no system call
# is left to load one anyway.
#
# Each systemd gets the lines for its version. Before 239 it has no filter of system calls.
_SERVICE = """[Unit]
Description=Plan what nearmetal.ec2 decides by itself, for this boot and this size
ConditionPathExists={agent}
ConditionPathExists=!{disabled}
ConditionPathExists=!{baked}
ConditionKernelCommandLine=!{argument}
After=systemd-sysctl.service systemd-tmpfiles-setup.service systemd-modules-load.service
After=irqbalance.service tuned.service{after}
StartLimitIntervalSec=0

[Service]
Type=simple
ExecStart={python} -I {agent} reapply --if-changed
StartLimitInterval=0
LimitCPU=600:660
LimitCPU=660
Nice=10
KillMode=mixed
TimeoutStopSec=300
SyslogIdentifier=nearmetal
{environment}UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectSystem=full
ReadWritePaths=/run -/var/lib/nearmetal -/etc/nearmetal{writable}
ReadWriteDirectories=/run -/var/lib/nearmetal -/etc/nearmetal{writable}
ProtectHome=read-only
PrivateTmp=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectClock=yes
RestrictAddressFamilies=AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
CapabilityBoundingSet=CAP_DAC_OVERRIDE CAP_NET_ADMIN CAP_SYS_ADMIN CAP_SYSLOG
DevicePolicy=closed
DeviceAllow=/dev/kmsg r
"""

# An ENA reset renews queues and interrupts without any event: the timer compares their fingerprint. At boot the NICs'
# events start the service; the timer's first look finds those that were brought up since.
_TIMER = """[Unit]
Description=Check whether queues, interrupts, CPUs or disks have changed since nearmetal.ec2 planned

[Timer]
OnActiveSec=30
OnUnitInactiveSec=120
AccuracySec=30

[Install]
WantedBy=timers.target
"""

_START = 'RUN+="/bin/systemctl --no-block start nearmetal.service"'
_RULES = f"""TEST!="/run/systemd/system", GOTO="nearmetal_end"
SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", ACTION=="add", TEST=="device", {_START}
DEVPATH=="/devices/virtual/*", GOTO="nearmetal_end"
SUBSYSTEM=="net", ACTION=="add|move", {_START}
SUBSYSTEM=="queues", KERNEL=="rx-*", ACTION=="add|remove", {_START}
LABEL="nearmetal_end"
"""

_LAUNCHER = 'exec {python} -I {agent} "$@"\n'


def obstacle(unit: UnitFacts) -> str:
    """Why the unit can't run on this host; empty when it can."""
    if unit.systemd != "booted":
        return "this host doesn't run systemd, which would start the unit"
    if unit.python is None:
        return "there is no Python 3.7 or newer below /usr or /opt, which the unit needs"
    return ""


def plan(unit: UnitFacts, files: Mapping[str, str], agent: str, metrics: str = "", last: bool = False) -> Plan:
    """Install service, timer, rules, command and agent; `agent` is the identity of the agent that this version ships.

    `metrics` is the directory to which it exports; empty for none. `last`: it plans when the boot is over.
    What a newer nearmetal installed is left alone.
    """
    installed, shipped = (numbers((identity or "").split(" ")[0]) for identity in (unit.agent, agent))
    if installed is not None and shipped is not None and installed > shipped:
        reason = (
            f"the installed agent is from nearmetal {_version(unit.agent)}, newer than {_version(agent)}:"
            " it is left alone"
        )
        return _AGENT.says("advice", reason, unit.agent)
    changes: List[Tuple[Knob, Value, Value]] = [
        (_FILE.at(path), files.get(path), text)
        for path, text in texts(unit.python or "", metrics, unit.version, last).items()
    ]
    changes.append((_ENABLED, unit.enabled, True))
    # Last: an upgraded agent can't be put back, so no later change may fail.
    changes.append((_AGENT, unit.agent, agent))
    purpose = "what is left to nearmetal is planned again at each boot and for new devices"
    actions = tuple(knob.action("auto", now, goal, purpose) for knob, now, goal in changes if now != goal)
    when = f"each boot, after {LAST}" if last else "each boot"
    reason = f"plans at {when}, for each new NIC or disk, and every two minutes if queues or interrupts changed"
    if unit.switched_off:
        reason += f"; switched off by {unit.switched_off}"
    status = "would_change" if actions else "ok"
    return Plan(actions, (_AGENT.finding(status, reason, _version(unit.agent), _version(agent)),))


def summarized(plan_of_restore: Plan) -> Plan:
    """The plan that removes the unit, with one finding for all its files."""
    findings = [finding for finding in plan_of_restore.findings if finding.status == "would_change"]
    others = tuple(finding for finding in plan_of_restore.findings if finding not in findings)
    removed = tuple(finding._replace(knob=_AGENT.name, where="", now=None, wanted=None) for finding in findings[:1])
    return plan_of_restore._replace(findings=removed + others)


def texts(python: str, metrics: str = "", version: Optional[int] = None, last: bool = False) -> Dict[str, str]:
    """Path → text of the files beside the agent, for systemd of this version (None: unknown)."""
    names = {"agent": AGENT, "disabled": DISABLED, "baked": BAKED, "argument": ARGUMENT, "python": python}
    names["after"] = f" {LAST}" if last else ""
    # A directory that is gone must not keep the unit from its plan.
    names["writable"] = f" -{metrics}" if metrics else ""
    names["environment"] = f"Environment={METRICS_VARIABLE}={metrics}\n" if metrics else ""
    return {
        SERVICE: _HEAD + systemd.lines_for(version, _SERVICE.format(**names)),
        TIMER: _HEAD + _TIMER,
        RULES: _HEAD + _RULES,
        LAUNCHER: "#!/bin/sh\n" + _HEAD + _LAUNCHER.format(**names),
    }


def _version(identity: "str | None") -> "str | None":
    return identity.split(" ")[0] if identity else None
