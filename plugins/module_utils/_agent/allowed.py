# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a host may leave it in a capture: a list of paths, and of each file the parts that plans need. Pure.

What isn't listed isn't read. No rule lets a name, serial, address or key through: a
value is a number, a word of the kernel's, or a line whose whole form is known.
PRIVATE to the collection.
"""

from __future__ import annotations

import re
from typing import Callable, Iterable, List, Optional, Pattern, Tuple

from .._concerns.registry import CONCERNS
from .._facts.native_files import MARK
from .._facts.owners import ABOUT
from .._facts.platform import CONTAINER_GROUP, MARKERS
from .._facts.sysctl import OBSERVED
from .._facts.systemd import LIBRARIES, LIBRARY
from .._facts.time_source import UNITS as TIME_SERVICES
from .._parse import kernel_counters, listening, program, time_sources

Filter = Callable[[str], str]

LONGEST_FILE = 4 * 1024 * 1024

_IDS = re.compile(r"\b(i|vol|eni|ami|snap|vpc|subnet|sg|r|h)-[0-9a-f]{8,17}\b", re.ASCII)
_MAC = re.compile(r"\b(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b", re.ASCII)
_ADDRESS = re.compile(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b", re.ASCII)


def _any(names: Iterable[str]) -> str:
    """An expression for one of these names."""
    return "|".join(sorted(map(re.escape, set(names))))


_KNOBS = tuple(knob for concern in CONCERNS.values() for knob in concern.knobs)
# tuned's options that set them, without their plugin: governor, readahead.
_TUNED_OPTIONS = [setting.partition(".")[2] for knob in _KNOBS for setting in knob.tuned]
# Kernel arguments that decide over what is tuned, or how it is read; all others may hold anything.
_SET = _any(knob.place for knob in _KNOBS if knob.lever == "boot.arguments")
_ARGUMENT = re.compile(
    rf"(?:{_SET}|clocksource|maxcpus|nr_cpus|intel_pstate|amd_pstate|numa_balancing|hugepagesz|default_hugepagesz"
    r"|isolcpus|nohz_full|rcu_nocbs|irqaffinity|nvme\.[a-z_]+|nvme_core\.[a-z_]+|ena\.[a-z_]+|xen[-_]blkfront\.[a-z_]+"
    r"|xen_nopvspin|mitigations|elevator|skew_tick|nearmetal|ro|rw|quiet)(?:=[A-Za-z0-9_.,:@+-]{0,64})?",
    re.ASCII,
)
_CPUINFO = re.compile(
    r"(?:processor|vendor_id|cpu family|model|model name|stepping|physical id|siblings|core id|cpu cores|flags|Features"
    r"|CPU (?:implementer|architecture|variant|part|revision))\s*:[ -~]*",
    re.ASCII,
)
_OS_RELEASE = re.compile(r"(?:ID|VERSION_ID|ID_LIKE|VARIANT_ID)=[\"']?[A-Za-z0-9_. -]{0,64}[\"']?", re.ASCII)
_KMSG = re.compile(
    r"(?:[0-9]+,[0-9]+,[0-9]+,[-a-z,]{1,8};|\[ *[0-9.]+\] )?"
    r"(?:clocksource: (?:Switched to clocksource |timekeeping watchdog on |Marking clocksource |tsc|hpet|xen|kvm-clock)"
    r"|tsc: |TSC |Marking (?:TSC|clocksource) |Clocksource tsc |Switching to clocksource |blkfront: "
    r"|(?:xen_blkfront: )?Invalid max_queues )"
    r"[A-Za-z0-9_ .,:;()'=/+-]{0,200}",
    re.ASCII,
)
_VALUE = r"[A-Za-z0-9_.,:|=/+ \t-]{0,120}"
_SYSCTL = re.compile(rf"\s*-?({_any(OBSERVED)})\s*=\s*{_VALUE}", re.ASCII)
_NEARMETAL_LINE = re.compile(
    rf"{re.escape(MARK)} \(concern [a-z_]+\): [ -~]{{0,60}}|w!? /(?:sys|proc)/[A-Za-z0-9_./*:-]+ - - - - {_VALUE}"
)
_TUNED = re.compile(
    rf"\[[A-Za-z0-9_.-]{{1,40}}\]|(?:include|drop|{_any(ABOUT)}|{_any(_TUNED_OPTIONS)})"
    rf"\s*=\s*{_VALUE}|/sys/devices/system/[A-Za-z0-9_./*-]+\s*=\s*{_VALUE}",
    re.ASCII,
)


def words(text: str) -> str:
    """A file of numbers and words of the kernel's own, with ids, hardware and network addresses made zeros."""
    plain = "".join(char for char in text if char.isprintable() or char in "\n\t")
    plain = _IDS.sub(lambda match: f"{match[1]}-{'0' * 17}", plain)
    return _ADDRESS.sub("0.0.0.0", _MAC.sub("00:00:00:00:00:00", plain))


def _lines(*forms: Pattern[str]) -> Filter:
    """Only lines that have one of these forms as a whole."""

    def keep(text: str) -> str:
        kept = [line for line in text.splitlines() if any(form.fullmatch(line) for form in forms)]
        return words("".join(f"{line}\n" for line in kept))

    return keep


def _arguments(text: str) -> str:
    return words(" ".join(word for word in text.split() if _ARGUMENT.fullmatch(word)) + "\n")


def _routes(text: str) -> str:
    """Default routes alone, without their gateways: all that a plan asks is which interface has one."""
    kept: List[str] = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 7 and fields[1] == fields[7] == "00000000":
            kept.append("\t".join([fields[0], "00000000", "00000000", *fields[3:7], "00000000"]))
        elif len(fields) == 10 and fields[0] == "0" * 32 and fields[1] == "00":
            kept.append(" ".join([*fields[:4], "0" * 32, *fields[5:]]))
    return "".join(f"{line}\n" for line in kept)


def _mounts(text: str) -> str:
    """Whether / and /etc are read-only."""
    rows = [line.split() for line in text.splitlines()]
    kept = [row for row in rows if len(row) > 3 and row[1] in ("/", "/etc")]
    return "".join(f"- {row[1]} - {'ro' if 'ro' in row[3].split(',') else 'rw'} 0 0\n" for row in kept)


def _tuned(text: str) -> str:
    kept = []
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if sign and name.strip().startswith("cmdline"):
            kept.append(f"{name.strip()}={_arguments(value.strip().lstrip('+-'))}".strip())
        elif _TUNED.fullmatch(line) or _SYSCTL.fullmatch(line):
            kept.append(line)
    return words("".join(f"{line}\n" for line in kept))


def _known_name(text: str) -> str:
    return text if program.by_comm(text) is not None else ""


def _packages(text: str) -> str:
    """The known programs and collectors of Java that a command line names; it may hold passwords."""
    return "\n".join([*program.collectors(text), *program.packages(text)])


def _ports(text: str) -> str:
    return listening.render(listening.parse(text))


def _swaps(text: str) -> str:
    return kernel_counters.render_swaps(kernel_counters.parse_swaps(text) or [])


def _time_sources(text: str) -> str:
    return time_sources.render(time_sources.chrony(text))


def _time_servers(text: str) -> str:
    return time_sources.render(time_sources.timesyncd(text))


def _container_group(text: str) -> str:
    """Whether a process is in a container, without the name of its control group."""
    return ("/docker/\n" if CONTAINER_GROUP.search(text) else "") + ("/..\n" if "/.." in text else "")


def _nothing(text: str) -> str:
    """Nothing of the file is kept: that it exists says enough."""
    return ""


def _instance(text: str) -> str:
    return f"i-{'0' * 17}\n" if _IDS.search(text) else ""


def _hypervisor_uuid(text: str) -> str:
    return "ec2" + "0" * 5 + "-0000-0000-0000-000000000000\n" if text.startswith("ec2") else ""


def _rule(path: str, keep: Filter = words) -> Tuple[Pattern[str], Filter]:
    return re.compile(path, re.ASCII), keep


_NAME = r"[A-Za-z0-9_.:@-]{1,64}"
_AT_BOOT = _any(path for knob in _KNOBS for path in knob.at_boot).replace(r"\*", _NAME)
_KEY_FILES = _any(key.replace(".", "/") for key in OBSERVED)
RULES: Tuple[Tuple[Pattern[str], Filter], ...] = (
    _rule(rf"/sys/devices/system/(?:cpu|node|clocksource)(?:/{_NAME})*"),
    _rule(rf"/sys/kernel/mm(?:/(?:transparent_hugepage|hugepages|ksm)(?:/{_NAME})*)?"),
    _rule(
        rf"/sys/class/net(?:/{_NAME}(?:/(?:flags|ifindex|mtu|tx_queue_len|napi_defer_hard_irqs|gro_flush_timeout|type"
        rf"|lower_{_NAME}|queues(?:/[a-z0-9_-]+)*"
        r"|device(?:/\.\.)?(?:/(?:driver|numa_node|msi_irqs(?:/[0-9]+)?))?))?)?"
    ),
    _rule(
        rf"/sys/block(?:/{_NAME}(?:/(?:slaves(?:/{_NAME})?|queue(?:/[a-z_]+)?|mq(?:/[0-9]+(?:/[a-z_]+)?)?"
        r"|device(?:/device)?(?:/(?:model|driver))?|device/(?:device/|\.\./)?numa_node))?)?"
    ),
    _rule(r"/sys/module/(?:ena|nvme|nvme_core|xen_blkfront)(?:/(?:version|parameters(?:/[a-z_]+)?))?"),
    _rule(rf"/sys/bus/xen/devices(?:/vbd-[0-9]+(?:/(?:devtype|modalias|block(?:/{_NAME})?))?)?"),
    _rule(r"/sys/hypervisor(?:/(?:type|guest_type|version(?:/extra)?))?"),
    _rule(r"/sys/hypervisor/uuid", _hypervisor_uuid),
    _rule(r"/sys/kernel/sched_ext/root/ops"),
    _rule(r"/sys/devices/virtual/dmi/id/(?:sys_vendor|bios_vendor|bios_version|product_name)"),
    _rule(r"/sys/devices/virtual/dmi/id/board_asset_tag", _instance),
    _rule(
        r"/sys/fs/cgroup(?:/systemd)?/system\.slice"
        rf"(?:/(?:(?:tuned|irqbalance|kubelet)\.service|{_any(TIME_SERVICES)})/cgroup\.procs)?",
        lambda _: "1\n",
    ),
    _rule(r"/sys/fs/selinux/enforce"),
    _rule(r"/etc/systemd/system/timers\.target\.wants/fstrim\.timer", _nothing),
    _rule(rf"(?:{_AT_BOOT})(?:_choices)?"),  # with the file beside it that lists its words
    _rule(rf"/proc/sys/(?:{_KEY_FILES}|fs/file-nr|kernel/osrelease|kernel/arch)"),
    _rule(r"/proc/(?:meminfo|interrupts|stat|uptime|vmstat|diskstats|net/(?:dev|softnet_stat|netstat|snmp))"),
    _rule(r"/proc/swaps", _swaps),
    _rule(r"/sys/class/ptp(?:/ptp[0-9]{1,4}(?:/clock_name)?)?"),
    _rule(
        rf"/etc/(?:chrony/)?chrony\.conf|/etc/ntp(?:sec/ntp)?\.conf|/(?:etc|run)/chrony\.d(?:/{_NAME})?"
        rf"|/etc/chrony/(?:conf|sources)\.d(?:/{_NAME})?",
        _time_sources,
    ),
    _rule(
        rf"/(?:usr/lib|etc|run)/systemd/timesyncd\.conf(?:\.d(?:/{_NAME})?)?"
        r"|/run/systemd/netif/links(?:/[0-9]{1,9})?",
        _time_servers,
    ),
    _rule(rf"/proc/irq(?:/{_NAME})*"),
    _rule(r"/proc(?:/[0-9]{1,7}(?:/fd(?:/[0-9]{1,7})?|/exe|/ns/(?:pid|net))?)?"),
    _rule(r"/proc/[0-9]{1,7}/comm", _known_name),
    _rule(r"/proc/[0-9]{1,7}/cmdline", _packages),
    _rule(r"/proc/(?:[0-9]{1,7}/)?net/tcp6?", _ports),
    _rule(r"/proc/cmdline", _arguments),
    _rule(r"/proc/cpuinfo", _lines(_CPUINFO, re.compile(""))),
    _rule(r"/proc/net/(?:route|ipv6_route)", _routes),
    _rule(r"/proc/1/mounts", _mounts),
    _rule(r"/proc/self/ns/pid"),
    _rule(r"/proc/(?:self|1)/cgroup", _container_group),
    _rule(r"/dev/kmsg|/var/log/dmesg", _lines(_KMSG)),
    _rule(r"(?:/etc|/usr/lib)/os-release", _lines(_OS_RELEASE)),
    _rule(
        r"/etc/sysctl\.d/99-nearmetal-[a-z_]+\.conf|/etc/tmpfiles\.d/nearmetal-[a-z_]+\.conf",
        _lines(_NEARMETAL_LINE, _SYSCTL),
    ),
    _rule(rf"/(?:etc|run|usr/local/lib|usr/lib|lib)/sysctl\.d(?:/{_NAME}\.conf)?", _lines(_SYSCTL)),
    _rule(r"/etc/systemd/system(?:/multi-user\.target\.wants)?(?:/tuned\.service)?", _nothing),
    _rule(r"/etc/tuned/active_profile", _lines(re.compile(r"[A-Za-z0-9_. -]{0,200}"))),
    _rule(rf"/(?:etc|usr/lib)/tuned(?:/profiles)?/{_NAME}/tuned\.conf", _tuned),
    _rule(_any(path for path, _engine in MARKERS), _nothing),
    _rule(
        r"/run/ostree-booted|/run/systemd/(?:system|container)|/etc/kubernetes/kubelet\.conf|/var/lib/kubelet"
        r"|/sys/firmware/efi|/usr/lib/systemd/systemd|/usr/bin/python3(?:\.[0-9]+)?",
        _nothing,
    ),
    _rule(rf"(?:{_any(LIBRARIES)})(?:/{LIBRARY})?", _nothing),
)


def rule_of(path: str) -> Optional[Filter]:
    """What may be kept of a file; None for one that isn't read at all."""
    return next((keep for form, keep in RULES if form.fullmatch(path)), None)


_PROCESS = re.compile(r"/proc(?:/[0-9]{1,7}(?:/.*)?)?", re.ASCII)
_NUMBERED = re.compile(r"(?:socket|pid|net):\[[0-9]{1,20}\]", re.ASCII)


def is_of_process(path: str) -> bool:
    """Whether the path is about a process. Nothing is kept of unknown programs, not even that they run."""
    return _PROCESS.fullmatch(path) is not None


def link_of(path: str, target: str) -> Optional[str]:
    """What may be kept of a link's target: of a process the sockets, namespaces, and whether its file runs scripts."""
    if not is_of_process(path):
        return target
    if path.endswith("/exe"):
        return "/sh" if program.is_interpreter(program.file_name(target)) else "/program"
    return target if _NUMBERED.fullmatch(target) else None
