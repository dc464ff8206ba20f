# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which others set things at boot: random files of each kind that a boot reads, with random names."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import (
    restore_requests,
    stored_requests,
    tune_requests,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Run, plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding

from tests.support.boot_trees import BootHost, rhel_files
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import nics_of, probe, routed
from tests.support.hosts import files_of

HOSTS = ("nitro", "metal", "xen_hvm", "rhel 8", "rhel 9")
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_DEFRAG = "/sys/kernel/mm/transparent_hugepage/defrag"
_KSM = "/sys/kernel/mm/ksm/run"
_GOVERNORS = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
_WANTS = "/etc/systemd/system/multi-user.target.wants"


class Place(NamedTuple):
    """What both want to set: the option and its values, and how others name it."""

    concern: str
    option: str
    wanted: Tuple[Any, ...]
    path: str  # a kernel file or a pattern of such files
    words: Tuple[str, ...]  # the kernel's, of which others choose


PLACES = (
    Place("hugepages", "thp", ("madvise", "never"), _THP, ("always", "madvise", "never")),
    Place("hugepages", "thp_defrag", ("madvise", "defer"), _DEFRAG, ("always", "madvise", "never")),
    Place("memory", "ksm", ("disabled", "enabled"), _KSM, ("0", "1")),
    Place("memory", "swappiness", (1, 10), "/proc/sys/vm/swappiness", ("1", "10", "60")),
    Place("memory", "max_map_count", (262144, 300000), "/proc/sys/vm/max_map_count", ("262144", "70000")),
    Place("network_stack", "somaxconn", (4096, 8192), "/proc/sys/net/core/somaxconn", ("128", "4096", "8192")),
    Place("network_stack", "mtu", (1500, 9001), "/sys/class/net/ens5/mtu", ("1400", "1500", "9001")),
    Place("network_stack", "rx_ring", (2048, 512), "ring", ("2048", "256")),
    Place("cpu_power", "governor", ("performance", "powersave"), _GOVERNORS, ("performance", "powersave")),
    Place(
        "block_storage", "read_ahead_kb", (64, 4096), "/sys/block/nvme0n1/queue/read_ahead_kb", ("64", "128", "4096")
    ),
    Place("block_storage", "nomerges", (0, 2), "/sys/block/nvme0n1/queue/nomerges", ("0", "1", "2")),
    Place("block_storage", "nr_requests", (128, 64), "/sys/block/nvme0n1/queue/nr_requests", ("64", "128")),
)
_NAMES = (
    "00-first",
    "10-site",
    "50-cloud",
    "90-a",
    "90-zz",
    "99-cloud",
    "99-zz",
    "a-site",
    "ceph",
    "nearmetalz",
    "zz-last",
)


def _sysctl(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    key = place.path[len("/proc/sys/") :]
    root = rng.choice(("/etc", "/run", "/usr/lib"))
    line = rng.choice(
        (f"{key.replace('/', '.')} = {word}\n", f"-{key}={word}\n", f"# site\n{key.replace('/', '.')}={word}\n")
    )
    return (
        {f"{root}/sysctl.d/{rng.choice(_NAMES)}.conf": line}
        if root != "/run"
        else {f"/etc/sysctl.d/{rng.choice(_NAMES)}.conf": line}
    )


def _tmpfiles(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    path = place.path
    if path == _GOVERNORS and rng.random() < 0.4:
        path = path.replace("cpufreq/policy*", "cpufreq/policy[0-9]*")
    kind = rng.choice(("w", "w!", "w-", "w+"))
    root = rng.choice(("/etc", "/usr/lib"))
    return {f"{root}/tmpfiles.d/{rng.choice(_NAMES)}.conf": f"{kind} {path} - - - - {word}\n"}


def _udev(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    attribute = place.path.split("/", 4)[4]
    kernel = rng.choice(("nvme*", "nvme[0-9]n1", "sd*", "*"))
    devtype = rng.choice(('ENV{DEVTYPE}=="disk", ', 'ENV{DEVTYPE}!="partition", ', ""))
    action = rng.choice(('ACTION=="add|change", ', 'ACTION!="remove", ', 'ACTION=="change", '))
    root = rng.choice(("/etc", "/usr/lib"))
    text = f'{action}SUBSYSTEM=="block", KERNEL=="{kernel}", {devtype}ATTR{{{attribute}}}="{word}"\n'
    return {f"{root}/udev/rules.d/{rng.choice(_NAMES)}.rules": text}


def _command(rng: random.Random, place: Place, word: str) -> str:
    path = place.path
    if path == "ring":
        return f"/usr/sbin/ethtool -G ens5 rx {word}"
    forms = [f"echo {word} > {path}", f'echo "{word}" | tee {path} > /dev/null', f"printf '%s' {word} >{path}"]
    if path == _GOVERNORS:
        loop = f"for file in {path}; do echo {word} > $file; done"
        return rng.choice(
            (loop, f"cpupower frequency-set -g {word}", f"cpupower -c all frequency-set --governor {word}")
        )
    if path.startswith("/proc/sys/"):
        forms.append(f"/sbin/sysctl -w {path[len('/proc/sys/') :].replace('/', '.')}={word}")
    if path.endswith("/mtu"):
        forms.append(f"ip link set dev ens5 mtu {word}")
    if path.endswith("read_ahead_kb"):
        forms += [
            f"blockdev --setra {int(word) * 2} /dev/nvme0n1",
            f"for d in /sys/block/nvme*; do echo {word} > $d/queue/read_ahead_kb; done",
        ]
    return rng.choice(forms)


def _unit(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    name = f"{rng.choice(_NAMES)}.service"
    command, files = _command(rng, place, word), {}
    if rng.random() < 0.5:
        files["/usr/local/sbin/site-tuning"] = f"#!/bin/sh\n# tuning of this site\n{command}\n"
        start = "/usr/local/sbin/site-tuning"
    else:
        quoted = command.replace("'", "") if "'" in command else command
        start = f"/bin/sh -c '{quoted}'"
    root = rng.choice(("/etc/systemd/system", "/usr/lib/systemd/system"))
    unit = f"[Unit]\nDescription=x\n\n[Service]\nExecStart={start}\n\n[Install]\nWantedBy=multi-user.target\n"
    return {**files, f"{root}/{name}": unit, f"{_WANTS}/{name}": f"-> {root}/{name}"}


def _rc_local(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    path = rng.choice(("/etc/rc.local", "/etc/rc.d/rc.local"))
    return {path: f"#!/bin/sh -e\n{_command(rng, place, word)}\nexit 0\n"}


def _cpupower(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    start = "/usr/bin/cpupower $CPUPOWER_START_OPTS"
    unit = f"[Service]\nEnvironmentFile=-/etc/default/cpupower\nExecStart={start}\n"
    return {
        "/etc/default/cpupower": f'CPUPOWER_START_OPTS="frequency-set -g {word}"\n',
        "/usr/lib/systemd/system/cpupower.service": unit,
        f"{_WANTS}/cpupower.service": "-> /usr/lib/systemd/system/cpupower.service",
    }


def _ondemand(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    script = f"#!/bin/sh\nGOVERNOR={word}\nfor CPUFREQ in {_GOVERNORS}; do echo -n $GOVERNOR > $CPUFREQ; done\n"
    unit = "[Unit]\nConditionVirtualization=no\n[Service]\nType=idle\nExecStart=/lib/systemd/set-cpufreq\n"
    return {
        "/lib/systemd/set-cpufreq": script,
        "/lib/systemd/system/ondemand.service": unit,
        f"{_WANTS}/ondemand.service": "-> /lib/systemd/system/ondemand.service",
    }


def _sysfsutils(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    return {rng.choice(("/etc/sysfs.conf", "/etc/sysfs.d/site.conf")): f"{place.path[len('/sys/') :]} = {word}\n"}


def _profile(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    setting = f"[ethtool]\nring-rx={word}\n" if place.path == "ring" else f"[ethernet]\nmtu={word}\n"
    who = rng.choice(("interface-name=ens5\n", "", "interface-name=ens9\n"))
    address = rng.choice(("", "mac-address=02:AB:00:00:00:01\n", "mac-address=02:AB:00:00:00:09\n"))
    if place.path == "ring":
        address = ""
    text = f"[connection]\nid=site\ntype=ethernet\n{who}\n{setting}{address}"
    return {f"/etc/NetworkManager/system-connections/{rng.choice(_NAMES)}.nmconnection": text}


def _ifcfg(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    who = rng.choice(("DEVICE=ens5\n", 'DEVICE="ens5"\n', "HWADDR=02:AB:00:00:00:01\n", "DEVICE=ens9\n"))
    return {f"/etc/sysconfig/network-scripts/ifcfg-{rng.choice(('ens5', 'site', 'System_eth0'))}": f"{who}MTU={word}\n"}


def _interfaces(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    return {"/etc/network/interfaces": f"auto ens5\niface {rng.choice(('ens5', 'ens9'))} inet dhcp\n    mtu {word}\n"}


def _networkd(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    who = rng.choice(("Name=ens5", "Name=ens*", "MACAddress=02:ab:00:00:00:01", "Name=ens9"))
    return {
        f"/etc/systemd/network/{rng.choice(_NAMES)}.network": f"[Match]\n{who}\n\n[Link]\nMTUBytes={word}\n",
        f"{_WANTS}/systemd-networkd.service": "-> /usr/lib/systemd/system/systemd-networkd.service",
    }


def _link(rng: random.Random, place: Place, word: str) -> Dict[str, str]:
    return {f"/etc/systemd/network/{rng.choice(_NAMES)}.link": f"[Match]\nDriver=ena\n\n[Link]\nMTUBytes={word}\n"}


Kind = Callable[[random.Random, Place, str], Dict[str, str]]


def _kinds(place: Place) -> Tuple[Kind, ...]:
    """The kinds of files by which others may set it."""
    if place.path == "ring":
        return (_profile, _unit, _rc_local)
    if place.path.endswith("/mtu"):
        return (_profile, _ifcfg, _interfaces, _networkd, _link, _unit, _rc_local)
    if place.path == _GOVERNORS:
        return (_tmpfiles, _cpupower, _ondemand, _unit, _rc_local)
    if place.path.startswith("/sys/block"):
        return (_udev, _udev, _tmpfiles, _unit, _rc_local, _sysfsutils)
    if place.path.startswith("/proc/sys"):
        return (_sysctl, _sysctl, _tmpfiles, _unit, _rc_local)
    return (_tmpfiles, _tmpfiles, _unit, _rc_local, _sysfsutils)


class _Rhel(BootHost):
    """It boots from its entries, and its other programs are those of every fake kernel."""

    def command(self, argv: "list[str] | tuple[str, ...]", timeout: float = 60) -> str:
        return FakeKernel.command(self, argv, timeout)


class Beside:
    """A host with foreign files, and its twin that never meets nearmetal."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.name = self.rng.choice(HOSTS)
        chosen = self.rng.sample(PLACES, self.rng.randint(1, 4))
        self.concerns: Dict[str, Dict[str, Any]] = {}
        self.files: Dict[str, str] = {}
        for place in chosen:
            options = self.concerns.setdefault(place.concern, {})
            options[place.option] = self.rng.choice(place.wanted)
            if place.path.endswith(("/mtu", "ring")):
                options["allow_disruptive"] = True
            for _count in range(self.rng.choice((0, 1, 1, 2))):
                kind = self.rng.choice(_kinds(place))
                self.files.update(kind(self.rng, place, self.rng.choice(place.words)))
        if self.name.startswith("rhel"):
            self.concerns.setdefault("clocksource", {})["tsc_reliable"] = "enabled"
            if self.rng.random() < 0.7:
                self.concerns.setdefault("block_storage", {}).update({"io_timeout": "600000", "method": "boot"})
            self.files.update(_grub(self.rng, self.name))
        self.host, self.twin = (self._host(folder / name) for name in ("host", "twin"))

    def _host(self, root: Path) -> FakeKernel:
        root.mkdir()
        rhel = self.name.startswith("rhel")
        files = files_of("metal" if rhel else self.name, rhel_files(int(self.name[-1])) if rhel else {})
        nic = nics_of(files)[0]
        files = routed({**files, f"/sys/class/net/{nic}/address": "02:ab:00:00:00:01\n"})
        disk = sorted({path.split("/")[3] for path in files if path.startswith("/sys/block/")})[0]
        host: FakeKernel = _Rhel(root, files, []) if rhel else FakeKernel(root, files)
        probe(host)
        for path, text in self.files.items():
            place = root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                place.unlink(missing_ok=True)
                place.symlink_to(text[3:])
            else:
                place.write_text(text.replace("ens5", nic).replace("nvme0n1", disk))
        return host

    def boot(self, boot_id: str, unit: bool = True) -> None:
        """Boot both; the unit of nearmetal plans after all others have done their part."""
        self.host.reboot(boot_id)
        self.twin.reboot(boot_id)
        if unit and (Path(self.host.root) / "etc/systemd/system/timers.target.wants/nearmetal.timer").is_symlink():
            run(self.host, stored_requests, conditions=OF_UNIT)

    def tune(self, check: bool = False) -> Run:
        """Tune the host to what is wanted."""

        def ask(known: Any) -> Any:
            return tune_requests(workloads=(), concerns=self.concerns, common={}, on_host=known)

        return (plan_run if check else run)(self.host, ask)

    def restore(self) -> Run:
        """Restore the host."""
        return run(self.host, lambda known: restore_requests(None, known))

    def named(self, done: Run, finding: Finding) -> bool:
        """Whether a run named a file of others as the owner of the knob of this finding."""
        paths = [path for path, text in self.files.items()]
        return any(
            other.knob == finding.knob and any(path in f"{other.owner} {other.reason}" for path in paths)
            for outcome in done.outcomes
            for other in outcome.plan.findings
        )


def _grub(rng: random.Random, name: str) -> Dict[str, str]:
    """What grub.cfg and grubenv may say beside the entries."""
    text = rng.choice(("", 'set tuned_params="nvme_core.io_timeout=4294967295"\n', "set tuned_params='skew_tick=1'\n"))
    if name == "rhel 8" and rng.random() < 0.5:
        kept = 'set kernelopts="root=UUID=d6ab2e6a-0001-4cd9-9f4f-1f0ac0ffee00 ro console=tty0"'
        files = {"/boot/grub2/grub.cfg": f'{text}if [ -z "${{kernelopts}}" ]; then\n  {kept}\nfi\nblscfg\n'}
        if rng.random() < 0.7:
            files["/boot/grub2/grubenv"] = "# GRUB Environment Block\nsaved_entry=x\n".ljust(1024, "#")
        return files
    return {"/boot/grub2/grub.cfg": f"{text}blscfg\n"}


def actions(done: Run) -> List[Tuple[str, str, str]]:
    """Knob, lever and place of each action of a run, apart from what it stores."""
    return [(action.knob, action.what, action.where) for outcome in done.outcomes for action in outcome.plan.actions]


def differences(host: FakeKernel, twin: FakeKernel) -> Mapping[str, Tuple[str, str]]:
    """The files of the disk and of the kernel in which both differ, without what each boot numbers anew."""
    left, right = (_files(Path(each.root)) for each in (host, twin))
    return {
        path: (left.get(path, "-"), right.get(path, "-"))
        for path in sorted({*left, *right})
        if left.get(path) != right.get(path)
    }


def _files(root: Path) -> Dict[str, str]:
    found = {}
    for top in (
        "etc",
        "boot",
        "proc/sys",
        "proc/cmdline",
        "sys/kernel/mm",
        "sys/block",
        "sys/devices/system/cpu/cpufreq",
        "sys/class/net",
    ):
        for path in [root / top] if (root / top).is_file() else (root / top).rglob("*"):
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(root))] = path.read_text(errors="replace")
    return found
