# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about other owners of settings: tuned, sysctl.d, kubelet, irqbalance, an immutable system. PRIVATE.

What a daemon is configured to set decides, not its presence: RHEL runs tuned by default.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .._parse import link_settings, tuned_profile
from . import at_boot, boot_units, systemd
from .host import Host
from .platform import os_release_of

_MAIN = "/etc/tuned/tuned-main.conf"
_ACTIVE = "/etc/tuned/active_profile"
_POST_LOADED = "/etc/tuned/post_loaded_profile"  # applied after it
# In the order in which tuned looks: 2.20 keeps profiles in the folders themselves, 2.25 in one below.
_PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_PROFILE_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
# Options that say when and for what a section counts, not what it sets.
ABOUT = ("type", "enabled", "replace", "devices", "priority", "uname_regex", "cpuinfo_regex")
_VARIABLE = r"\$\{(\w+)\}"
_QUOTED = r'"(.*)"'
_REPEATED_GROUP = r"\)[*+{]"
_LONGEST_VALUE = 1024  # characters of a variable that is put together from others
_LONGEST_LINE = 100  # characters of a line of /proc/cpuinfo that a profile's expression is matched with


class OwnersFacts(NamedTuple):
    """The other owners of settings on this host."""

    running: Tuple[str, ...]  # of tuned, irqbalance, kubelet
    tuned_profile: Optional[str]  # None: tuned neither runs nor starts with the host
    tuned: Mapping[str, str]  # plugin.option → value of the active profile: cpu.governor, cmdline.nosmt
    tuned_reapplies: bool  # it reads sysctl.d again after it has set its profile's keys
    at_boot: Tuple[at_boot.Setting, ...]  # what others set at each boot so that nearmetal's value doesn't last
    kubelet: bool  # this host is a Kubernetes node
    immutable: Optional[str]  # ostree | bottlerocket | read-only /etc


def observe(host: Host) -> OwnersFacts:
    """Read profiles, sysctl files and the processes of services; no daemon is asked."""
    running = tuple(name for name in ("tuned", "irqbalance", "kubelet") if systemd.runs(host, f"{name}.service"))
    lines = (host.line(path) or "" for path in (_ACTIVE, _POST_LOADED))
    enabled = boot_units.wanted(host)
    active = " ".join(filter(None, lines)) if "tuned" in running or "tuned.service" in enabled else ""
    main = tuned_profile.parse("[main]\n" + (host.text(_MAIN, limit=65536) or ""))["main"]
    folders = (*reversed(re.findall(r"[^,;\s]+", main.get("profile_dirs", ""))), *_PROFILES)  # the last one wins
    profile = _whole(host, active.split(), folders)
    tuned = _settings(host, profile)
    # Files of devices, which knobs name by their places; tuned's plugins have names of their own for all else.
    of_devices = ((name[len("sysfs.") :], value) for name, value in tuned.items() if name.startswith("sysfs./"))
    kubelet = "kubelet" in running or host.exists("/etc/kubernetes/kubelet.conf") or host.exists("/var/lib/kubelet")
    return OwnersFacts(
        running=running,
        tuned_profile=active or None,
        tuned=tuned,
        tuned_reapplies=main.get("reapply_sysctl", "1").lower() in tuned_profile.TRUE,
        at_boot=at_boot.observe(
            host,
            systemd.runs(host, "systemd-networkd.service") or "systemd-networkd.service" in enabled,
            _scripts(profile),
            tuple(("tuned", setting) for setting in of_devices),
        ),
        kubelet=kubelet,
        immutable=_immutable(host),
    )


def _whole(host: Host, names: Sequence[str], folders: Sequence[str]) -> tuned_profile.Profile:
    """The profiles as one, with the variables that a file of theirs has."""
    whole: tuned_profile.Profile = {}
    read: Set[str] = set()
    for name in names:
        whole = tuned_profile.merged(whole, _profile(host, name, folders, read))
    variables = whole.get("variables", {})
    path = variables.get("include", "")
    text = f"[variables]\n{(host.text(path, limit=65536) if path.startswith('/') else None) or ''}"
    known: Dict[str, str] = {}
    for name, value in {**tuned_profile.parse(text)["variables"], **variables}.items():
        known[name] = _expanded(value, known)[:_LONGEST_VALUE]  # of those above it
    return {**whole, "variables": known}


def _scripts(profile: tuned_profile.Profile) -> Tuple[str, ...]:
    """The scripts that tuned starts with its profile."""
    parts = (options for section, options in profile.items() if options.get("type", section) == "script")
    return tuple(options["script"] for options in parts if options.get("script", "").startswith("/"))


def _settings(host: Host, whole: tuned_profile.Profile) -> Dict[str, str]:
    variables = whole.get("variables", {})
    settings = {}
    for section, options in whole.items():
        plugin = options.get("type", section)
        if (
            section in ("main", "variables")
            or not _applies(host, options, variables)
            or not _has_devices(host, plugin, options.get("devices", ""))
            or options.get("enabled", "true").lower() not in tuned_profile.TRUE
        ):
            continue
        for option, raw in options.items():
            value = re.sub(_QUOTED, r"\1", _expanded(raw, variables))
            if plugin == "bootloader" and option.startswith("cmdline"):
                settings.update({f"cmdline.{token.partition('=')[0]}": token for token in value.lstrip("+-").split()})
            elif option not in ABOUT:
                name = option.replace("/", ".") if plugin == "sysctl" else option
                name = at_boot.of_policies(option) if plugin == "sysfs" else name
                listed = plugin == "cpu" and "|" in value
                value = _in_full(value) if (plugin, name) == ("net", "features") else value
                settings[f"{plugin}.{name}"] = _first_offered(host, option, value) if listed else value
    return settings


def _in_full(features: str) -> str:
    """Offloads by the kernel's names, each with its switch."""
    words = re.split(r"[:;,\s]+", features)
    names = ((link_settings.in_full(f"network.offloads/{word}"), on) for word, on in zip(words[::2], words[1::2]))
    return " ".join(f"{name.partition('/')[2]} {on}" for found, on in names for name in found)


def _has_devices(host: Host, plugin: str, devices: str) -> bool:
    """Whether a section for some devices has one here; a list may leave out devices by `!`."""
    folder = {"disk": "/sys/block", "net": "/sys/class/net"}.get(plugin, "")
    words = re.split(r"[,;\s]+", devices)
    wanted = [word for word in words if not word.startswith("!")] or ["*"]
    left_out = [word[1:] for word in words if word.startswith("!")]
    return not (folder and devices) or any(
        link_settings.met(wanted, name) and not (left_out and link_settings.met(left_out, name))
        for name in host.names(folder)
        if name != "lo"
    )


def _first_offered(host: Host, option: str, value: str) -> str:
    """Of several values the first that the kernel offers."""
    offered = host.line(f"/sys/devices/system/cpu/cpufreq/policy0/scaling_available_{option}s") or ""
    words = value.split("|")
    return next((word for word in words if word in offered.split()), words[0])


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with the profile's variables replaced; a function of tuned's stays as it is written."""
    return re.sub(_VARIABLE, lambda name: variables.get(name[1], name[0]), text)


def _applies(host: Host, options: Mapping[str, str], variables: Mapping[str, str]) -> bool:
    """Whether a section applies to this machine and this CPU; a condition that can't be read doesn't hold."""
    machine = host.machine() or host.line("/proc/sys/kernel/arch") or ""
    cpu = host.text("/proc/cpuinfo", 4096) or ""
    for option, text in (("uname_regex", f"Linux {machine}"), ("cpuinfo_regex", cpu)):
        wanted = _expanded(options.get(option, ""), variables)
        short = "\n".join(line[:_LONGEST_LINE] for line in text.splitlines())
        try:
            if wanted and not (_cheap(wanted) and re.search(wanted, short, re.MULTILINE)):
                return False
        except re.error:
            return False
    return True


def _cheap(pattern: str) -> bool:
    """Whether a foreign expression is sure to end soon: it has few repetitions, and none of a group."""
    repeats, choices = (sum(map(pattern.count, signs)) for signs in ("*+{", "?|"))
    return len(pattern) <= 200 and repeats <= 2 and choices <= 8 and not re.search(_REPEATED_GROUP, pattern)


def _profile(host: Host, name: str, folders: Sequence[str], read: Set[str]) -> tuned_profile.Profile:
    """A profile with those that it includes. No file is read twice: a site's may include the package's of its name.

    A profile whose name begins with `-` may be missing.
    """
    name = name[1:] if name.startswith("-") else name
    paths = (f"{folder}/{name}/tuned.conf" for folder in folders if re.fullmatch(_PROFILE_NAME, name, re.ASCII))
    path = next((path for path in paths if path not in read and host.exists(path)), None)
    if path is None:
        return {}
    read.add(path)
    text = host.text(path, limit=65536) or ""
    settings = tuned_profile.parse(text.replace("${i:PROFILE_DIR}", os.path.dirname(path)))
    for options in settings.values():
        if options.get("script", "/")[0] != "/":
            options["script"] = f"{os.path.dirname(path)}/{options['script']}"
    whole: tuned_profile.Profile = {}
    for parent in re.split(r"[,;\s]+", settings.get("main", {}).get("include", "")):
        whole = tuned_profile.merged(whole, _profile(host, parent, folders, read))
    return tuned_profile.merged(whole, settings)


def _immutable(host: Host) -> Optional[str]:
    if os_release_of(host).get("ID") == "bottlerocket":
        return "bottlerocket"
    if host.exists("/run/ostree-booted"):
        return "ostree"
    return "read-only /etc" if _read_only(host) else None


def _read_only(host: Host) -> bool:
    """Whether /etc is read-only for the first process; in the sandbox of nearmetal.service it always is."""
    lines = (line.split() for line in (host.text("/proc/1/mounts") or "").splitlines())
    options = {fields[1]: fields[3] for fields in lines if len(fields) > 3}
    return "ro" in options.get("/etc", options.get("/", "")).split(",")
