# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot starts after systemd-tmpfiles: network managers, units, rc.local, sysfsutils.

Written apart from the engine. Scripts run in a real shell; what they write reaches the fake kernel as orders.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, Tuple

from tests.support.kernel import boot

Take = Callable[[str, str], None]
_WRITABLE = (
    "proc/sys/vm/*",
    "proc/sys/net/core/*",
    "proc/sys/net/ipv4/*",
    "proc/sys/kernel/numa_balancing",
    "sys/kernel/mm/*/*",
    "sys/devices/system/cpu/cpufreq/policy*/*",
    "sys/block/*/queue/*",
    "sys/class/net/*/mtu",
    "sys/class/net/*/tx_queue_len",
    "sys/class/net/*/napi_defer_hard_irqs",
    "sys/class/net/*/gro_flush_timeout",
)
# The programs of a host, as shell functions: a shell finds these before programs.
_TOOLS = """
sysctl() { for word in "$@"; do case $word in
  *=*) echo "${word#*=}" > "ROOT/proc/sys/$(echo "${word%%=*}" | tr . /)" ;;
  /*) while IFS== read -r key value; do sysctl "$(echo $key)=$(echo $value)"; done < "ROOT$word" ;;
esac; done; }
cpupower() { while [ $# -gt 0 ]; do case $1 in
  -g|--governor) for file in ROOT/sys/devices/system/cpu/cpufreq/policy*/scaling_governor; do
    echo "$2" > "$file"; done ;;
esac; shift; done; }
ip() { while [ $# -gt 0 ]; do case $1 in
  dev) nic=$2 ;; mtu) echo "$2" > "ROOT/sys/class/net/$nic/mtu" ;; set) [ "$2" = dev ] || nic=$2 ;;
esac; shift; done; }
blockdev() { echo $(($2 / 2)) > "ROOT/sys/block/${3#/dev/}/queue/read_ahead_kb"; }
ethtool() { echo "$@" >> "ROOT/run/stand-in-ethtool"; }
"""


def start(root: Path, take: Take, rings: Mapping[str, List[int]]) -> None:
    """Start them in the order of a boot; `rings` are each NIC's: at most rx and tx, and now."""
    managers(root, take, rings)
    for lines in (_lines(root / "etc/sysfs.conf"), *map(_lines, sorted((root / "etc/sysfs.d").glob("*")))):
        for line in lines:
            name, equals, value = line.partition("=")
            if equals:
                _order(take, root, f"/sys/{name.strip()}", value.strip())
    for script in _scripts(root):
        run(root, take, script)
    asked = root / "run/stand-in-ethtool"
    for line in asked.read_text().splitlines() if asked.exists() else ():
        option, nic, *words = line.split()
        if option == "-G":
            _ring(rings, nic, dict(zip(words[::2], words[1::2])))


def run(root: Path, take: Take, script: str) -> None:
    """Run a script in /bin/sh, and give the kernel what it wrote."""
    files = [Path(path) for pattern in _WRITABLE for path in glob.glob(f"{root}/{pattern}") if os.path.isfile(path)]
    before = {file: file.read_text() for file in files}
    bare = re.sub(r"^(?:/usr)?/bin/sh -c '(.*)'$", r"\1", script, flags=re.MULTILINE)
    plain = re.sub(r"(?<![\w/])/(?:usr/)?s?bin/(sysctl|cpupower|ip|blockdev|ethtool)\b", r"\1", bare)
    # What a unit names by its path is the host's program, never one of this machine.
    inside = re.sub(r"(?<![\w/])/(sys|proc|etc|lib|run|usr|opt|s?bin|var|root)/", rf"{root}/\1/", plain)
    text = _TOOLS.replace("ROOT", str(root)) + inside
    # No program of this machine that sets something may be found: `sysctl` is the function above, or nothing.
    tools = root / "run/stand-in-tools"
    tools.mkdir(parents=True, exist_ok=True)
    for name in ("cat", "tee", "tr"):
        if not (tools / name).is_symlink():
            (tools / name).symlink_to(str(shutil.which(name)))
    subprocess.run(
        ["/bin/sh", "-c", text], env={"PATH": str(tools)}, cwd=root, capture_output=True, check=False, timeout=60
    )
    for file in files:
        after = file.read_text()
        if after != before[file]:
            file.write_text(before[file])
            _order(take, root, str(file)[len(str(root)) :], after.strip())


def _order(take: Take, root: Path, path: str, text: str) -> None:
    if (root / path.lstrip("/")).exists():
        with suppress(OSError):
            take(path, text)


def _lines(path: Path) -> List[str]:
    text = path.read_text() if path.is_file() else ""
    return [line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] not in "#;"]


def _scripts(root: Path) -> Iterator[str]:
    """The commands of enabled units whose conditions hold, by name, and then rc.local."""
    system = root / "etc/systemd/system"
    for link in sorted(system.glob("*.wants/*.service")):
        if link.name.startswith("nearmetal."):
            continue
        places = [
            system / link.name,
            root / "usr/lib/systemd/system" / link.name,
            root / "lib/systemd/system" / link.name,
        ]
        found = next((place for place in places if place.exists() or place.is_symlink()), None)
        if found is None or (found.is_symlink() and os.readlink(found) == "/dev/null"):
            continue
        unit = found.read_text()
        virtual = "hypervisor" in (root / "proc/cpuinfo").read_text()
        if ("ConditionVirtualization=no" in unit and virtual) or not boot.conditions_hold(root, unit):
            continue
        variables = ""
        for line in unit.splitlines():
            key, _equals, value = line.partition("=")
            if key == "EnvironmentFile":
                variables += "".join(f"{line}\n" for line in _lines(root / value.lstrip("-/")))
            elif key == "Environment":
                variables += f"{value}\n"
            elif key == "ExecStart":
                program = root / value.split()[0].lstrip("-/")
                yield variables + (program.read_text() if program.is_file() else value.lstrip("-"))
    for path in ("etc/rc.local", "etc/rc.d/rc.local"):
        if (root / path).is_file():
            yield (root / path).read_text()


def managers(root: Path, take: Take, rings: Mapping[str, List[int]]) -> None:
    """systemd-networkd (if it is enabled), NetworkManager's profiles, ifcfg, and ifupdown's stanzas, for their MTU."""
    for nic in sorted(path.name for path in (root / "sys/class/net").glob("*") if (path / "device").exists()):
        known = root / "sys/class/net" / nic / "address"
        address = known.read_text().strip().lower() if known.exists() else ""
        for mtu, ring in _given(root, nic, address):
            if mtu:
                _order(take, root, f"/sys/class/net/{nic}/mtu", mtu)
            if ring:
                _ring(rings, nic, {"rx": ring})


def _ring(rings: Mapping[str, List[int]], nic: str, wanted: Mapping[str, str]) -> None:
    """rx and tx, which stand behind the most of each."""
    if nic in rings and wanted.get("rx", "").isdigit():
        rings[nic][2] = min(int(wanted["rx"]), rings[nic][0])


def _given(root: Path, nic: str, address: str) -> Iterator[Tuple[str, str]]:
    """MTU and ring that managers give, each empty for none."""
    for file in sorted((root / "etc/NetworkManager/system-connections").glob("*")):
        said = _sections(file)
        named = said.get("connection.interface-name", nic) == nic
        addressed = said.get("ethernet.mac-address", address).lower() == address
        if named and addressed:
            yield said.get("ethernet.mtu", ""), said.get("ethtool.ring-rx", "")
    for file in sorted((root / "etc/sysconfig/network-scripts").glob("ifcfg-*")):
        said = {key: value.strip('"') for key, _equals, value in (line.partition("=") for line in _lines(file))}
        named = "DEVICE" in said or "HWADDR" in said or file.name == f"ifcfg-{nic}"
        if named and said.get("DEVICE", nic) == nic and said.get("HWADDR", address).lower() == address:
            yield said.get("MTU", ""), ""
    current = ""
    for line in _lines(root / "etc/network/interfaces"):
        words = line.split()
        current = words[1] if words[0] == "iface" else current
        if words[0] == "mtu" and current == nic:
            yield words[1], ""
    if not (root / "etc/systemd/system/multi-user.target.wants/systemd-networkd.service").exists():
        return
    for file in sorted((root / "etc/systemd/network").glob("*.network")):
        said = _sections(file)
        names = said.get("Match.Name", "*").split()
        if (
            any(fnmatch.fnmatchcase(nic, name) for name in names)
            and said.get("Match.MACAddress", address).lower() == address
        ):
            yield _bytes(said.get("Link.MTUBytes", "")), ""
            return


def _bytes(text: str) -> str:
    return str(int(text[:-1]) * 1024) if text.endswith("K") else text


def _sections(path: Path) -> Dict[str, str]:
    section, said = "", {}
    for line in _lines(path):
        key, equals, value = line.partition("=")
        if not equals:
            section = line.strip("[]")
        else:
            said[f"{section}.{key.strip()}"] = value.strip()
    return said
