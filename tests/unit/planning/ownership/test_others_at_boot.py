# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who sets a value at boot after nearmetal is named by path before, in check mode too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import booted, routed
from tests.support.hosts import files_of, lay_out

Call = Callable[..., Dict[str, Any]]
BOOT = "22222222-2222-3333-4444-555555555555"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
KSM = "/sys/kernel/mm/ksm/run"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
WANTS = "/etc/systemd/system/multi-user.target.wants"
THP_OPTION: Mapping[str, Any] = {"hugepages": {"thp": "madvise"}}
KSM_OPTION: Mapping[str, Any] = {"memory": {"ksm": "disabled"}}
SWAP: Mapping[str, Any] = {"memory": {"swappiness": 1}}
AHEAD: Mapping[str, Any] = {"block_storage": {"read_ahead_kb": 64}}
FAST: Mapping[str, Any] = {"cpu_power": {"governor": "performance"}}
RING: Mapping[str, Any] = {"network_stack": {"rx_ring": 512, "allow_disruptive": True}}
RULE = (
    'SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", ACTION=="add|change", KERNEL=="{}", ATTR{{queue/read_ahead_kb}}="{}"\n'
)


def unit(start: str, more: str = "") -> Dict[str, str]:
    """A service of the site's that is enabled."""
    path = "/usr/lib/systemd/system/site.service"
    text = f"[Unit]\nDescription=x\n{more}\n[Service]\nType=oneshot\nExecStart={start}\n"
    return {path: text, f"{WANTS}/site.service": f"-> {path}"}


def scylla(folder: str, lines: str) -> Dict[str, str]:
    """ScyllaDB's service, whose script starts perftune if a file of its variables says so."""
    path = "/usr/lib/systemd/system/scylla-server.service"
    text = f"[Service]\nEnvironmentFile={folder}/scylla-server\nExecStartPre=/opt/scylladb/scripts/scylla_prepare\n"
    return {path: text, f"{WANTS}/scylla-server.service": f"-> {path}", f"{folder}/scylla-server": f"{lines}\n"}


SITE = "/usr/lib/systemd/system/site.service"
Case = Tuple[str, Mapping[str, Any], Dict[str, str], str]
# Host, what is wanted, what others have, and whom the findings name.
OWNERS: Dict[str, Case] = {
    "tmpfiles.d that is read first": (
        "nitro",
        THP_OPTION,
        {"/usr/lib/tmpfiles.d/ceph.conf": f"w {THP} - - - - never\n"},
        "/usr/lib/tmpfiles.d/ceph.conf",
    ),
    "tmpfiles.d, at boot only and quoted": (
        "nitro",
        KSM_OPTION,
        {"/etc/tmpfiles.d/a.conf": f'w!- "{KSM}" - - - - 1\n'},
        "/etc/tmpfiles.d/a.conf",
    ),
    "tmpfiles.d, a line that is added": (
        "nitro",
        KSM_OPTION,
        {"/etc/tmpfiles.d/zz.conf": f"w+ {KSM} - - - - 1\n"},
        "/etc/tmpfiles.d/zz.conf",
    ),
    "tmpfiles.d, another pattern that is read later": (
        "metal",
        FAST,
        {"/etc/tmpfiles.d/zz.conf": "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - powersave\n"},
        "/etc/tmpfiles.d/zz.conf",
    ),
    "tmpfiles.d for a disk": (
        "nitro",
        AHEAD,
        {"/etc/tmpfiles.d/zz.conf": "w /sys/block/nvme*/queue/read_ahead_kb - - - - 256\n"},
        "/etc/tmpfiles.d/zz.conf",
    ),
    "tmpfiles.d for a kernel parameter": (
        "nitro",
        SWAP,
        {"/etc/tmpfiles.d/00.conf": "w /proc/sys/vm/swappiness - - - - 60\n"},
        "/etc/tmpfiles.d/00.conf",
    ),
    "sysctl.d that begins with a letter": (
        "nitro",
        SWAP,
        {"/usr/lib/sysctl.d/saphana.conf": "vm/swappiness=60\n"},
        "/usr/lib/sysctl.d/saphana.conf",
    ),
    "rules that are read later": (
        "nitro",
        AHEAD,
        {"/usr/lib/udev/rules.d/99-cloud.rules": RULE.format("nvme[0-9]*", 128)},
        "/usr/lib/udev/rules.d/99-cloud.rules",
    ),
    "rules whose two events end in two values": (
        "nitro",
        AHEAD,
        {
            "/etc/udev/rules.d/99-zz.rules": RULE.format("nvme*", 128),
            "/etc/udev/rules.d/zz.rules": RULE.format("nvme*", 64).replace("add|change", "change"),
        },
        "/etc/udev/rules.d/99-zz.rules",
    ),
    "rules that run a command": (
        "nitro",
        AHEAD,
        {
            "/etc/udev/rules.d/60-site.rules": 'ACTION=="add", KERNEL=="nvme*", '
            "RUN+=\"/bin/sh -c 'echo 256 > /sys/block/%k/queue/read_ahead_kb'\"\n"
        },
        "/etc/udev/rules.d/60-site.rules",
    ),
    "rules that set a kernel parameter with a device": (
        "nitro",
        SWAP,
        {"/etc/udev/rules.d/95-site.rules": 'ACTION=="add", SUBSYSTEM=="net", SYSCTL{vm/swappiness}="60"\n'},
        "/etc/udev/rules.d/95-site.rules",
    ),
    "a service with a shell": ("nitro", THP_OPTION, unit(f"/bin/sh -c 'echo never | tee {THP} >/dev/null'"), SITE),
    "a service with a script": (
        "nitro",
        SWAP,
        {
            **unit("/opt/site/tune.sh --all"),
            "/opt/site/tune.sh": "#!/bin/bash\nset -e\nsysctl -q -w vm.swappiness=60\n",
        },
        SITE,
    ),
    "a service's environment": (
        "metal",
        FAST,
        {
            "/etc/systemd/system/cpupower.service": "[Service]\nEnvironmentFile=/etc/sysconfig/cpupower\n"
            "ExecStart=/usr/bin/cpupower $CPUPOWER_START_OPTS\n",
            f"{WANTS}/cpupower.service": "-> /etc/systemd/system/cpupower.service",
            "/etc/sysconfig/cpupower": 'CPUPOWER_START_OPTS="frequency-set -g powersave"\n',
        },
        "/etc/systemd/system/cpupower.service",
    ),
    "a program that chooses by itself": (
        "metal",
        FAST,
        unit("/lib/systemd/set-cpufreq", "ConditionVirtualization=no"),
        SITE,
    ),
    "a script that computes the value": (
        "metal",
        FAST,
        {
            **unit("/opt/tune"),
            "/opt/tune": "#!/bin/sh\nread all < /sys/x\n"
            "for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor\n"
            "do\n  echo ${all%% *} > $file\ndone\n",
        },
        SITE,
    ),
    "a drop-in of a service": (
        "nitro",
        SWAP,
        {
            **unit("/bin/true"),
            f"/etc/systemd/system/{SITE[24:]}.d/x.conf": "[Service]\nExecStart=\n"
            "ExecStart=/sbin/sysctl vm.swappiness=60\n",
        },
        SITE,
    ),
    "a timer after the boot": (
        "nitro",
        SWAP,
        {
            **{path: text for path, text in unit("/sbin/sysctl -w vm.swappiness=60").items() if "wants" not in path},
            "/etc/systemd/system/timers.target.wants/site.timer": "-> /usr/lib/systemd/system/site.timer",
        },
        SITE,
    ),
    "rc.local": (
        "nitro",
        THP_OPTION,
        {"/etc/rc.d/rc.local": f"#!/bin/sh\nif true; then echo never > {THP}; fi\n"},
        "/etc/rc.d/rc.local",
    ),
    "cron at boot": (
        "nitro",
        SWAP,
        {"/etc/cron.d/site": "@reboot root sysctl -p /etc/site.conf\n", "/etc/site.conf": "vm.swappiness = 60\n"},
        "/etc/cron.d/site",
    ),
    "sysfsutils": ("nitro", KSM_OPTION, {"/etc/sysfs.conf": "kernel/mm/ksm/run = 1\n"}, "/etc/sysfs.conf"),
    "bpftune, which never says which values it sets": (
        "nitro",
        {"network_stack": {"rmem_max": 8388608}},
        {
            "/usr/lib/systemd/system/bpftune.service": "[Service]\nExecStart=/usr/sbin/bpftune\n",
            f"{WANTS}/bpftune.service": "-> /usr/lib/systemd/system/bpftune.service",
        },
        "/usr/lib/systemd/system/bpftune.service",
    ),
    **{
        f"perftune of ScyllaDB, {folder}": (
            "nitro",
            {"network_irq": {"policy": "spread"}},
            scylla(folder, "SET_NIC_AND_DISKS=yes"),
            "/usr/lib/systemd/system/scylla-server.service",
        )
        for folder in ("/etc/sysconfig", "/etc/default")
    },
    "perftune of an older ScyllaDB": (
        "nitro",
        {"network_stack": {"tcp_mem": "100000 200000 300000"}},
        scylla("/etc/sysconfig", 'SET_NIC="yes"\nIFNAME=ens5'),
        "/usr/lib/systemd/system/scylla-server.service",
    ),
    "sapconf": (
        "nitro",
        THP_OPTION,
        {
            f"{WANTS}/sapconf.service": "-> /usr/lib/systemd/system/sapconf.service",
            "/etc/sysconfig/sapconf": 'THP="never"\n',
        },
        "/etc/sysconfig/sapconf",
    ),
    "a note of saptune": (
        "nitro",
        SWAP,
        {
            f"{WANTS}/saptune.service": "-> /usr/lib/systemd/system/saptune.service",
            "/etc/sysconfig/saptune": 'TUNE_FOR_NOTES="1980196"\n',
            "/var/lib/saptune/working/notes/1980196": "[version]\nVERSION=1\n[sysctl]\nvm.swappiness = 10\n",
        },
        "/var/lib/saptune/working/notes/1980196",
    ),
    "tuned's profile after the active one": (
        "nitro",
        SWAP,
        {
            "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "812\n",
            "/etc/tuned/active_profile": "site\n",
            "/etc/tuned/post_loaded_profile": "last\n",
            "/etc/tuned/last/tuned.conf": "[sysctl]\nvm.swappiness=60\n",
        },
        "tuned",
    ),
    "tuned's file of a disk": (
        "nitro",
        AHEAD,
        {
            "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "812\n",
            "/etc/tuned/active_profile": "site\n",
            "/etc/tuned/site/tuned.conf": "[sysfs]\n/sys/block/nvme*/queue/read_ahead_kb=128\n",
        },
        "tuned",
    ),
    "rings of NetworkManager": (
        "nitro",
        RING,
        {
            "/etc/NetworkManager/system-connections/x.nmconnection": "[connection]\ntype=ethernet\n[ethtool]\n"
            "ring-rx=4096\n"
        },
        "/etc/NetworkManager/system-connections/x.nmconnection",
    ),
    "rings of udev": (
        "nitro",
        RING,
        {"/etc/systemd/network/10-x.link": "[Match]\nDriver=ena\n[Link]\nRxBufferSize=max\n"},
        "/etc/systemd/network/10-x.link",
    ),
    "interrupts of udev": (
        "nitro",
        {"network_irq": {"policy": "spread"}},
        {"/etc/systemd/network/10-x.link": "[Match]\nDriver=ena\n[Link]\nIRQAffinityPolicy=spread\n"},
        "/etc/systemd/network/10-x.link",
    ),
    "sysctl.d of Skyhook": (
        "nitro",
        {"memory": {"swappiness": 10}},
        {"/etc/sysctl.d/999-skyhook-tuning.conf": "vm.swappiness = 60\n"},
        "/etc/sysctl.d/999-skyhook-tuning.conf",
    ),
    "rings of a script": (
        "nitro",
        RING,
        {"/etc/rc.local": "#!/bin/sh\n/usr/sbin/ethtool -G ens5 rx 4096 tx 512\n"},
        "/etc/rc.local",
    ),
}
# What doesn't last against nearmetal, or isn't done on this host.
NOBODY: Dict[str, Tuple[str, Mapping[str, Any], Dict[str, str]]] = {
    "tmpfiles.d that is read later": ("nitro", THP_OPTION, {"/etc/tmpfiles.d/zz.conf": f"w {THP} - - - - never\n"}),
    "tmpfiles.d, another pattern that is read first": (
        "metal",
        FAST,
        {"/etc/tmpfiles.d/00.conf": "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - powersave\n"},
    ),
    "tmpfiles.d, hidden by one of the same name": (
        "nitro",
        THP_OPTION,
        {"/usr/lib/tmpfiles.d/ceph.conf": f"w {THP} - - - - never\n", "/etc/tmpfiles.d/ceph.conf": "# none\n"},
    ),
    "sysctl.d that is read first": ("nitro", SWAP, {"/etc/sysctl.d/60-x.conf": "vm.swappiness = 60\n"}),
    "the same number": ("nitro", {"memory": {"swappiness": 10}}, {"/etc/sysctl.d/zz.conf": "vm.swappiness = 0xa\n"}),
    "the same number in base eight": (
        "nitro",
        {"memory": {"swappiness": 8}},
        {"/etc/rc.local": "sysctl vm.swappiness=010\n"},
    ),
    "a pattern of sysctl.d": ("nitro", SWAP, {"/etc/sysctl.d/zz.conf": "vm.swap* = 60\n"}),
    "rules that are read first": ("nitro", AHEAD, {"/etc/udev/rules.d/60-x.rules": RULE.format("nvme*", 128)}),
    "rules for other disks": ("nitro", AHEAD, {"/etc/udev/rules.d/99-x.rules": RULE.format("sd*", 128)}),
    "rules that are overruled at each event": (
        "nitro",
        AHEAD,
        {
            "/etc/udev/rules.d/99-zz.rules": RULE.format("nvme*", 128),
            "/etc/udev/rules.d/zz.rules": RULE.format("nvme*", 64),
        },
    ),
    "rules after a way out": (
        "nitro",
        AHEAD,
        {"/etc/udev/rules.d/99-x.rules": f'KERNEL!="sd*", GOTO="end"\n{RULE.format("*", 128)}LABEL="end"\n'},
    ),
    "the same value": ("nitro", THP_OPTION, {"/etc/rc.local": f"#!/bin/sh\necho madvise > {THP}\n"}),
    "a comment": ("nitro", THP_OPTION, {"/etc/rc.local": f"#!/bin/sh\n# echo never > {THP}\ncat {THP}\n"}),
    "a masked service": (
        "nitro",
        THP_OPTION,
        {**unit(f"/bin/sh -c 'echo never > {THP}'"), "/etc/systemd/system/site.service": "-> /dev/null"},
    ),
    "a service that isn't enabled": (
        "nitro",
        THP_OPTION,
        {SITE: f"[Service]\nExecStart=/bin/sh -c 'echo never > {THP}'\n"},
    ),
    "ScyllaDB without perftune": (
        "nitro",
        {"network_stack": {"somaxconn": 1024}},
        scylla("/etc/sysconfig", "SET_NIC_AND_DISKS=no"),
    ),
    "perftune's own value": (
        "nitro",
        {"network_stack": {"somaxconn": 4096}},
        scylla("/etc/sysconfig", "SET_NIC_AND_DISKS=yes"),
    ),
    "a service for metal alone": (
        "nitro",
        THP_OPTION,
        unit(f"/bin/sh -c 'echo never > {THP}'", "ConditionVirtualization=no"),
    ),
    "a service for a file that is missing": (
        "nitro",
        THP_OPTION,
        unit(f"/bin/sh -c 'echo never > {THP}'", "ConditionPathExists=/etc/site"),
    ),
}


def host_of(root: Path, name: str, files: Mapping[str, str]) -> FakeKernel:
    host = booted(root, routed(files_of(name)))
    lay_out(root, files)
    return host


@pytest.mark.parametrize("name", OWNERS)
def test_the_owner_is_named_by_path_before(name: str, tmp_path: Path, call: Call) -> None:
    kind, concerns, files, owner = OWNERS[name]
    host = host_of(tmp_path, kind, files)
    for check in (True, False):
        result = call(tune.main, host, check=check, concerns=concerns)
        assert [finding["owner"] for finding in result["findings"] if finding["status"] == "refused"] == [owner]
        assert "persisted" not in result["msg"]
    assert not call(tune.main, host, concerns=concerns)["changed"]
    taken = call(tune.main, host, concerns=concerns, owner_conflict="take_over")
    assert owner in {finding["owner"] for finding in taken["findings"] if finding["status"] == "advice"}
    call(restore.main, host)


@pytest.mark.parametrize("name", NOBODY)
def test_nobody_is_named_where_nearmetals_value_lasts(name: str, tmp_path: Path, call: Call) -> None:
    kind, concerns, files = NOBODY[name]
    host = host_of(tmp_path, kind, files)
    assert not [f for f in call(tune.main, host, concerns=concerns)["findings"] if f["status"] == "refused"]
    host.reboot(BOOT)
    again = call(tune.main, host, concerns=concerns)
    assert not again["changed"], again["msg"]
