# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other owners of a knob: tuned by its profile, sysctl.d by files that are read later, kubelet, an image."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.owners import OwnersFacts, observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import tuned_profile
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Value, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.ownership import plan_beside_owners
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts import lay_out
from tests.support.knobs import every_knob

RUNS = "/sys/fs/cgroup/system.slice/{}.service/cgroup.procs"
TUNED = {
    RUNS.format("tuned"): "812\n",
    "/etc/tuned/active_profile": "cache\n",
    "/etc/tuned/cache/tuned.conf": """\
[main]
summary=what this site runs its caches with
include=fast

[cpu]
governor=schedutil   # the site's own
[sysctl]
net.core.somaxconn = 2048
vm.dirty_ratio =>20
net.ipv4.tcp_rmem = "4096	131072  16777216"
[bootloader]
cmdline_site=+nosmt clocksource=hpet
[variables]
theirs=vendor_id.*AMD
[cpu.arm]
type=cpu
uname_regex=aarch64
governor=ondemand
[sysctl.amd]
type=sysctl
cpuinfo_regex=${theirs}
kernel.numa_balancing=0
[sysctl.broken]
type=sysctl
cpuinfo_regex=(
kernel.numa_balancing=1
[script]
enabled=false
script=run.sh
""",
    "/usr/lib/tuned/fast/tuned.conf": """\
[main]
include=base
[cpu]
governor=performance
force_latency=1
[net]
type=net
channels=combined 4
""",
    "/usr/lib/tuned/base/tuned.conf": "[sysfs]\n/sys/kernel/mm/ksm/run=0\n[vm]\ntransparent_hugepages=never\n",
}


def owners(root: Path, files: Dict[str, str]) -> OwnersFacts:
    lay_out(root, files)
    return observe(Host(str(root)))


def action(what: str, after: Value, where: str = "", knob: str = "knob") -> Action:
    return Action("some", knob, what, "before", after, "why", "test", where=where)


def judged(found: OwnersFacts, *actions: Action, take_over: bool = False) -> Plan:
    findings = tuple(Finding("some", step.knob, "would_change", "why", where=step.where) for step in actions)
    wanted = Wanted({"owner_conflict": "take_over" if take_over else "refuse"})
    return plan_beside_owners(every_knob(), found, lambda _wanted: Plan(actions, findings, replan=True), wanted)


def test_a_profile_has_its_own_and_its_parents_settings(tmp_path: Path) -> None:
    found = owners(tmp_path, TUNED)
    assert (found.running, found.tuned_profile) == (("tuned",), "cache")
    assert dict(found.tuned) == {
        "cpu.governor": "schedutil",
        "cpu.force_latency": "1",
        "net.channels": "combined 4",
        "sysfs./sys/kernel/mm/ksm/run": "0",
        "vm.transparent_hugepages": "never",
        "sysctl.net.core.somaxconn": "2048",
        "sysctl.vm.dirty_ratio": ">20",
        "sysctl.net.ipv4.tcp_rmem": "4096\t131072  16777216",
        "cmdline.nosmt": "nosmt",
        "cmdline.clocksource": "clocksource=hpet",
    }


def test_a_section_for_other_machines_sets_nothing(tmp_path: Path) -> None:
    amd = {"/proc/cpuinfo": "vendor_id\t: AuthenticAMD\n", "/proc/sys/kernel/arch": "x86_64\n"}
    assert owners(tmp_path, {**TUNED, **amd}).tuned["sysctl.kernel.numa_balancing"] == "0"
    arm = {"/proc/cpuinfo": "CPU part\t: 0xd0c\n", "/proc/sys/kernel/arch": "aarch64\n"}
    found = owners(tmp_path, {**TUNED, **arm}).tuned
    assert found["cpu.governor"] == "ondemand"
    assert "sysctl.kernel.numa_balancing" not in found


UNITS = "/etc/systemd/system"
ENABLED = {f"{UNITS}/multi-user.target.wants/tuned.service": "-> /lib/systemd/system/tuned.service"}
ENDED = {**TUNED, RUNS.format("tuned"): ""}


def test_tuned_that_starts_with_the_host_owns_its_knobs_while_it_has_ended(tmp_path: Path) -> None:
    found = owners(tmp_path, {**ENDED, **ENABLED})
    assert (found.running, found.tuned_profile) == ((), "cache")
    assert found.tuned["cpu.governor"] == "schedutil"


@pytest.mark.parametrize("units", [{}, {**ENABLED, f"{UNITS}/tuned.service": "-> /dev/null"}], ids=["ended", "masked"])
def test_a_disabled_tuned_owns_nothing(tmp_path: Path, units: Dict[str, str]) -> None:
    found = owners(tmp_path, {**ENDED, **units})
    assert found.tuned_profile is None
    assert found.tuned == {}


@pytest.mark.parametrize("include", ["cache", "../../../tmp/x", "a b c"])
def test_profiles_that_lead_nowhere_or_in_a_circle_end(tmp_path: Path, include: str) -> None:
    text = f"[main]\ninclude={include}\n[cpu]\ngovernor=powersave\n"
    found = owners(tmp_path, {**TUNED, "/etc/tuned/cache/tuned.conf": text})
    assert dict(found.tuned) == {"cpu.governor": "powersave"}


@pytest.mark.parametrize(
    ("step", "owner"),
    [
        (action("power.governors", {"0": "performance", "1": "performance"}), "tuned sets cpu.governor = schedutil"),
        (action("clock.current", "tsc"), "tuned sets cmdline.clocksource"),
        (action("smt.control", "on"), "tuned sets cmdline.nosmt"),
        (action("sysctl", "4096", "net.core.somaxconn"), "tuned sets sysctl.net.core.somaxconn = 2048 (profile cache)"),
        (action("boot.arguments", "clocksource=tsc", "clocksource"), "tuned sets cmdline.clocksource"),
        (action("sysctl", "10", "vm.dirty_ratio"), "tuned sets sysctl.vm.dirty_ratio = >20"),
        (action("sysctl", "40", "vm.dirty_ratio"), None),
        (action("power.governors", {"0": "schedutil"}), None),
        (action("sysctl", "2048", "net.core.somaxconn"), None),
        (action("sysctl", "4096 131072 16777216", "net.ipv4.tcp_rmem"), None),
        (action("sysctl", "4096 131072 33554432", "net.ipv4.tcp_rmem"), "tuned sets sysctl.net.ipv4.tcp_rmem"),
        (action("sysctl", "1", "net.ipv4.tcp_autocorking"), None),
        (action("sysctl", None, "net.core.somaxconn"), None),
    ],
    ids=lambda value: value.what if isinstance(value, Action) else "",
)
def test_only_the_knob_that_tuned_sets_to_something_else_is_refused(
    tmp_path: Path, step: Action, owner: Optional[str]
) -> None:
    other = action("clock.other", "x", knob="other")
    plan = judged(owners(tmp_path, TUNED), step, other)
    if owner is None:
        assert plan.actions == (step, other)
        return
    assert plan.actions == (other,)
    refused = plan.findings[0]
    assert (refused.status, refused.knob, refused.owner) == ("refused", "knob", "tuned")
    assert owner in refused.reason
    assert "owner_conflict: take_over" in refused.reason
    taken = judged(owners(tmp_path, TUNED), step, other, take_over=True)
    assert taken.actions == (step, other)
    assert owner in taken.findings[-1].reason
    assert taken.findings[-1].status == "advice"


def test_the_file_that_would_keep_a_refused_value_is_not_written(tmp_path: Path) -> None:
    file = action("files", "w! ...", "/etc/tmpfiles.d/nearmetal-some.conf", knob="persist")
    plan = judged(owners(tmp_path, TUNED), action("clock.current", "tsc"), file)
    assert plan.actions == ()
    assert [finding.status for finding in plan.findings] == ["refused"]


def test_a_sysctl_file_that_is_read_after_nearmetals_owns_its_keys(tmp_path: Path) -> None:
    found = owners(
        tmp_path,
        {
            "/etc/sysctl.d/10-early.conf": "net.core.somaxconn=1\n",
            "/usr/lib/sysctl.d/99-zz.conf": "net.core.busy_poll=1\n",
            "/etc/sysctl.d/99-zz.conf": "# mine\n-net/core/somaxconn = 512\n",
            "/etc/sysctl.d/99-nearmetal-network_stack.conf": "net.core.somaxconn=4096\n",
        },
    )
    assert [setting[:3] for setting in found.at_boot] == [
        ("sysctl.net.core.somaxconn", "/etc/sysctl.d/99-zz.conf", "512")
    ]
    plan = judged(found, action("sysctl", "4096", "net.core.somaxconn"))
    assert "/etc/sysctl.d/99-zz.conf sets net.core.somaxconn = 512" in plan.findings[0].reason
    assert plan.findings[0].owner == "/etc/sysctl.d/99-zz.conf"
    assert judged(found, action("sysctl", "512", "net.core.somaxconn")).actions


EC2_NET_UTILS = "[Match]\nDriver=ena ixgbevf vif\n\n[Link]\nMTUBytes=9001\n\n[Network]\nDHCP=yes\n"
NETWORKD = {RUNS.format("systemd-networkd"): "311\n"}
MTU_FILES: Dict[str, Any] = {
    "ec2-net-utils": (
        {**NETWORKD, "/usr/lib/systemd/network/80-ec2.network": EC2_NET_UTILS},
        "amazon-ec2-net-utils",
        "9001",
    ),
    "a file of this site before it": (
        {
            **NETWORKD,
            "/usr/lib/systemd/network/80-ec2.network": EC2_NET_UTILS,
            "/etc/systemd/network/10-site.network": "[Match]\nName=!ens6* lo\n[Link]\nMTUBytes=1460\n",
        },
        "/etc/systemd/network/10-site.network",
        "1460",
    ),
    "hidden by one of the same name": (
        {
            **NETWORKD,
            "/usr/lib/systemd/network/80-ec2.network": EC2_NET_UTILS,
            "/etc/systemd/network/80-ec2.network": EC2_NET_UTILS.replace("9001", "8500"),
        },
        "amazon-ec2-net-utils",
        "8500",
    ),
    "netplan": (
        {
            **NETWORKD,
            "/run/systemd/network/10-netplan-ens5.network": "[Match]\nMACAddress=02:AB:00:00:00:01\n"
            "Name=ens5\n[Link]\nMTUBytes=9001\n",
        },
        "netplan",
        "9001",
    ),
    "udev": (
        {"/etc/systemd/network/10-jumbo.link": "[Match]\nOriginalName=*\n[Link]\nMTUBytes=9001\n"},
        "/etc/systemd/network/10-jumbo.link",
        "9001",
    ),
    "cloud-init on Debian": (
        {
            "/etc/network/interfaces.d/50-cloud-init": "auto lo\niface lo inet loopback\n"
            "auto ens5\niface ens5 inet dhcp\n    mtu 9001\n"
        },
        "cloud-init",
        "9001",
    ),
    "cloud-init with NetworkManager": (
        {
            "/etc/NetworkManager/system-connections/cloud-init-ens5.nmconnection": "[connection]\nid=x\n"
            "interface-name=ens5\n[ethernet]\nmtu=9001\n"
        },
        "cloud-init",
        "9001",
    ),
    "ifcfg": (
        {"/etc/sysconfig/network-scripts/ifcfg-ens5": 'DEVICE=ens5\nMTU="9001"\n'},
        "/etc/sysconfig/network-scripts/ifcfg-ens5",
        "9001",
    ),
}
NO_MTU_FILES: Dict[str, Dict[str, str]] = {
    "networkd doesn't run": {"/usr/lib/systemd/network/80-ec2.network": EC2_NET_UTILS},
    "another driver": {**NETWORKD, "/usr/lib/systemd/network/80-ec2.network": EC2_NET_UTILS.replace("ena ", "")},
    "an earlier file without an MTU": {
        **NETWORKD,
        "/etc/systemd/network/10-site.network": "[Match]\nName=ens5\n[Network]\nDHCP=yes\n",
        "/usr/lib/systemd/network/80-ec2.network": EC2_NET_UTILS,
    },
    "a file that matches nothing": {**NETWORKD, "/etc/systemd/network/1.network": "[Link]\nMTUBytes=9001\n"},
    "another interface": {"/etc/network/interfaces": "iface ens6 inet dhcp\n  mtu 9001\nauto ens5\n"},
    "no number": {"/etc/sysconfig/network-scripts/ifcfg-ens5": "MTU=$HOME\n"},
}


def with_ens5(root: Path, files: Dict[str, str]) -> OwnersFacts:
    net, device = root / "sys/class/net/ens5", root / "sys/devices/pci0000:00/0000:00:05.0"
    for folder in (net, device, root / "sys/bus/pci/drivers/ena"):
        folder.mkdir(parents=True)
    (net / "device").symlink_to("../../../devices/pci0000:00/0000:00:05.0")
    (device / "driver").symlink_to("../../../bus/pci/drivers/ena")
    (net / "address").write_text("02:ab:00:00:00:01\n")
    return owners(root, files)


@pytest.mark.parametrize("name", MTU_FILES)
def test_a_file_that_sets_an_interfaces_mtu_owns_it(tmp_path: Path, name: str) -> None:
    files, owner, mtu = MTU_FILES[name]
    found = with_ens5(tmp_path, files)
    change = action("network.mtu", 1500, where="0000:00:05.0", knob="mtu")
    refused = judged(found, change)
    assert [finding.status for finding in refused.findings] == ["refused"]
    assert refused.findings[0].owner == owner
    assert f"an MTU of {mtu}" in refused.findings[0].reason
    assert refused.actions == ()
    taken = judged(found, change, take_over=True)
    assert taken.actions == (change,)
    assert (taken.findings[-1].status, taken.findings[-1].owner) == ("advice", owner)
    same = action("network.mtu", int(mtu), where="0000:00:05.0", knob="mtu")
    assert judged(found, same).actions == (same,), "both want the same"


@pytest.mark.parametrize("name", NO_MTU_FILES)
def test_a_file_without_an_mtu_owns_no_mtu(tmp_path: Path, name: str) -> None:
    assert with_ens5(tmp_path, NO_MTU_FILES[name]).at_boot == ()


def test_a_kubernetes_node_keeps_what_kubelet_counts(tmp_path: Path) -> None:
    found = owners(tmp_path, {RUNS.format("kubelet"): "7\n"})
    for step in (
        action("smt.control", "off"),
        action("smt.offline", "1"),
        action("hugepages.pages", "4"),
    ):
        plan = judged(found, step)
        assert plan.actions == ()
        assert plan.findings[0].reason.startswith("kubelet owns it")
        assert plan.findings[0].owner == "kubelet"
    assert judged(found, action("clock.current", "tsc")).actions


@pytest.mark.parametrize(
    "files",
    [
        {"/run/ostree-booted": ""},
        {"/etc/os-release": "ID=bottlerocket\n"},
        {"/proc/1/mounts": "/dev/root / ext4 rw 0 0\noverlay /etc overlay ro,relatime 0 0\n"},
        {"/proc/1/mounts": "/dev/root / ext4 ro,relatime 0 0\n"},
    ],
    ids=["ostree", "bottlerocket", "read-only /etc", "read-only root"],
)
def test_an_immutable_system_is_left_to_its_image(tmp_path: Path, files: Dict[str, str]) -> None:
    plan = judged(owners(tmp_path, files), action("clock.current", "tsc"), take_over=True)
    assert plan.actions == ()
    assert not plan.replan
    assert "immutable" in plan.findings[0].reason


def test_a_root_that_is_remounted_with_errors_is_not_read_only(tmp_path: Path) -> None:
    mounts = (
        "/dev/root / ext4 ro,relatime 0 0\n/dev/root / ext4 rw,errors=remount-ro 0 0\ntmpfs /etcetera tmpfs ro 0 0\n"
    )
    assert owners(tmp_path, {"/proc/1/mounts": mounts}).immutable is None


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    profile: Any = tuned_profile.parse(text)
    assert all(isinstance(options, dict) for options in profile.values())
    assert tuned_profile.merged(profile, profile).keys() == profile.keys()


@pytest.mark.parametrize(
    "endless", ["(m+)+$", "m*" * 30 + "$", "(m|m)" * 40 + "$", "m?" * 40 + "x", "m{1,}m{1,}m{1,}$"]
)
def test_an_expression_that_would_not_end_does_not_hold(endless: str, tmp_path: Path) -> None:
    profile = (
        f"[sysctl]\ncpuinfo_regex={endless}\nkernel.numa_balancing=1\n[cpu]\ncpuinfo_regex=^m{{3}}\ngovernor=ondemand\n"
    )
    files = {**TUNED, "/etc/tuned/active_profile": "site\n", "/etc/tuned/site/tuned.conf": profile}
    found = owners(tmp_path, {**files, "/proc/cpuinfo": "m" * 4000 + "\n"})
    assert dict(found.tuned) == {"cpu.governor": "ondemand"}
