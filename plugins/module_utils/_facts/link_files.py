# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that give an interface its MTU at each start: systemd, udev, ifupdown, NetworkManager. PRIVATE.

amazon-ec2-net-utils ships such a file (MTUBytes=9001 for ena, ixgbevf and vif), and cloud-init writes them from the
instance's metadata.
"""

from __future__ import annotations

import os
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from .._parse import link_settings
from .host import Host

NET = "/sys/class/net"
# In the order in which a file hides one of the same name (systemd.network(5)).
_FOLDERS = tuple(f"{root}/systemd/network" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
_IFUPDOWN = ("/etc/network/interfaces", "/etc/network/interfaces.d")
_IFCFG = "/etc/sysconfig/network-scripts/ifcfg-{}"
_KEYFILES = ("/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections")
_LIMIT = 65536

# A file of systemd's with its drop-ins, in the order in which they are read: path and lines of each.
_File = Tuple[Tuple[str, link_settings.Lines], ...]


def mtus(host: Host, networkd: bool) -> Dict[str, Tuple[str, str]]:
    """Place of an interface → file that sets its MTU, and the MTU; `networkd`: whether systemd-networkd runs."""
    suffixes = (".network", ".link") if networkd else (".link",)
    files = {suffix: tuple(_systemd(host, suffix)) for suffix in suffixes}
    by_managers = {**dict(_keyfiles(host)), **dict(_ifupdown(host))}
    mtu_of = {}
    for name in host.names(NET):
        link = host.link(f"{NET}/{name}/device")
        if link is None:
            continue
        interface = _interface(host, name)
        settings = (_first(files_of_kind, interface) for files_of_kind in files.values())
        setting = next((setting for setting in settings if setting is not None), None)
        setting = setting or by_managers.get(name) or _ifcfg(host, name)
        if setting is not None:
            mtu_of[os.path.basename(link)] = setting
    return mtu_of


def _interface(host: Host, name: str) -> Mapping[str, str]:
    return {
        "Name": name,
        "OriginalName": name,
        "Driver": os.path.basename(host.link(f"{NET}/{name}/device/driver") or ""),
        "MACAddress": host.line(f"{NET}/{name}/address") or "",
        "PermanentMACAddress": host.line(f"{NET}/{name}/address") or "",
        "Type": "ether",
    }


def _systemd(host: Host, suffix: str) -> Iterator[_File]:
    """The files in the order in which they are read: the first one that matches an interface counts."""
    for name, path in _files(host, _FOLDERS, suffix):
        drop_ins = _files(host, tuple(f"{folder}/{name}.d" for folder in _FOLDERS), ".conf")
        parts = (path, *(drop_in for _name, drop_in in drop_ins))
        yield tuple((part, link_settings.lines(host.text(part, limit=_LIMIT) or "")) for part in parts)


def _files(host: Host, folders: Tuple[str, ...], suffix: str) -> List[Tuple[str, str]]:
    """Name and path of the files, by name; one in an earlier folder hides one of its name in a later one."""
    paths: Dict[str, str] = {}
    for folder in folders:
        for name in host.names(folder):
            if name.endswith(suffix):
                paths.setdefault(name, f"{folder}/{name}")
    return sorted(paths.items())


def _first(files: Tuple[_File, ...], interface: Mapping[str, str]) -> Optional[Tuple[str, str]]:
    for parts in files:
        lines = tuple(line for _path, part in parts for line in part)
        if any(section == "Match" for section, _key, _value in lines) and link_settings.matches(lines, interface):
            mtus_of_parts = ((path, link_settings.last(part, "Link", "MTUBytes")) for path, part in reversed(parts))
            return next(((path, number) for path, number in mtus_of_parts if number is not None), None)
    return None


def _ifupdown(host: Host) -> Iterator[Tuple[str, Tuple[str, str]]]:
    main, folder = _IFUPDOWN
    for path in (main, *(f"{folder}/{name}" for name in sorted(host.names(folder)))):
        for name, number in link_settings.parse_ifupdown(host.text(path, limit=_LIMIT) or "").items():
            yield name, (path, number)


def _keyfiles(host: Host) -> Iterator[Tuple[str, Tuple[str, str]]]:
    for folder in _KEYFILES:
        for file in host.names(folder):
            lines = link_settings.lines(host.text(f"{folder}/{file}", limit=_LIMIT) or "")
            number = link_settings.last(lines, "ethernet", "mtu")
            for section, key, value in lines:
                if number is not None and (section, key) == ("connection", "interface-name"):
                    yield value, (f"{folder}/{file}", number)


def _ifcfg(host: Host, name: str) -> Optional[Tuple[str, str]]:
    path = _IFCFG.format(name)
    number = link_settings.parse_ifcfg(host.text(path, limit=_LIMIT) or "")
    return (path, number) if number is not None else None
