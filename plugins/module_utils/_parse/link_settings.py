# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files of network managers give an interface: systemd.link(5), systemd.network(5), NetworkManager, ifcfg,
interfaces(5), netplan. Pure.

PRIVATE to the collection.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from .._number import is_number

# Section, key and value of each line that assigns, in the file's order.
Lines = Tuple[Tuple[str, str, str], ...]
# Lever, with a field of its table: network.rings/rx → the value; None for one that only the driver knows.
Settings = Dict[str, Optional[str]]

# What each manager calls them.
_CALLED: Mapping[str, str] = {
    "network.mtu": "MTUBytes mtu ethernet.mtu",
    "network.txqueuelen": "TransmitQueueLength tx-queue-length txqueuelen",
    "network.affinity": "IRQAffinityPolicy",  # systemd 260, in .link files
    "network.queues": "CombinedChannels channels-combined",
    "network.rings/rx": "RxBufferSize ring-rx hardware-dma-ring-rx",
    "network.rings/tx": "TxBufferSize ring-tx hardware-dma-ring-tx",
    "network.coalesce/adaptive_rx": "UseAdaptiveRxCoalesce coalesce-adaptive-rx hardware-irq-coalesce-adaptive-rx",
    "network.coalesce/rx_usecs": "RxCoalesceSec coalesce-rx-usecs hardware-irq-coalesce-rx-usecs",
    "network.coalesce/tx_usecs": "TxCoalesceSec coalesce-tx-usecs hardware-irq-coalesce-tx-usecs",
    "network.offloads/gro": "GenericReceiveOffload feature-gro offload-gro generic-receive-offload",
    "network.offloads/gso": "GenericSegmentationOffload feature-gso offload-gso generic-segmentation-offload",
    "network.offloads/tso": "TCPSegmentationOffload feature-tso offload-tso tcp-segmentation-offload",
    "network.offloads/tx-tcp6-segmentation": "TCP6SegmentationOffload tcp6-segmentation-offload",
    "network.offloads/lro": "LargeReceiveOffload feature-lro offload-lro large-receive-offload",
    "network.offloads/ntuple": "NTupleFilter feature-ntuple ntuple-filters",
}
# Offloads: ethtool's word → the kernel's names.
FEATURES: Mapping[str, Tuple[str, ...]] = {
    "gro": ("rx-gro",),
    "tso": ("tx-tcp-segmentation", "tx-tcp6-segmentation"),
    "gso": ("tx-generic-segmentation",),
    "ntuple": ("rx-ntuple-filter",),
    "lro": ("rx-lro",),
}
_NAMED = {word.lower(): name for name, words in _CALLED.items() for word in words.split()}
_WORDS = {**dict.fromkeys(("on", "yes", "true"), "1"), **dict.fromkeys(("off", "no", "false"), "0")}
_NUMBER = re.compile(r"(0x[0-9a-f]{1,8}|0b[01]{1,32}|0o[0-7]{1,11}|[0-9]{1,10}(?:\.[0-9]{1,3})?) ?(k|m|us|ms|s)?b?")
_UNITS = {"k": 1024, "m": 1024**2, "us": 1, "ms": 1000, "s": 10**6}
_SECTION = re.compile(r"\[([^\]]*)\]")
_LISTED = re.compile(r"[^,;\s]+")
_KINDS = {"interface-name": "Name", "mac": "MACAddress", "driver": "Driver", "type": "Type"}
_IFACE = re.compile(r"(auto|allow-\S+|iface|mapping|source|source-directory|no-\S+|rename)\s+(\S+)")
_OF_INTERFACE = re.compile(r'\binterface\s+"([^"]*)"\s*\{((?:[^{}]|\{[^{}]*\})*)\}')
# Limits on the cost of a condition in a hostile file.
_MOST_GLOBS, _LONGEST_GLOB, _MOST_STARS = 256, 64, 4


def lines(text: str) -> Lines:
    """The assignments of a file with sections; other lines are left out."""
    section = ""
    assignments: List[Tuple[str, str, str]] = []
    for raw in text.splitlines():
        line = raw.strip()
        named = _SECTION.fullmatch(line)
        if named:
            section = named[1]
        elif "=" in line and not line.startswith(("#", ";")):
            key, _sign, value = line.partition("=")
            assignments.append((section, key.strip(), value.strip()))
    return tuple(assignments)


def matches(assignments: Lines, interface: Mapping[str, str]) -> bool:
    """Whether an interface meets the section Match; a condition about a key that `interface` lacks counts as met.

    Its value of a key is one or several words. Lists of one key add up, an empty one starts over, `!` inverts a list.
    """
    conditions: Dict[str, List[str]] = {}
    for section, key, value in assignments:
        if section == "Match":
            conditions[key] = [*conditions.get(key, []), *value.split()][:_MOST_GLOBS] if value else []
    return all(met(wanted, interface[key]) for key, wanted in conditions.items() if key in interface and wanted)


def met(wanted: List[str], value: str) -> bool:
    """Whether one of the words of a value fits a list of globs, which a leading `!` inverts."""
    inverted = bool(wanted) and wanted[0].startswith("!")
    globs = [_plain(word.lstrip("!").lower()) for word in wanted]
    return any(fits(_plain(word), glob) for word in value.lower().split() or [""] for glob in globs) != inverted


def _plain(word: str) -> str:
    """A hardware address without its signs, which are :, - or dots; any other word as it is."""
    digits = re.sub("[:.-]", "", word)
    return digits if re.fullmatch("[0-9a-f]{12}", digits) else word


def fits(value: str, glob: str) -> bool:
    """Whether the value matches; a glob longer than any name, driver or address in the kernel matches nothing."""
    if max(len(value), len(glob)) > _LONGEST_GLOB or glob.count("*") > _MOST_STARS:
        return False
    try:
        return fnmatchcase(value, glob)
    except re.error:  # a range such as [e-1], in Python 3.8
        return False


def settings(assignments: Lines, *sections: str) -> Settings:
    """What a file sets, in one of these sections; the last line counts, and an empty one takes it back."""
    found: Settings = {}
    for section, key, value in assignments:
        name = _NAMED.get(key.lower())
        if name is None or section not in sections:
            continue
        word = value.strip("\"' ")
        plain = number(word, seconds=key.endswith("Sec"))
        for place in in_full(name):
            if not word or (name == "network.mtu" and plain == "0"):  # NetworkManager's word for none
                found.pop(place, None)
            elif plain is not None or word in ("max", "single", "spread"):
                found[place] = plain
    return found


def in_full(name: str) -> List[str]:
    """A lever with its field, and with the kernel's names where the field is an offload."""
    lever, _slash, field = name.partition("/")
    word = field if field in FEATURES else _NAMED.get(field, "").partition("/")[2]
    return [f"{lever}/{each}" for each in FEATURES.get(word, (field,))] if lever == "network.offloads" else [name]


def number(text: str, seconds: bool = False) -> Optional[str]:
    """A number or switch of these files as the kernel shows it; times in microseconds, sizes in bytes."""
    word = text.strip("\"' ").lower()
    match = _NUMBER.fullmatch(word)
    if match is None:
        return _WORDS.get(word)
    unit = match[2] or ("s" if seconds else "")
    count = (
        float(match[1]) if "." in match[1] else int(match[1].lstrip("0") or "0" if match[1].isdigit() else match[1], 0)
    )
    return str(int(count * _UNITS.get(unit, 1)))


def ifupdown(text: str) -> Iterator[Tuple[str, Lines]]:
    """Interface, or pattern of interfaces, and the options of each stanza of interfaces(5)."""
    name = ""
    options: List[Tuple[str, str, str]] = []
    for raw in (*text.replace("\\\n", " ").splitlines(), "auto end"):
        line = raw.strip()
        stanza = _IFACE.match(line)
        if stanza:
            if name:
                yield name, tuple(options)
            name, options = (stanza[2].lstrip("/") if stanza[1] == "iface" else ""), []
        elif name and line and not line.startswith("#"):
            key, _blank, value = line.partition(" ")
            options.append(("", key, value.strip()))


def listed(text: str) -> List[str]:
    """The words of a list of NetworkManager's; a hardware address may be six numbers."""
    words = _LISTED.findall(text)
    numbers = [int(word) for word in words if is_number(word) and int(word) < 256]
    return [":".join(f"{number:02x}" for number in numbers)] if len(numbers) == len(words) == 6 else words


def has_device(text: str, interface: Mapping[str, str]) -> bool:
    """Whether a list of devices in NetworkManager.conf(5) has the interface, which is known as for `matches`."""
    found = {True: False, False: False}
    words = _LISTED.findall(text)
    for word in words:
        bare = word[len("except:") :] if word.startswith("except:") else word
        kind, _colon, value = bare.partition(":")
        glob = value.lstrip("=~").replace("ethernet", "ether") if kind in _KINDS else bare
        keys = (_KINDS[kind],) if kind in _KINDS else ("Name", "MACAddress")
        hit = bare == "*" or any(met([glob], interface[key]) for key in keys)
        found[bare == word] = found[bare == word] or hit
    only_exceptions = bool(words) and all(word.startswith("except:") for word in words)
    return (found[True] or only_exceptions) and not found[False]


def dhclient(text: str) -> Iterator[Tuple[str, Lines]]:
    """Interface, or nothing for all of them, and the MTU that dhclient.conf(5) sets whatever the server says."""
    plain = re.sub(r"#.*", "", text)
    for name, part in (("", _OF_INTERFACE.sub("", plain)), *_OF_INTERFACE.findall(plain)):
        yield name, tuple(("", "mtu", mtu) for mtu in re.findall(r"\bsupersede\s+interface-mtu\s+(\d+)", part))


def netplan(text: str) -> Iterator[Tuple[str, Lines]]:
    """Name and options of each interface in netplan's YAML, in whose plain form of two levels or more."""
    above: List[Tuple[int, str]] = []
    options: Dict[str, List[Tuple[str, str, str]]] = {}
    for raw in text.expandtabs().splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        key, sign, value = (word.strip("\"' ") for word in line.partition(":"))
        if not sign:
            continue
        depth = len(line) - len(line.lstrip())
        above = [(column, name) for column, name in above if column < depth]
        path = [name for _column, name in above] + [key]
        above.append((depth, key))
        if len(path) > 2 and path[1] == "ethernets":
            inner = re.findall(r"([\w-]+)\s*:\s*([^,{}]+)", value) if value.startswith("{") else []
            assigned = inner or ([(key, value)] if len(path) > 3 else [])
            options.setdefault(path[2], []).extend(("", word, text.strip("\"' ")) for word, text in assigned)
    return iter([(name, tuple(assigned)) for name, assigned in options.items()])
