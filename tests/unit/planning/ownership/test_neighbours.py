# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The relevant lines of Debian's packages of other tuners, and their effect on our knobs.

Lines of tuned 2.20.0-1 and amazon-ec2-net-utils 2.3.0-3 of Debian 12; folders of tuned 2.25.1-1 of Debian 13.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns import network_stack
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe as observe_facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.owners import OwnersFacts, observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Value, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.ownership import plan_beside_owners

from tests.support.hosts import files_of, lay_out
from tests.support.knobs import every_knob

RUNS = "/sys/fs/cgroup/system.slice/{}.service/cgroup.procs"
DEBIAN_12 = {
    "throughput-performance": """\
[main]
summary=Broadly applicable tuning that provides excellent performance across a variety of common server workloads
[variables]
thunderx_cpuinfo_regex=CPU part\\s+:\\s+(0x0?516)|(0x0?af)|(0x0?a[0-3])|(0x0?b8)\\b
amd_cpuinfo_regex=model name\\s+:.*\\bAMD\\b
[cpu]
governor=performance
energy_perf_bias=performance
min_perf_pct=100
[vm.thunderx]
type=vm
uname_regex=aarch64
cpuinfo_regex=${thunderx_cpuinfo_regex}
transparent_hugepages=never
[disk]
readahead=>4096
[sysctl]
vm.dirty_ratio = 40
vm.dirty_background_ratio = 10
vm.swappiness=10
net.core.somaxconn=>2048
""",
    "latency-performance": """\
[main]
summary=Optimize for deterministic performance at the cost of increased power consumption
[cpu]
force_latency=cstate.id_no_zero:1|3
governor=performance
energy_perf_bias=performance
min_perf_pct=100
[sysctl]
vm.dirty_ratio=10
vm.dirty_background_ratio=3
vm.swappiness=10
""",
    "network-latency": """\
[main]
summary=Optimize for deterministic performance at the cost of increased power consumption
include=latency-performance
[vm]
transparent_hugepages=never
[sysctl]
net.core.busy_read=50
net.core.busy_poll=50
net.ipv4.tcp_fastopen=3
kernel.numa_balancing=0
[bootloader]
cmdline_network_latency=skew_tick=1
""",
    "network-throughput": """\
[main]
summary=Optimize for streaming network throughput, generally only necessary on older CPUs or 40G+ networks
include=throughput-performance
[sysctl]
net.ipv4.tcp_rmem="4096 87380 16777216"
net.ipv4.tcp_wmem="4096 16384 16777216"
""",
}
PLACE = "0000:00:05.0"


def owners(root: Path, files: Dict[str, str]) -> OwnersFacts:
    lay_out(root, files)
    return observe(Host(str(root)))


def with_tuned(root: Path, profile: str, files: Optional[Dict[str, str]] = None) -> OwnersFacts:
    """A host on which tuned runs with a profile, of the package or of the site."""
    packaged = {f"/usr/lib/tuned/{name}/tuned.conf": text for name, text in DEBIAN_12.items()}
    running = {RUNS.format("tuned"): "812\n", "/etc/tuned/active_profile": f"{profile}\n"}
    return owners(root, {**packaged, **running, **(files or {})})


def site(text: str) -> Dict[str, str]:
    """A profile `site` of the operator's."""
    return {"/etc/tuned/site/tuned.conf": text}


def action(what: str, after: Value, where: str = "") -> Action:
    return Action("some", "knob", what, "before", after, "why", "test", where=where)


def refused(found: OwnersFacts, step: Action) -> str:
    """The reason for which an action is refused; empty if it isn't."""
    plan = plan_beside_owners(every_knob(), found, lambda _wanted: Plan((step,)), Wanted())
    assert plan.actions == (() if plan.findings else (step,))
    return "".join(finding.reason for finding in plan.findings)


@pytest.mark.parametrize(
    ("profile", "step", "setting"),
    [
        ("network-latency", action("hugepages.thp", "madvise"), "vm.transparent_hugepages = never"),
        ("network-latency", action("hugepages.thp", "never"), ""),
        ("network-latency", action("hugepages.thp_defrag", "defer"), ""),
        ("network-latency", action("sysctl", "1", "kernel.numa_balancing"), "sysctl.kernel.numa_balancing = 0"),
        ("network-latency", action("boot.arguments", "skew_tick=0", "skew_tick"), "cmdline.skew_tick = skew_tick=1"),
        ("network-throughput", action("sysctl", "4096 87380 16777216", "net.ipv4.tcp_rmem"), ""),
        ("network-throughput", action("sysctl", "4096 87380 6291456", "net.ipv4.tcp_rmem"), "sysctl.net.ipv4.tcp_rmem"),
        ("network-throughput", action("block.read_ahead_kb", "256", "vda"), "disk.readahead = >4096"),
        ("network-throughput", action("block.read_ahead_kb", "8192", "vda"), ""),
        ("network-throughput", action("hugepages.thp", "madvise"), ""),
        ("latency-performance network-throughput", action("sysctl", "20", "vm.dirty_ratio"), "vm.dirty_ratio = 40"),
    ],
)
def test_profiles_of_debian_12(tmp_path: Path, profile: str, step: Action, setting: str) -> None:
    reason = refused(with_tuned(tmp_path, profile), step)
    assert setting in reason
    assert bool(setting) == bool(reason)


@pytest.mark.parametrize(
    ("text", "step", "setting"),
    [
        ("[vm]\ntransparent_hugepage=always\n", action("hugepages.thp", "never"), "vm.transparent_hugepage = always"),
        ("[vm]\ntransparent_hugepage.defrag=always\n", action("hugepages.thp_defrag", "never"), "defrag = always"),
        (
            "[sysfs]\n/sys/kernel/mm/transparent_hugepage/e*=always\n",
            action("hugepages.thp", "never"),
            "enabled = always",
        ),
        (
            "[bootloader]\ncmdline=transparent_hugepage=always\n",
            action("hugepages.thp", "never"),
            "transparent_hugepage=always",
        ),
        ("[bootloader]\ncmdline=transparent_hugepage=never\n", action("hugepages.thp", "never"), ""),
        ("[bootloader]\ncmdline=+nosmt clocksource=tsc\n", action("smt.control", "off"), ""),
        ("[bootloader]\ncmdline=+nosmt clocksource=tsc\n", action("smt.control", "on"), "cmdline.nosmt"),
        ("[bootloader]\ncmdline=+nosmt clocksource=tsc\n", action("clock.current", "tsc"), ""),
        ("[cpu]\nno_turbo=1\n", action("power.turbo", "disabled"), ""),
        ("[cpu]\nno_turbo=1\n", action("power.turbo", "enabled"), "cpu.no_turbo = 1"),
        ("[cpu]\nboost=1\n", action("power.turbo", "disabled"), "cpu.boost = 1"),
        ("[net]\nmtu=9000\n", action("network.mtu", 1500, PLACE), "net.mtu = 9000"),
        ("[net]\ntxqueuelen=5000\n", action("network.txqueuelen", 1000, PLACE), "net.txqueuelen = 5000"),
        ("[net]\nring=rx 1024 tx 512\n", action("network.rings", 1024, f"{PLACE}/rx"), ""),
        ("[net]\nring=rx 1024 tx 512\n", action("network.rings", 1024, f"{PLACE}/tx"), "net.ring = rx 1024 tx 512"),
        ("[net]\nring=rx 1024\n", action("network.rings", 4096, f"{PLACE}/tx"), ""),
        ("[net]\ncoalesce=adaptive-rx off rx-usecs 3\n", action("network.coalesce", 0, f"{PLACE}/adaptive_rx"), ""),
        (
            "[net]\ncoalesce=adaptive-rx off rx-usecs 3\n",
            action("network.coalesce", 20, f"{PLACE}/rx_usecs"),
            "net.coalesce",
        ),
        ("[net]\nchannels=combined 4\n", action("network.queues", 4, PLACE), ""),
        ("[net]\nchannels=combined 4\n", action("network.queues", 2, PLACE), "net.channels = combined 4"),
        ("[sysctl]\nnet/core/somaxconn=512\n", action("sysctl", "8192", "net.core.somaxconn"), "somaxconn = 512"),
        ("[variables]\npages=never\n[vm]\ntransparent_hugepages=${pages}\n", action("hugepages.thp", "never"), ""),
        ("[main]\ninclude=-absent\n[vm]\ntransparent_hugepages=never\n", action("hugepages.thp", "always"), "= never"),
        ("[main]\ninclude=network-latency\n[vm]\ndrop=transparent_hugepages\n", action("hugepages.thp", "always"), ""),
        ("[main]\ninclude=network-latency\n[vm]\nenabled=0\n", action("hugepages.thp", "always"), ""),
    ],
)
def test_settings_of_a_profile_of_the_site(tmp_path: Path, text: str, step: Action, setting: str) -> None:
    reason = refused(with_tuned(tmp_path, "site", site(text)), step)
    assert setting in reason
    assert bool(setting) == bool(reason)


def test_a_profile_of_the_site_may_include_the_packages_of_its_own_name(tmp_path: Path) -> None:
    profiles = {"/etc/tuned/network-latency/tuned.conf": "[main]\ninclude=network-latency\n[sysctl]\nvm.swappiness=1\n"}
    found = with_tuned(tmp_path, "network-latency", profiles)
    assert (found.tuned["sysctl.vm.swappiness"], found.tuned["vm.transparent_hugepages"]) == ("1", "never")


def test_tuned_of_debian_13_keeps_its_profiles_in_a_folder_of_their_own(tmp_path: Path) -> None:
    found = owners(
        tmp_path,
        {
            RUNS.format("tuned"): "812\n",
            "/etc/tuned/active_profile": "site\n",
            "/etc/tuned/profiles/site/tuned.conf": "[main]\ninclude=network-latency\n",
            "/usr/lib/tuned/profiles/network-latency/tuned.conf": DEBIAN_12["network-latency"],
        },
    )
    assert found.tuned["vm.transparent_hugepages"] == "never"


@pytest.mark.parametrize(
    ("main", "persist", "last"),
    [
        ("reapply_sysctl = 1\n", True, "nearmetal's file has the last word"),
        ("", True, "nearmetal's file has the last word"),
        ("# 1 is the default\nreapply_sysctl = 0\n", True, "will set it again"),
        ("", False, "will set it again"),
    ],
)
def test_the_finding_says_which_value_wins_after_a_take_over_from_tuned(
    tmp_path: Path, main: str, persist: bool, last: str
) -> None:
    found = with_tuned(tmp_path, "network-latency", {"/etc/tuned/tuned-main.conf": f"daemon = 1\n{main}"})
    step = action("sysctl", "0", "net.core.busy_poll")
    wanted = Wanted({"owner_conflict": "take_over", "persist": persist})
    plan = plan_beside_owners(every_knob(), found, lambda _wanted: Plan((step,)), wanted)
    assert plan.actions == (step,)
    assert [(finding.status, finding.owner) for finding in plan.findings] == [("advice", "tuned")]
    assert last in plan.findings[0].reason


def test_the_file_keeps_the_keys_that_nobody_else_owns(tmp_path: Path) -> None:
    found = with_tuned(tmp_path, "network-latency")
    root = tmp_path / "host"
    lay_out(root, files_of("nitro_big"))
    sysctl = {"net.core.busy_poll": "50", "net.core.busy_read": "50", "net.core.somaxconn": "1"}
    facts = observe_facts(Host(str(root)), network_stack.CONCERN.domains)._replace(files={}, sysctl=sysctl)
    wanted = Wanted({"busy_poll": 0, "somaxconn": 8192, "persist": True})
    concern = network_stack.CONCERN
    plan = plan_beside_owners(concern.knobs, found, lambda options: concern.plan(facts, options), wanted)
    assert {
        (finding.knob, finding.status)
        for finding in plan.findings
        if finding.knob in ("busy_poll", "somaxconn", "persist")
    } == {
        ("busy_poll", "refused"),
        ("somaxconn", "would_change"),
        ("persist", "would_change"),
    }
    kept = [step for step in plan.actions if step.what == "files"]
    assert [str(step.after).splitlines()[1:] for step in kept] == [["net.core.somaxconn = 8192"]]


# Debian's 2.3.0 links this for each interface, as /run/systemd/network/70-ens5.network, with a drop-in of its own.
EC2_NET_UTILS = """\
[Match]
Driver=ena ixgbevf vif

[Link]
MTUBytes=9001

[Network]
DHCP=yes
IPv6DuplicateAddressDetection=0
LLMNR=no
DNSDefaultRoute=yes
"""
ENI = """\
# Configuration for ens5 generated by policy-routes@ens5.service
[Match]
MACAddress=02:ab:00:00:00:01
[Network]
DHCP=yes

[DHCPv4]
RouteMetric=512
"""
NETWORK = "/run/systemd/network/70-ens5.network"


def with_net_utils(root: Path, files: Dict[str, str]) -> OwnersFacts:
    """A host of two ENIs of which amazon-ec2-net-utils has set up ens5 so far."""
    for number in (5, 6):
        net, device = root / f"sys/class/net/ens{number}", root / f"sys/devices/pci0000:00/0000:00:0{number}.0"
        for folder in (net, device, root / "sys/bus/pci/drivers/ena"):
            folder.mkdir(parents=True, exist_ok=True)
        (net / "device").symlink_to(f"../../../devices/pci0000:00/0000:00:0{number}.0")
        (device / "driver").symlink_to("../../../bus/pci/drivers/ena")
        (net / "address").write_text(f"02:ab:00:00:00:0{number - 4}\n")
    packaged = {
        RUNS.format("systemd-networkd"): "311\n",
        "/usr/lib/systemd/network/80-ec2.network": EC2_NET_UTILS,
        NETWORK: EC2_NET_UTILS,
        f"{NETWORK}.d/eni.conf": ENI,
    }
    return owners(root, {**packaged, **files})


def mtu_of(number: int, after: int) -> Action:
    return action("network.mtu", after, f"0000:00:0{number}.0")


def test_the_link_for_an_interface_is_owned_by_amazon_ec2_net_utils(tmp_path: Path) -> None:
    found = with_net_utils(tmp_path, {})
    steps = (mtu_of(5, 1500), mtu_of(6, 1500))
    assert [setting[:3] for setting in found.at_boot] == [
        ("network.mtu 0000:00:05.0", NETWORK, "9001"),
        ("network.mtu 0000:00:06.0", "/usr/lib/systemd/network/80-ec2.network", "9001"),
    ]
    plan = plan_beside_owners(every_knob(), found, lambda _wanted: Plan(steps), Wanted())
    assert [finding.owner for finding in plan.findings] == ["amazon-ec2-net-utils"] * 2


def test_a_drop_in_of_the_site_wins(tmp_path: Path) -> None:
    drop_in = f"/etc/systemd/network/{NETWORK.rpartition('/')[2]}.d/mtu.conf"
    found = with_net_utils(
        tmp_path,
        {
            drop_in: "[Link]\nMTUBytes=1500\n",
            f"/usr/lib/{drop_in[5:]}": "[Link]\nMTUBytes=8500\n",
            f"{NETWORK}.d/.hidden": "[Link]\nMTUBytes=1\n",
        },
    )
    assert found.at_boot[0][:3] == ("network.mtu 0000:00:05.0", drop_in, "1500")
    assert refused(found, mtu_of(5, 1500)) == ""
    assert drop_in in refused(found, mtu_of(5, 9001))


def test_an_interface_without_an_owner_is_set_beside_one_that_has_one(tmp_path: Path) -> None:
    site_file = {"/etc/systemd/network/10-site.network": "[Match]\nName=ens6\n[Network]\nDHCP=yes\n"}
    found = with_net_utils(tmp_path, site_file)
    file = action("files", "net.core.somaxconn = 8192", "/etc/sysctl.d/99-nearmetal-network_stack.conf")
    steps = (mtu_of(5, 1500), mtu_of(6, 1500), file)
    findings = tuple(Finding("some", "knob", "would_change", "why", where=step.where) for step in steps[:2])
    plan = plan_beside_owners(every_knob(), found, lambda _wanted: Plan(steps, findings), Wanted())
    assert plan.actions == steps[1:], "no file of ours holds an MTU"
    assert [(finding.where, finding.status) for finding in plan.findings] == [
        ("0000:00:05.0", "refused"),
        ("0000:00:06.0", "would_change"),
    ]
