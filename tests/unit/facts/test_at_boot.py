# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files of others set of devices at a boot: each form of udev, tmpfiles.d, network managers and SAP's programs."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import at_boot, owners
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from tests.support.hosts import lay_out

NIC, DISK = "0000:00:05.0", "0000:00:04.0/n1"
DEVICE = f"/sys/devices/pci0000:00/{NIC}"
HARDWARE = {
    "/sys/class/net/ens5/device": f"-> {DEVICE}",
    "/sys/class/net/ens5/address": "02:ab:00:00:00:01\n",
    "/sys/class/net/ens5/ifindex": "2\n",
    f"{DEVICE}/driver": "-> /sys/bus/pci/drivers/ena",
    "/sys/block/nvme0n1/device/device": "-> /sys/devices/pci0000:00/0000:00:04.0",
    "/sys/block/nvme0n1/device/model": "Amazon Elastic Block Store\n",
    "/sys/block/nvme0n1/nsid": "1\n",
    "/sys/block/nvme0n1/dev": "259:0\n",
    "/sys/block/nvme0n1/queue/read_ahead_kb": "128\n",
    "/proc/cpuinfo": "vendor_id\t: GenuineIntel\nflags\t: fpu hypervisor\n",
    "/proc/cmdline": "ro\n",
}
MTU, RING, AHEAD = f"network.mtu {NIC}", f"network.rings {NIC}/rx", f"block.read_ahead_kb {DISK}"
SWAP, KSM = "sysctl.vm.swappiness", "/sys/kernel/mm/ksm/run"
Given = Tuple[str, Dict[str, str], Optional[str]]


def rule(text: str, **more: str) -> Dict[str, str]:
    return {"/etc/udev/rules.d/99-x.rules": f"{text}\n", **more}


def record(line: str) -> Dict[str, str]:
    return {"/run/udev/data/b259:0": f"S:disk/x\nE:{line}\n"}


def link(match: str, line: str = "MTUBytes=1400") -> Dict[str, str]:
    return {"/etc/systemd/network/10-x.link": f"[Match]\n{match}\n[Link]\n{line}\n"}


def profile(text: str, conf: str = "") -> Dict[str, str]:
    files = {"/etc/NetworkManager/conf.d/x.conf": conf} if conf else {}
    return {**files, "/etc/NetworkManager/system-connections/x.nmconnection": text}


def conf(device: str) -> Dict[str, str]:
    return {"/etc/NetworkManager/conf.d/x.conf": f"[connection-a]\nmatch-device={device}\nethernet.mtu=1400\n"}


def saptune(**files: str) -> Dict[str, str]:
    places = {"note": "/var/lib/saptune/working/notes/N", "override": "/etc/saptune/override/N"}
    return {
        "/etc/systemd/system/multi-user.target.wants/saptune.service": "-> /usr/lib/systemd/system/saptune.service",
        "/etc/sysconfig/saptune": 'TUNE_FOR_NOTES="N"\n',
        **{places[name]: text for name, text in files.items()},
    }


def scylla(lines: str) -> Dict[str, str]:
    unit = "/usr/lib/systemd/system/scylla-server.service"
    return {
        "/etc/systemd/system/multi-user.target.wants/scylla-server.service": f"-> {unit}",
        unit: "[Service]\nEnvironmentFile=/etc/sysconfig/scylla-server\nExecStart=/usr/bin/scylla\n",
        "/etc/sysconfig/scylla-server": f"{lines}\n",
    }


NET, BLOCK = 'SUBSYSTEM=="net", ACTION=="add"', 'SUBSYSTEM=="block", ACTION=="add|change"'
ETHERNET = "[connection]\ntype=ethernet\n"
RA, ECHO = "read_ahead_kb", "echo 64 > /sys/block/"
EBS = f'{BLOCK}, ENV{{ID_MODEL}}=="Amazon EBS", ATTR{{queue/{RA}}}="64"'
RULES: Dict[str, Given] = {
    "a disk's bdi": (AHEAD, rule('SUBSYSTEM=="bdi", ACTION=="add", ATTR{read_ahead_kb}="4096"'), "4096"),
    **{
        f"Amazon's rule for NFS in {root}": (
            AHEAD,
            {
                f"{root}/udev/rules.d/53-ec2-read-ahead-kb.rules": 'SUBSYSTEM=="bdi", ACTION=="add",'
                ' PROGRAM="/bin/awk /proc/fs/nfsfs/volumes", ATTR{read_ahead_kb}="15360"\n'
            },
            "",
        )
        for root in ("/etc", "/usr/lib")
    },
    "a part of it": (AHEAD, rule(f'{BLOCK}, ATTRS{{model}}=="Amazon*", ATTR{{queue/read_ahead_kb}}="4096"'), "4096"),
    "other parts": (AHEAD, rule(f'{BLOCK}, ATTRS{{model}}=="QEMU*", ATTR{{queue/read_ahead_kb}}="4096"'), ""),
    "no file": (AHEAD, rule(f'{BLOCK}, ATTR{{queue/rotational}}=="0", ATTR{{queue/read_ahead_kb}}="9"'), "9"),
    "a property": (AHEAD, rule(f'{BLOCK}, ENV{{A}}="64", ATTR{{queue/read_ahead_kb}}="$env{{A}}"'), "64"),
    "computed": (AHEAD, rule(f'{BLOCK}, PROGRAM="/a", ATTR{{queue/read_ahead_kb}}="%c"'), None),
    "the kernel's name": (MTU, rule(f'{NET}, KERNEL=="eth*", ATTR{{mtu}}="1400"'), "1400"),
    "a prefix": (
        f"network.defer_hard_irqs {NIC}",
        rule(f'{NET}, KERNEL=="ens5", ATTR{{napi_defer_hard_irqs}}="2"'),
        "2",
    ),
    "another driver": (MTU, rule(f'{NET}, DRIVERS=="ixgbevf", ATTR{{mtu}}="1400"'), ""),
    "$env": (RING, rule(f'{NET}, RUN+="/usr/sbin/ethtool -G $env{{INTERFACE}} rx 512"'), "512"),
    "a script": (
        RING,
        rule(f'{NET}, RUN+="/opt/ring %k"', **{"/opt/ring": "#!/bin/sh\nethtool -G $1 rx 512\n"}),
        "512",
    ),
    **{
        f"a unit {condition}": (
            RING,
            rule(
                f'{NET}{condition}, TAG+="systemd", ENV{{SYSTEMD_WANTS}}+="ring@%k.service"',
                **{"/usr/lib/systemd/system/ring@.service": "[Service]\nExecStart=/sbin/ethtool -G %i rx 512\n"},
            ),
            value,
        )
        for condition, value in (
            ("", "512"),
            (', ATTR{address}=="02:ab:*"', "512"),
            (', ATTR{address}=="0e:*"', ""),
            (', ATTR{address}!="02:ab:*"', ""),
            (', DRIVERS=="ena"', "512"),
            (', DRIVERS=="ixgbevf"', ""),
            (', TEST=="none"', ""),
        )
    },
    **{
        f"a command {command}": (
            AHEAD,
            rule(
                f'{BLOCK}, KERNEL=="nvme*", RUN+="{command}"',
                **{"/usr/lib/udev/ra": f"#!/bin/sh\n{ECHO}$1/queue/{RA}\n"},
            ),
            "64",
        )
        for command in (
            "/sbin/blockdev --setra 128 $devnode",
            "/sbin/blockdev --setra 128 %N",
            "/sbin/blockdev --setra 128 %r/%k",
            f"/bin/sh -c 'echo 64 > %S%p/queue/{RA}'",
            f"/bin/sh -c 'echo 64 > /sys$devpath/bdi/{RA}'",
            "ra $kernel",
        )
    },
    "a property of the record": (AHEAD, {**rule(EBS), **record("ID_MODEL=Amazon EBS")}, "64"),
    "another property": (AHEAD, {**rule(EBS), **record("ID_MODEL=Amazon EC2 NVMe Instance Storage")}, ""),
    "a property that the record lacks": (AHEAD, {**rule(EBS), **record("ID_BUS=nvme")}, ""),
    "a script that SUSE's file leaves empty": (
        MTU,
        {
            "/etc/sysconfig/network/ifcfg-ens5": "POST_UP_SCRIPT=''\n",
            "/etc/sysconfig/network/scripts/x": "#!/bin/sh\nip link set $1 mtu 1300\n",
        },
        "",
    ),
    "a partition that sets its disk": (
        AHEAD,
        {
            **rule(f'{BLOCK}, ENV{{DEVTYPE}}=="partition", ATTR{{../queue/{RA}}}="64"'),
            "/sys/block/nvme0n1/nvme0n1p1/dev": "259:1\n",
        },
        "64",
    ),
    "a partition's device": (AHEAD, {"/etc/rc.local": "#!/bin/sh\nblockdev --setra 128 /dev/nvme0n1p1\n"}, "64"),
    "names that a script takes from paths": (
        AHEAD,
        {
            "/etc/rc.local": "#!/bin/sh\nD=\"$(ls -d1 /sys/block/nvme* | sed 's;^.*/;;')\"\n"
            f"for d in $D; do\n  echo 64 > /sys/block/$d/queue/{RA}\ndone\n"
        },
        "64",
    ),
    "a disk whose name begins so": (AHEAD, {"/etc/rc.local": "#!/bin/sh\nblockdev --setra 128 /dev/nvme0n12\n"}, ""),
    "a bdi by its number": (AHEAD, {"/etc/tmpfiles.d/x.conf": f"w /sys/class/bdi/259:0/{RA} - - - - 64\n"}, "64"),
    "a module": (
        SWAP,
        {
            **rule('ACTION=="add", SUBSYSTEM=="module", KERNEL=="br_netfilter", RUN+="/sbin/sysctl vm.swappiness=60"'),
            "/sys/module/br_netfilter/refcnt": "0\n",
        },
        "60",
    ),
    "a command for a file of the kernel": (f"sysfs.{KSM}", rule(f"{NET}, RUN+=\"/bin/sh -c 'echo 1 > {KSM}'\""), "1"),
    "tmpfiles.d \\n": (f"sysfs.{KSM}", {"/etc/tmpfiles.d/a.conf": f"w {KSM} - - - - 1\\n\n"}, "1"),
}
MANAGERS: Dict[str, Given] = {
    **{
        f"link {match}": (MTU, link(match), "1400")
        for match in ("MACAddress=02-AB-00-00-00-01", "MACAddress=02AB.0000.0001")
    },
    **{f"link {word}": (MTU, link(f"Driver=ena\n{word}"), "1400") for word in ("Virtualization=yes", "Host=*")},
    **{
        f"link {word}": (MTU, link(f"Driver=ena\n{word}"), "")
        for word in ("Virtualization=no", "KernelCommandLine=site", "Driver=\nDriver=igb")
    },
    "unmanaged by networkd": (
        MTU,
        {"/etc/systemd/network/1.network": "[Match]\nName=ens5\n[Link]\nUnmanaged=yes\nMTUBytes=1400\n"},
        "",
    ),
    **{
        f"NetworkManager {device}": (MTU, conf(device), "1400")
        for device in (
            "interface-name:ens5",
            "interface-name:~ens*",
            "driver:ena",
            "mac:02:AB:00:00:00:01",
            "type:ethernet",
            "*",
            "except:type:wifi",
            "ens5",
        )
    },
    **{
        f"NetworkManager {device}": (MTU, conf(device), "")
        for device in ("interface-name:ens9", "except:interface-name:ens5", "type:wifi", "*,except:ens5")
    },
    "unmanaged": (
        MTU,
        profile(f"{ETHERNET}[ethernet]\nmtu=1400\n", "[keyfile]\nunmanaged-devices=interface-name:ens*\n"),
        "",
    ),
    "a device not managed": (
        MTU,
        profile(f"{ETHERNET}[ethernet]\nmtu=1400\n", "[device-a]\nmatch-device=driver:ena\nmanaged=0\n"),
        "",
    ),
    "not by itself": (MTU, profile(f"{ETHERNET}autoconnect=false\n[ethernet]\nmtu=1400\n"), ""),
    "not for this one": (
        MTU,
        profile(f"{ETHERNET}[ethernet]\nmtu=1400\nmac-address-blacklist=02:AB:00:00:00:01;\n"),
        "",
    ),
    "six numbers": (MTU, profile(f"{ETHERNET}[ethernet]\nmtu=1400\nmac-address=2;171;0;0;0;1;\n"), "1400"),
    "another folder": (
        MTU,
        {
            "/etc/NetworkManager/conf.d/x.conf": "[keyfile]\npath=/opt/nm\n",
            "/opt/nm/x": f"{ETHERNET}[ethernet]\nmtu=1400\n",
        },
        "1400",
    ),
    "ifupdown's sources": (
        MTU,
        {
            "/etc/network/interfaces": "source /etc/network/x/*\n",
            "/etc/network/x/a": "iface ens5 inet dhcp\n mtu 1400\n",
        },
        "1400",
    ),
    "ifupdown's scripts": (
        RING,
        {
            "/etc/network/interfaces": "iface ens5 inet dhcp\n post-up /opt/a\n",
            "/opt/a": "#!/bin/sh\nethtool -G $IFACE rx 512\n",
        },
        "512",
    ),
    **{
        f"scripts in {folder}": (RING, {f"{folder}/x": '#!/bin/sh\n[ "$2" = up ] && ethtool -G "$1" rx 512\n'}, "512")
        for folder in (
            "/usr/lib/NetworkManager/dispatcher.d",
            "/etc/NetworkManager/dispatcher.d/pre-up.d",
            "/etc/networkd-dispatcher/configured.d",
            "/etc/network/if-pre-up.d",
            "/etc/dhcp/dhclient-exit-hooks.d",
        )
    },
    **{
        f"perftune of ScyllaDB {lines}": (f"network.affinity {NIC}", scylla(lines), value)
        for lines, value in (
            ("SET_NIC_AND_DISKS=yes", None),
            ("SET_NIC_AND_DISKS=yes\nIFNAME=ens5", None),
            ("SET_NIC_AND_DISKS=yes\nIFNAME=eth9", ""),
            ("SET_NIC=no", ""),
        )
    },
    "perftune's scheduler": (f"block.scheduler {DISK}", scylla("SET_NIC=yes"), "none"),
    "a note of saptune": (SWAP, saptune(note="[sysctl]\nvm.swappiness = 60\n"), "60"),
    "a note's file of /sys": (f"sysfs.{KSM}", saptune(note="[sys]\nkernel.mm.ksm.run=1\n"), "1"),
    "a note's disk": (AHEAD, saptune(note="[sys]\nblock/nvme0n1/queue/read_ahead_kb=64\n"), "64"),
    "a changed note": (
        SWAP,
        saptune(note="[sysctl]\nvm.swappiness = 60\n", override="[sysctl]\nvm.swappiness = 1\n"),
        "1",
    ),
    "a note's setting left out": (
        SWAP,
        saptune(note="[sysctl]\nvm.swappiness = 60\n", override="[sysctl]\nvm.swappiness =\n"),
        "",
    ),
    "the first of a note's schedulers": (
        f"block.scheduler {DISK}",
        saptune(note="[block]\nIO_SCHEDULER=none, noop\n"),
        "none",
    ),
}


def values(root: Path, files: Dict[str, str], name: str) -> List[Optional[str]]:
    lay_out(root, {**HARDWARE, **files})
    return [setting.value for setting in at_boot.observe(Host(str(root)), True) if setting.name == name][-1:]


@pytest.mark.parametrize("form", [*RULES, *MANAGERS])
def test_a_form_is_read(form: str, tmp_path: Path) -> None:
    name, files, value = {**RULES, **MANAGERS}[form]
    assert values(tmp_path, files, name) == ([] if value == "" else [value])


def test_of_lines_for_one_path_that_may_both_hold_each_is_said(tmp_path: Path) -> None:
    lay_out(tmp_path, {**HARDWARE, "/etc/tmpfiles.d/a.conf": f"w {KSM} - - - - 0\nw+ {KSM} - - - - 1\n"})
    found = [setting for setting in at_boot.observe(Host(str(tmp_path)), True) if setting.name == f"sysfs.{KSM}"]
    assert [(setting.value, setting.in_order) for setting in found] == [("1", False), ("0", False)]


PROFILE, BELOW = "/etc/tuned/site/tuned.conf", "/usr/lib/tuned/below/tuned.conf"
TUNED: Dict[str, Tuple[Dict[str, str], Dict[str, str]]] = {
    "variables of a file": (
        {
            PROFILE: "[variables]\ninclude=/etc/tuned/v.conf\n[sysctl]\nvm.swappiness=${v}\n",
            "/etc/tuned/v.conf": "v=60\n",
        },
        {"sysctl.vm.swappiness": "60"},
    ),
    "the first value that is offered": (
        {PROFILE: "[cpu]\ngovernor=none|performance\n"},
        {"cpu.governor": "performance"},
    ),
    "a file of each CPU": (
        {PROFILE: "[sysfs]\n/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor=powersave\n"},
        {"sysfs./sys/devices/system/cpu/cpufreq/policy*/scaling_governor": "powersave"},
    ),
    "other devices": ({PROFILE: "[disk]\ndevices=sd*\nreadahead=4096\n[net]\ndevices=!ens5\nmtu=1400\n"}, {}),
    "these devices": ({PROFILE: "[disk]\ndevices=nvme*,sd*\nreadahead=4096\n"}, {"disk.readahead": "4096"}),
    "another folder": (
        {
            PROFILE: "[main]\ninclude=far\n",
            "/etc/tuned/tuned-main.conf": "profile_dirs=/usr/lib/tuned,/opt/tuned\n",
            "/opt/tuned/far/tuned.conf": "[sysctl]\nvm.swappiness=60\n",
        },
        {"sysctl.vm.swappiness": "60"},
    ),
    "the last of several folders": (
        {
            PROFILE: "[main]\ninclude=far\n",
            "/etc/tuned/tuned-main.conf": "profile_dirs=/usr/lib/tuned,/opt/tuned\n",
            "/usr/lib/tuned/far/tuned.conf": "[sysctl]\nvm.swappiness=1\n",
            "/opt/tuned/far/tuned.conf": "[sysctl]\nvm.swappiness=60\n",
        },
        {"sysctl.vm.swappiness": "60"},
    ),
    "a variable of another one": (
        {PROFILE: "[variables]\nsix=6\nmany=${six}0\n[sysctl]\nvm.swappiness=${many}\n"},
        {"sysctl.vm.swappiness": "60"},
    ),
}


@pytest.mark.parametrize("form", TUNED)
def test_a_profile_of_tuned_is_read(form: str, tmp_path: Path) -> None:
    files, settings = TUNED[form]
    governors = {"/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors": "performance powersave\n"}
    enabled = {"/etc/systemd/system/graphical.target.wants/tuned.service": "-> /usr/lib/systemd/system/tuned.service"}
    lay_out(tmp_path, {**HARDWARE, **governors, **enabled, "/etc/tuned/active_profile": "site\n", **files})
    assert owners.observe(Host(str(tmp_path))).tuned == settings


@pytest.mark.parametrize("name", ["${i:PROFILE_DIR}/s.sh", "s.sh", "/usr/lib/tuned/below/s.sh"])
def test_a_script_of_a_profile_is_read(name: str, tmp_path: Path) -> None:
    text = "#!/bin/sh\n. /usr/lib/tuned/functions\nstart() {\n    sysctl -w vm.swappiness=60\n}\nprocess $@\n"
    files = {PROFILE: "[main]\ninclude=below\n", BELOW: f"[script]\nscript={name}\n", "/usr/lib/tuned/below/s.sh": text}
    runs = {"/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "812\n", "/etc/tuned/active_profile": "site\n"}
    lay_out(tmp_path, {**HARDWARE, **runs, **files})
    found = owners.observe(Host(str(tmp_path))).at_boot
    assert [(setting.name, setting.file, setting.value) for setting in found] == [
        (SWAP, "/usr/lib/tuned/below/s.sh", "60")
    ]
