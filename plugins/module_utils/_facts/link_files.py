# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of network managers that set an interface at each start: systemd, udev, NetworkManager, ifcfg, ifupdown,
netplan. PRIVATE.

amazon-ec2-net-utils ships such a file (MTUBytes=9001 for ena, ixgbevf and vif), and cloud-init writes them from the
instance's metadata.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .._parse import link_settings
from .._parse.boot_commands import words_of
from . import boot_programs, boot_units
from .boot_lines import LIMIT, files
from .host import Host
from .interface import NET, devices

_IFUPDOWN = ("/etc/network/interfaces", "/etc/network/interfaces.d")
_IFCFG = ("/etc/sysconfig/network-scripts", "/etc/sysconfig/network")
_NOT_READ = r"ifcfg-.*(?:~|\.(?:bak|orig|rpmnew|rpmorig|rpmsave|old|swp))"  # as initscripts and SUSE's wicked do
_KEYFILES = tuple(f"{root}/NetworkManager/system-connections" for root in ("/usr/lib", "/run", "/etc"))
_NOT_A_PROFILE = r"\..*|.*(?:~|\.(?:swpx?|pem|der))"  # NetworkManager reads any other name in /etc
_NM_SECTIONS = ("ethernet", "802-3-ethernet", "ethtool", "link")
# By what a profile names its interface, and the key of the same thing in systemd's files.
_NAMED_BY = (
    (("connection", "interface-name"), "OriginalName"),
    (("match", "interface-name"), "Name"),
    (("ethernet", "mac-address"), "MACAddress"),
    (("match", "driver"), "Driver"),
    (("match", "path"), "Path"),
)
_DHCLIENT = ("/etc/dhcp/dhclient.conf", "/etc/dhclient.conf", "/etc/dhcp/dhclient-{}.conf", "/etc/dhclient-{}.conf")
_SUSE_KEYS = ("PRE_UP_SCRIPT", "POST_UP_SCRIPT")
_SUSE_SCRIPTS = "/etc/sysconfig/network/scripts"
_NETPLAN = ("/lib/netplan", "/usr/lib/netplan", "/etc/netplan", "/run/netplan")

# A file of systemd's with its drop-ins, in the order in which they are read: path and lines of each.
_File = Tuple[Tuple[str, link_settings.Lines], ...]
# Lever, with a field of its table → the file that sets it, and the value.
Found = Dict[str, Tuple[str, Optional[str]]]


class _Nic(NamedTuple):
    """What an interface is known by to those who set it."""

    keys: Mapping[str, str]  # of systemd.link(5) and systemd.network(5): key of [Match] → one or several words
    link: str  # the .link file that udev last applied; empty where it has no record
    network: str  # the .network file that systemd-networkd uses; empty where it has no record
    connection: str  # the UUID of NetworkManager's connection; empty where it has no record
    unmanaged: bool  # by udev's rules, for NetworkManager

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.keys["OriginalName"].split()[0]


def settings(host: Host, networkd: bool) -> Dict[str, Found]:
    """Place of an interface → what files set of it; `networkd`: whether systemd-networkd runs, or starts at boot."""
    of_systemd = {kind: tuple(_systemd(host, kind)) for kind in (".link", ".network") if networkd or kind == ".link"}
    by_place = {}
    for name, place in devices(host).items():
        nic = _nic(host, name)
        found: Found = {}
        for manager in (_dhclient, _netplan, _ifupdown, _ifcfg, _keyfiles):
            for path, assigned in manager(host, nic):
                found.update({setting: (path, value) for setting, value in assigned.items()})
        for kind, parsed in of_systemd.items():
            found.update(_first(host, parsed, nic, nic.link if kind == ".link" else nic.network))
        by_place[place] = found
    return by_place


def _nic(host: Host, name: str) -> _Nic:
    """udev's, systemd-networkd's and NetworkManager's own records say which file they took."""
    index = host.line(f"{NET}/{name}/ifindex") or ""
    record = dict(re.findall(r"^E:(\w+)=(.*)$", host.text(f"/run/udev/data/n{index}", LIMIT) or "", re.MULTILINE))
    others = {word for key, word in record.items() if key.startswith("ID_NET_NAME") and word != name}
    address = host.line(f"{NET}/{name}/address") or ""
    keys = {
        "Name": " ".join([name, *sorted(others)]),
        "OriginalName": name,
        "Driver": host.target(f"{NET}/{name}/device/driver"),
        "MACAddress": address,
        "PermanentMACAddress": address,
        "Type": "ether",
        "Kind": "",
        **({"Path": record["ID_PATH"]} if "ID_PATH" in record else {}),
    }
    state = host.text(f"/run/systemd/netif/links/{index}", LIMIT) or ""
    device = host.text(f"/run/NetworkManager/devices/{index}", LIMIT) or ""
    return _Nic(
        keys,
        record.get("ID_NET_LINK_FILE", ""),
        "".join(re.findall(r"^NETWORK_FILE=(.*)$", state, re.MULTILINE)[:1]),
        "".join(re.findall(r"^connection-uuid=(.*)$", device, re.MULTILINE)[:1]),
        record.get("NM_UNMANAGED") in ("1", "true"),
    )


def _systemd(host: Host, suffix: str) -> Iterator[_File]:
    """The files in the order in which they are read: the first one that matches an interface counts."""
    for name, path in files(host, "systemd/network", suffix):
        parts = (path, *(drop_in for _name, drop_in in files(host, f"systemd/network/{name}.d", ".conf")))
        yield tuple((part, link_settings.lines(host.text(part, limit=LIMIT) or "")) for part in parts)


def _first(host: Host, parsed: Tuple[_File, ...], nic: _Nic, record: str) -> Found:
    """What the first file that matches sets; the one that was taken last time matches, whatever it says.

    The kernel calls each interface eth0, eth1, … before udev names it, so that `OriginalName` is open. Where udev's
    record names another file, one that matches only some of these names didn't match.
    """
    kernel_names = [nic.name] if nic.name.startswith("eth") else [f"eth{number}" for number in range(8)]
    for parts in parsed:
        lines = tuple(line for _path, part in parts for line in part)
        taken = os.path.basename(parts[0][0]) == os.path.basename(record)
        matching = any(section == "Match" for section, _key, _value in lines)
        if not (taken or (matching and boot_units.conditions_hold(host, lines, "Match"))):
            continue
        hits = [link_settings.matches(lines, {**nic.keys, "OriginalName": name}) for name in kernel_names]
        unsure = not record and (any(hits) or link_settings.matches(lines, nic.keys))
        if all(hits) or unsure or taken:
            unmanaged = [value for section, key, value in lines if (section, key) == ("Link", "Unmanaged")]
            if link_settings.number("".join(unmanaged[-1:])) == "1":
                return {}
            return {
                name: (path, value)
                for path, part in parts
                for name, value in link_settings.settings(part, "Link").items()
            }
    return {}


def _dhclient(host: Host, nic: _Nic) -> Iterator[Tuple[str, link_settings.Settings]]:
    """What it takes in place of what the server says."""
    for path in (path.format(nic.name) for path in _DHCLIENT):
        for name, options in link_settings.dhclient(host.text(path, limit=LIMIT) or ""):
            if name in ("", nic.name):
                yield path, link_settings.settings(options, "")


def _ifupdown(host: Host, nic: _Nic) -> Iterator[Tuple[str, link_settings.Settings]]:
    main, folder = _IFUPDOWN
    sources = re.findall(r"^[ \t]*source(?:-directory)?[ \t]+(/\S+)", host.text(main, limit=LIMIT) or "", re.MULTILINE)
    paths = {main, *(f"{folder}/{name}" for name in host.names(folder))}
    paths.update(
        path
        for source in sources
        for path in (*boot_units.matching(host, source), *boot_units.matching(host, f"{source}/*"))
    )
    for path in sorted(paths):
        for pattern, options in link_settings.ifupdown(host.text(path, limit=LIMIT) or ""):
            if link_settings.met([pattern], nic.keys["Name"]):
                scripts = [value for _section, key, value in options if key in ("up", "post-up", "pre-up")]
                yield path, {**link_settings.settings(options, ""), **_commands(host, nic, "\n".join(scripts))}


def _commands(host: Host, nic: _Nic, text: str) -> link_settings.Settings:
    """What commands such as ethtool set of the interface."""
    found: link_settings.Settings = {}
    for _owner, (setting, value) in boot_programs.commands(host, "", text, {"IFACE": nic.name, "DEVICE": nic.name}):
        lever, blank, target = setting.partition(" ")
        name, slash, field = target.partition("/")
        if blank and lever.startswith("network.") and link_settings.met([name], nic.keys["Name"]):
            found[f"{lever}{slash}{field}"] = value
    return found


def _keyfiles(host: Host, nic: _Nic) -> Iterator[Tuple[str, link_settings.Settings]]:
    """NetworkManager's profiles: those for any interface first, as one that names it is preferred."""
    if nic.unmanaged:
        return
    main = [("", "/etc/NetworkManager/NetworkManager.conf")]
    folders, given = list(_KEYFILES), []
    for _name, path in (*main, *files(host, "NetworkManager/conf.d", ".conf")):
        defaults = link_settings.lines(host.text(path, limit=LIMIT) or "")
        said = {(section, key): value for section, key, value in defaults}
        matched = {name: said.get((name, "match-device"), "*") for name, _key, _value in defaults}
        here = {name for name, devices in matched.items() if link_settings.has_device(devices, nic.keys)}
        off = any(name.startswith("device") and said.get((name, "managed")) in ("0", "false", "no") for name in here)
        if off or link_settings.has_device(said.get(("keyfile", "unmanaged-devices"), ""), nic.keys):
            return
        folders += [said[("keyfile", "path")]] if ("keyfile", "path") in said else []
        sections = {name for name in here if name.startswith("connection")}
        given.append((path, link_settings.settings(defaults, *sections)))
    yield from given
    profiles: List[Tuple[bool, bool, str, link_settings.Lines]] = []
    for path in _of_folders(host, tuple(folders), ""):
        anywhere = not path.startswith(_KEYFILES[:2]) or path.endswith(".nmconnection")
        if not anywhere or re.fullmatch(_NOT_A_PROFILE, os.path.basename(path)):
            continue
        lines = link_settings.lines(host.text(path, limit=LIMIT) or "")
        said = {(section.replace("802-3-", ""), key): value for section, key, value in lines if value}
        named = [(link_settings.listed(said[key]), nic.keys.get(word)) for key, word in _NAMED_BY if key in said]
        fits = all(text is None or link_settings.met(words, text) for words, text in named)
        denied = [
            word
            for name in ("blacklist", "denylist")
            for word in link_settings.listed(said.get(("ethernet", f"mac-address-{name}"), ""))
        ]
        taken = bool(nic.connection) and said.get(("connection", "uuid")) == nic.connection
        starts = taken or said.get(("connection", "autoconnect"), "true") not in ("0", "false", "no")
        if not fits or not starts or (denied and link_settings.met(denied, nic.keys["MACAddress"])):
            continue
        if said.get(("connection", "type"), "ethernet").replace("802-3-", "") == "ethernet":
            profiles.append((taken, bool(named), path, lines))
    used = [profile for profile in profiles if profile[0]] or sorted(profiles, key=lambda profile: profile[1])
    for _taken, _is_named, path, lines in used:
        yield path, link_settings.settings(lines, *_NM_SECTIONS)


def _of_folders(host: Host, folders: Tuple[str, ...], suffix: str) -> List[str]:
    """The files by name; one in a later folder hides one of its name in an earlier one."""
    paths = {file: f"{folder}/{file}" for folder in folders for file in host.names(folder) if file.endswith(suffix)}
    return [path for _file, path in sorted(paths.items())]


def _ifcfg(host: Host, nic: _Nic) -> Iterator[Tuple[str, link_settings.Settings]]:
    """A file is for the interface that DEVICE or the hardware address names, or else for that of its own name."""
    for folder in _IFCFG:
        for file in host.names(folder):
            if not file.startswith("ifcfg-") or re.fullmatch(_NOT_READ, file):
                continue
            path = f"{folder}/{file}"
            raw = link_settings.lines(host.text(path, limit=LIMIT) or "")
            # A shell reads it: a value is one word, and a comment may follow.
            lines = tuple(("", key, "".join(words_of(value, comments=True)[:1])) for _section, key, value in raw)
            said = {key: value.lower() for _section, key, value in lines}
            address = next((said[key] for key in ("HWADDR", "LLADDR", "MACADDR") if said.get(key)), "")
            device = said.get("DEVICE", "" if address else file[len("ifcfg-") :])
            if (not device or link_settings.met([device], nic.keys["Name"])) and address in (
                "",
                nic.keys["MACAddress"],
            ):
                options = [value for _section, key, value in lines if key.startswith("ETHTOOL_OPT")]
                commands = [f"ethtool {part}" for option in options for part in option.split(";")]
                scripts = [value.rpartition(":")[2] for _section, key, value in lines if key in _SUSE_KEYS]
                commands += [f"{os.path.join(_SUSE_SCRIPTS, script)} {nic.name}" for script in scripts if script]
                found = _commands(host, nic, re.sub(r"\biface\b", nic.name, "\n".join(commands)))
                yield path, {**link_settings.settings(lines, ""), **found}


def _netplan(host: Host, nic: _Nic) -> Iterator[Tuple[str, link_settings.Settings]]:
    """What netplan will write for the managers at the next boot, if it hasn't done so yet."""
    for path in _of_folders(host, _NETPLAN, ".yaml"):
        for name, options in link_settings.netplan(host.text(path, limit=LIMIT) or ""):
            said = {key: value for _section, key, value in options}
            matching = (("macaddress", "MACAddress"), ("driver", "Driver"), ("name", "Name"))
            named = [([said[key]], nic.keys[word]) for key, word in matching if key in said]
            if all(link_settings.met(words, text) for words, text in named or [([name], nic.keys["Name"])]):
                yield path, link_settings.settings(options, "")
