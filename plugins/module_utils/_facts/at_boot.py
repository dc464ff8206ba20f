# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot as a model: what others than nearmetal set in it so that nearmetal's value doesn't last. PRIVATE.

A boot applies kernel arguments, udev rules, sysctl.d and tmpfiles.d, and then starts services; network managers set
their interfaces whenever these start. nearmetal keeps disks in udev rules, kernel parameters in sysctl.d, other files
in tmpfiles.d, and interfaces by its unit. Of what is applied before, its value wins, and nothing is said here.
"""

from __future__ import annotations

import posixpath
import re
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from .._parse import boot_commands, boot_entry, cmdline, udev_rules
from .._parse.link_settings import fits
from . import boot, boot_lines, boot_programs, disk, interface, link_files, sysctl
from .host import Host

_NEARMETAL = "nearmetal-"  # the names of its files in tmpfiles.d begin so, and in sysctl.d after 99-
_RULES = f"90-{_NEARMETAL}"
_EARLIEST_RULES = "90"  # before these, rules of distributions create names and don't tune
_QUEUE = re.compile(r"/sys/(?:class/block|block|devices/.*/block)/([^/]+)/(?:bdi|queue)/(\w+)")
_BDI = re.compile(r"/sys/(?:class|devices/virtual)/bdi/([\d:]+)/read_ahead_kb")
_LINK = re.compile(r"/sys/(?:class/net|devices/.*/net)/([^/]+)/(?:napi_)?(\w+)")
_OF_CPU = re.compile(r"/sys/devices/system/cpu/(?:cpu[^/]*/cpufreq|cpufreq/policy[^/]*|cpu[^/]*/power)/")
# The patterns that lines of nearmetal have; all its other lines name a file.
_PATTERNS = (
    boot_commands.GOVERNOR,
    "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
    "/sys/devices/system/cpu/cpu*/power/energy_perf_bias",
)
_COMPUTES = "a value that it computes"
# What rules ask of a disk and older kernels or captures lack.
_ATTRIBUTES = {"queue/rotational": "0"}

_Assigned = Tuple[str, str, Optional[str]]  # key of a rule, file, value


class Setting(NamedTuple):
    """What somebody sets at each boot, after nearmetal or so that nearmetal's line is left out."""

    name: str  # sysctl.net.core.somaxconn, sysfs./sys/kernel/mm/ksm/run, or a lever and a place: network.mtu 0000:…
    file: str  # the file that says so
    value: Optional[str]  # None: its program chooses it
    says: str  # the rest of a sentence that begins with the file
    in_order: bool = True  # whether the boot promises that it comes after those before it


class _Devices(NamedTuple):
    """Name → place; a disk's number → its name."""

    disks: Dict[str, str]
    nics: Dict[str, str]
    numbers: Dict[str, str]


def observe(
    host: Host, networkd: bool, scripts: Iterable[str] = (), more: Iterable[Tuple[str, boot_commands.Setting]] = ()
) -> Tuple[Setting, ...]:
    """In the order of a boot: of two for one name the last one counts.

    `scripts` are those of tuned's profiles, and `more` is who else sets something.
    """
    places = {name: place for place, name in disk.names(host).items()}
    devices = _Devices(
        places, interface.devices(host), {host.line(f"/sys/block/{name}/dev") or "": name for name in places}
    )
    return (
        *_boot_loader(host),
        *_rules(host, devices),
        *_sysctl(host),
        *_tmpfiles(host, devices),
        *_managers(host, networkd),
        *_programs(host, devices, scripts, more),
    )


def _boot_loader(host: Host) -> Iterator[Setting]:
    """Kernel arguments in variables of GRUB's, such as tuned's $tuned_params; $kernelopts has everybody's."""
    names = [name for name in boot.entry_names(host) if host.exists(boot.environment_path(host))]
    texts = [host.text(f"{boot.ENTRIES}/{name}") or "" for name in names]
    options = {word for text in texts for line in boot_entry.parse(text).get("options", ()) for word in line.split()}
    variables = boot.entry_variables(host, {}) if any(word.startswith("$") for word in options) else {}
    path = boot.config_path(host, "mkconfig")
    for variable in sorted(word.strip("${}") for word in options if word.startswith("$")):
        for token in cmdline.tokens(variables.get(variable, "")) if variable != "kernelopts" else ():
            says = f"sets {variable} = {token}, which is in the boot entries"
            yield Setting(f"cmdline.{cmdline.split(token)[0]}", path, token, says)


def _sysctl(host: Host) -> Iterator[Setting]:
    for line in boot_lines.sysctl_lines(host, f"99-{_NEARMETAL[:-1]}"):
        if "*" not in line.name:  # a key that is named wins over a pattern
            says = f"sets {line.name} = {line.value} and is read after nearmetal's file"
            yield Setting(f"sysctl.{line.name}", line.file, line.value, says)


def _tmpfiles(host: Host, devices: _Devices) -> Iterator[Setting]:
    """Of lines with the same path the first file's holds; of patterns that match the same file the last one's."""
    lines = list(boot_lines.tmpfiles_lines(host))
    added = {line.name for line in lines if line.adds}
    for line in reversed(lines):
        earlier = line.file.rpartition("/")[2] < _NEARMETAL
        same = line.name in _PATTERNS or not (re.search(r"[*?\[]", line.name) or _OF_CPU.match(line.name))
        how = "is read before nearmetal's file, so that systemd-tmpfiles leaves nearmetal's line out"
        how = how if earlier and same else "is applied after nearmetal's file"
        for name in _names(devices, line.name):
            if earlier is same or line.adds or not name.startswith("sysfs."):
                says = f"sets {line.name} = {line.value} and {how}"
                yield Setting(name, line.file, line.value, says, in_order=line.name not in added)


def _rules(host: Host, devices: _Devices) -> Iterator[Setting]:
    """Rules that are applied after nearmetal's, or that set what no rule of nearmetal does.

    Of the rules for one event the last one counts. A device has both events, so where they end in two values either may
    be the one that stays.
    """
    added, changed = (dict(_after(host, devices, action)) for action in ("add", "change"))
    for name, setting in {**added, **changed}.items():
        other = added.get(name, setting)
        differs = other.value != setting.value
        yield from (one._replace(in_order=not differs) for one in ([other, setting] if differs else [setting]))


def _after(host: Host, devices: _Devices, action: str) -> Iterator[Tuple[str, Setting]]:
    """Name → what a rule sets at an event."""
    for name, path in boot_lines.files(host, "udev/rules.d", ".rules"):
        if name < _EARLIEST_RULES and not path.startswith(("/etc", "/run")):
            continue
        text = host.text(path, boot_lines.LIMIT) or ""
        modules = host.names("/sys/module") if '"module"' in text else ()
        for subsystem, found in (("block", devices.disks), ("net", devices.nics), ("module", modules)):
            for device in found if re.search(r"ATTR\{|RUN|SYSCTL", text) else ():
                for key, setting, value in _of_events(host, text, subsystem, device, action):
                    last = key != "ATTR" or name > _RULES or subsystem == "net"  # programs run after all rules
                    for known in _names(devices, setting) if last else ():
                        if key == "RUN" or not known.startswith("sysfs."):
                            says = f"sets {setting} = {value} whenever the device appears"
                            yield known, Setting(known, path, value, says)


def _of_events(host: Host, text: str, subsystem: str, device: str, action: str) -> Iterator[_Assigned]:
    """What rules set at the events of a device, which udev may rename after the first, and of a disk's parts."""
    yield from _of_device(host, text, subsystem, device, action)
    for part in host.names(f"/sys/block/{device}") if "{../" in text and subsystem == "block" else ():
        if part.startswith(device):
            yield from _of_device(host, text, "partition", device, action, part)
    if subsystem == "net" and not device.startswith("eth"):
        yield from _of_device(host, text, subsystem, device, action, "eth0")
    number = host.line(f"/sys/block/{device}/dev") if subsystem == "block" else None
    yield from _of_device(host, text, "bdi", device, action, number) if number else ()


def _assigned(
    host: Host, text: str, subsystem: str, device: str, action: str, kernel: str
) -> Iterator[udev_rules.Term]:
    folder = _folder(subsystem, device, kernel)

    def attribute(name: str) -> Optional[str]:
        path = name if name.startswith("/") else f"{folder}/{name}"
        return host.line(path) or ("" if host.exists(path) else _ATTRIBUTES.get(name))

    def above(name: str) -> List[str]:
        places = (f"{folder}/{up}{name}" for up in ("", "device/", "device/device/"))
        return [text for text in map(host.line, places) if text is not None]

    disk_of = subsystem in ("block", "partition")
    known = {"ACTION": action, "SUBSYSTEM": "block" if disk_of else subsystem, "KERNEL": kernel, "NAME": device}
    known.update({"%N": f"/dev/{kernel}", "%p": folder[len("/sys") :]})
    known.update({"ENV{DEVTYPE}": "disk" if subsystem == "block" else "partition"} if disk_of else {})
    known.update({"ENV{INTERFACE}": device} if subsystem == "net" else {})
    number = host.line(f"{folder}/{'ifindex' if subsystem == 'net' else 'dev'}")
    record = host.text(f"/run/udev/data/{'n' if subsystem == 'net' else 'b'}{number}", boot_lines.LIMIT) or ""
    properties = {f"ENV{{{key}}}": value for key, value in re.findall(r"^E:(ID_\w+)=(.*)$", record, re.MULTILINE)}
    asked = dict.fromkeys(re.findall(r"ENV\{ID_\w+\}", text), "") if properties else {}
    known.update({**asked, **properties})
    driver = host.target(f"{folder}/device/driver") or host.target(f"{folder}/device/device/driver")
    known.update({"DRIVERS": driver} if driver else {})
    return udev_rules.assignments(text, known, attribute, above)


def _folder(subsystem: str, device: str, kernel: str) -> str:
    folder = {"net": "/sys/class/net", "module": "/sys/module"}.get(subsystem, "/sys/block")
    below = {"bdi": "/bdi", "partition": f"/{kernel}"}.get(subsystem, "")
    return f"{folder}/{device}{below}"


def _of_device(
    host: Host, text: str, subsystem: str, device: str, action: str, kernel: str = ""
) -> Iterator[_Assigned]:
    folder = _folder(subsystem, device, kernel)
    for key, part, _sign, value in _assigned(host, text, subsystem, device, action, kernel or device):
        said = None if re.search(r"[$%]", value) else value
        if key == "ATTR":
            yield key, part if part.startswith("/") else posixpath.normpath(f"{folder}/{part}"), said
        elif key == "SYSCTL":
            yield key, sysctl.path(boot_lines.dotted(part)), said
        elif key == "RUN" and part != "builtin":
            command = value if value.startswith("/") else f"/usr/lib/udev/{value}"
            variables = {"DEVNAME": f"/dev/{device}", "INTERFACE": device, "DEVPATH": folder[len("/sys") :]}
            yield from ((key, *setting) for _owner, setting in boot_programs.commands(host, "", command, variables))


def _started_by_rules(host: Host, devices: _Devices) -> Iterator[str]:
    """The units that rules start with a disk or an interface."""
    for _name, path in boot_lines.files(host, "udev/rules.d", ".rules"):
        text = host.text(path, boot_lines.LIMIT) or ""
        for subsystem, found in (("block", devices.disks), ("net", devices.nics)):
            for device in found if "SYSTEMD_WANTS" in text else ():
                for key, part, _sign, value in _assigned(host, text, subsystem, device, "add", device):
                    yield from value.split() if (key, part) == ("ENV", "SYSTEMD_WANTS") else ()


def _managers(host: Host, networkd: bool) -> Iterator[Setting]:
    for place, found in link_files.settings(host, networkd).items():
        for setting, (path, value) in found.items():
            lever, slash, field = setting.partition("/")
            word = "an MTU" if lever == "network.mtu" else (field or lever.rpartition(".")[2]).replace("_", "-")
            yield Setting(
                f"{lever} {place}{slash}{field}",
                path,
                value,
                f"gives the interface {word} of {value or 'its own'} whenever it starts",
            )


def _programs(
    host: Host, devices: _Devices, scripts: Iterable[str], more: Iterable[Tuple[str, boot_commands.Setting]]
) -> Iterator[Setting]:
    of_tuned = (found for path in scripts for found in boot_programs.script(host, path, path, {}))
    for owner, (setting, value) in (
        *boot_programs.settings(host, _started_by_rules(host, devices)),
        *of_tuned,
        *more,
    ):
        for name in _names(devices, setting):
            says = f"sets {setting} = {_COMPUTES if value is None else value} when the host has booted"
            yield Setting(name, owner, value, says, in_order=False)


def _names(devices: _Devices, setting: str) -> Iterator[str]:
    """The names of a setting of boot_commands, with the places of its devices."""
    lever, blank, target = setting.partition(" ")
    if blank and lever.startswith("network."):
        pattern, slash, field = target.partition("/")
        yield from (f"{lever} {place}{slash}{field}" for name, place in devices.nics.items() if fits(name, pattern))
        return
    path = re.sub(r"/+", "/", setting)
    number = _BDI.fullmatch(path)
    path = f"/sys/block/{devices.numbers.get(number[1], '')}/bdi/read_ahead_kb" if number is not None else path
    queue, link = _QUEUE.fullmatch(path), _LINK.fullmatch(path)
    if queue is not None:
        yield from (f"block.{queue[2]} {place}" for name, place in devices.disks.items() if _is_disk(name, queue[1]))
    elif link is not None:
        lever = f"network.{link[2].replace('tx_queue_len', 'txqueuelen')}"
        yield from (f"{lever} {place}" for name, place in devices.nics.items() if fits(name, link[1]))
    elif path.startswith("/proc/sys/"):
        yield f"sysctl.{path[len('/proc/sys/') :].replace('/', '.')}"
    elif path.startswith("/sys/"):
        yield f"sysfs.{of_policies(path)}"


def _is_disk(name: str, pattern: str) -> bool:
    """Whether a pattern names a disk or a partition of it."""
    part = "p" if name[-1:].isdigit() else ""  # md12 is no partition of md1
    return fits(name, pattern) or re.fullmatch(rf"{re.escape(name)}{part}\d+", pattern) is not None


def of_policies(path: str) -> str:
    """The path of a file of /sys with one name for the two that it has of a CPU's frequency."""
    return re.sub("/cpu/cpu[^/]*/cpufreq/", "/cpu/cpufreq/policy*/", path)
