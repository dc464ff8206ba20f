# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd of each version as it reads units, and as its tools read their options.

Written apart from the engine, after the pages of systemd 257 ("Added in version"), the directives that the programs of
229, 237, 245, 247, 249, 252, 255 and 257 list (`systemd --dump-configuration-items`), and the sources of Red Hat's 219.
What isn't here is unknown to all of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

OLDEST = 219
VERSIONS = (219, 229, 232, 234, 237, 239, 241, 247, 252, 255, 257)

_DIRECTIVES: Dict[str, Dict[int, str]] = {
    "Unit": {
        219: "Description ConditionPathExists ConditionKernelCommandLine After DefaultDependencies IgnoreOnIsolate",
        229: "StartLimitInterval",
        230: "StartLimitIntervalSec",
    },
    "Service": {
        219: "Type ExecStart StartLimitInterval LimitCPU Nice KillMode TimeoutStopSec SyslogIdentifier Environment"
        " UMask NoNewPrivileges ProtectSystem ReadWriteDirectories ProtectHome PrivateTmp RestrictAddressFamilies"
        " SystemCallArchitectures SystemCallFilter CapabilityBoundingSet DevicePolicy DeviceAllow CPUAffinity",
        231: "ReadWritePaths RestrictRealtime MemoryDenyWriteExecute",
        232: "ProtectControlGroups",
        233: "RestrictNamespaces",
        235: "LockPersonality",
        242: "ProtectHostname RestrictSUIDSGID",
        243: "NUMAPolicy NUMAMask",
        245: "ProtectClock",
    },
    "Timer": {219: "OnActiveSec OnUnitInactiveSec AccuracySec"},
    "Mount": {219: "What Where Type Options"},
    "Install": {219: "WantedBy"},
    "Network": {246: "ManageForeignRoutes", 249: "ManageForeignRoutingPolicyRules"},  # of networkd.conf
}
# Values that came later than their directive.
_VALUES: Dict[str, int] = {"ProtectSystem=strict": 232, r"LimitCPU=\d+:\d+": 229}
_GROUPS: Dict[str, int] = {"@basic-io": 231, "@default": 231, "@system-service": 239}  # of system calls
_OPTIONS: Dict[str, Dict[str, int]] = {
    "systemctl": {"--property": 219, "--wait": 232, "is-system-running --wait": 240},  # 232 to 239 don't wait
    "udevadm": {"--reload": 219},
}


class Reading(NamedTuple):
    """How systemd of a version takes a file."""

    ignored: List[str]  # lines
    killed: bool  # the service, at its first system call


def version(root: Path) -> int:
    """The version of systemd below a root."""
    names = [
        path.name for lib in ("lib", "usr/lib", "usr/lib64") for path in root.glob(f"{lib}/**/systemd/lib*-shared-*")
    ]
    return max((int(re.findall("[0-9]+", name)[0]) for name in names), default=OLDEST)


def changes(number: int) -> Dict[str, Optional[str]]:
    """The files by which a host of tests/hosts has this version; before 231 none has it in its name."""
    library = "/usr/lib/systemd/libsystemd-shared-{}.so"
    return {library.format(252): None, **({library.format(number): ""} if number > 230 else {})}


def read(number: int, text: str) -> Reading:
    """Read a unit, a drop-in or a file of networkd.conf.d."""
    ignored, killed = [], False
    for section, line in _lines(text):
        name, _equals, value = line.partition("=")
        late = [first for form, first in _VALUES.items() if re.fullmatch(form, line)]
        if number < max([_since(_DIRECTIVES[section], name), *late]):
            ignored.append(line)
        elif name == "SystemCallFilter":
            unknown = [word for word in value.split() if word[0] == "@" and number < _GROUPS.get(word, 10**6)]
            ignored += unknown
            killed = killed or (bool(unknown) and not value.startswith("~"))  # the filter allows the rest alone
    return Reading(ignored, killed)


def require_known(number: int, argv: Sequence[str]) -> None:
    """Raise NearmetalError as a run of the tool does that doesn't know an option."""
    tool, known = argv[0], _OPTIONS.get(argv[0])
    for word in argv[1:] if known is not None else ():
        if not word.startswith("-"):
            continue
        name = word.partition("=")[0]
        names = [name, f"{argv[1]} {name}"]
        first = max(known.get(form, 0) for form in names) if name in known else 10**6
        if number < first:
            raise NearmetalError(f"{' '.join(argv[:3])} failed with code 1: {tool}: unrecognized option '{name}'")


def _lines(text: str) -> Iterator[Tuple[str, str]]:
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and line[0] not in "#;":
            yield section, line


def _since(directives: Dict[int, str], name: str) -> int:
    return min((first for first, names in directives.items() if name in names.split()), default=10**6)
