# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Public reports of practitioners about other tools, replayed on simulated hosts: what went wrong there goes well here.

Each test names the report, what went wrong, and what nearmetal does. Written from the facts of the reports; no text or
code of theirs is here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List

from ansible_collections.nearmetal.ec2.plugins.modules import (
    block_storage,
    clocksource,
    cpu_power,
    hugepages,
    network_stack,
    tune,
)

from tests.support.boot_trees import UUID, rhel
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import lay_out
from tests.support.kernel import systemd

Call = Callable[..., Dict[str, Any]]
BOOT = "22222222-2222-3333-4444-555555555555"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def owners(result: Dict[str, Any], knob: str) -> List[str]:
    return [
        finding["owner"] for finding in result["findings"] if (finding["knob"], finding["status"]) == (knob, "refused")
    ]


def with_files(root: Path, name: str, files: Dict[str, str]) -> FakeKernel:
    host = fresh(root, name)
    lay_out(root, files)
    return host


def test_systemd_swap_118(tmp_path: Path, call: Call) -> None:
    """A unit with @system-service was killed at each start by a systemd before 239. Here that line isn't written."""
    host = with_files(tmp_path, "xen_hvm", {})
    for path, text in systemd.changes(237).items():
        place = tmp_path / path.lstrip("/")
        place.unlink(missing_ok=True)
        if text is not None:
            place.write_text(text)
    call(clocksource.main, host, source="auto")
    unit = tmp_path / "etc/systemd/system/nearmetal.service"
    assert not systemd.read(237, unit.read_text()).killed


def test_munin_1266(tmp_path: Path, call: Call) -> None:
    """`systemd-run --collect` failed before systemd 236. Here a change that may cut off is guarded without it."""
    host = with_files(tmp_path, "nitro", {})
    result = call(
        tune.main, host, concerns={"network_stack": {"mtu": 1500, "allow_disruptive": True}}, confirm_within=60
    )
    assert not result.get("failed"), result["msg"]
    assert not any("--collect" in line for line in host.commands)


def test_ceph_ansible_1408(tmp_path: Path, call: Call) -> None:
    """Of two lines of tmpfiles.d for one path the first one held, and the other was lost. Here its file is named."""
    path = "/etc/tmpfiles.d/ceph_transparent_hugepage.conf"
    host = with_files(tmp_path, "nitro", {path: f"w {THP} - - - - never\n"})
    assert owners(call(hugepages.main, host, thp="madvise"), "thp") == [path]


def test_compute_image_packages_856(tmp_path: Path, call: Call) -> None:
    """An image's 99-*.rules set disks again at each event, over what an operator had set. Here the rules are named."""
    path = "/usr/lib/udev/rules.d/99-cloud.rules"
    rule = 'SUBSYSTEM=="block", ENV{DEVTYPE}!="partition", ACTION=="add|change", ATTR{queue/read_ahead_kb}="128"\n'
    host = with_files(tmp_path, "nitro", {path: rule})
    assert owners(call(block_storage.main, host, read_ahead_kb=64), "read_ahead_kb") == [path]


def test_scylladb_9324(tmp_path: Path, call: Call) -> None:
    """ondemand.service put the governor back after each boot. Here the service is named, and nothing is persisted."""
    unit = "/lib/systemd/system/ondemand.service"
    files = {
        unit: "[Unit]\nConditionVirtualization=no\n[Service]\nType=idle\nExecStart=/lib/systemd/set-cpufreq\n",
        "/etc/systemd/system/multi-user.target.wants/ondemand.service": f"-> {unit}",
    }
    host = with_files(tmp_path, "metal", files)
    assert owners(call(cpu_power.main, host, governor="performance"), "governor") == [unit]
    assert not (tmp_path / "etc/tmpfiles.d/nearmetal-cpu_power.conf").exists()


def test_cloud_init_3034(tmp_path: Path, call: Call) -> None:
    """A .link file with OriginalName never applied, as the kernel's name was eth0. Here udev's record decides."""
    link, record = "/run/systemd/network/10-netplan-x.link", "/run/udev/data/n2"
    text = "[Match]\nOriginalName=ens5\n[Link]\nMTUBytes=1400\n"
    files = {link: text, record: "E:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\n"}
    host = with_files(tmp_path, "nitro", files)
    assert owners(call(network_stack.main, host, check=True, mtu=1500, allow_disruptive=True), "mtu") == []
    (tmp_path / record[1:]).write_text(f"E:ID_NET_LINK_FILE={link}\n")
    assert len(owners(call(network_stack.main, host, check=True, mtu=1500, allow_disruptive=True), "mtu")) == 1


def test_perfsonar_843(tmp_path: Path, call: Call) -> None:
    """The ifcfg file of an interface wasn't found, as its name is free. Here DEVICE= counts."""
    path = "/etc/sysconfig/network-scripts/ifcfg-System_eth0"
    host = with_files(tmp_path, "nitro", {path: 'NAME="System eth0"\nDEVICE=ens5\nMTU=1400\n'})
    assert owners(call(network_stack.main, host, check=True, mtu=1500, allow_disruptive=True), "mtu") == [path]


def test_kernel_settings_9(tmp_path: Path, call: Call) -> None:
    """On RHEL 8 kernelopts may be in grub.cfg alone, and tools broke the command line. Here the next boot has both."""
    host = rhel(tmp_path, 8)
    kept = f"root=UUID={UUID} ro console=tty0"
    (tmp_path / "boot/grub2/grubenv").write_text("# GRUB Environment Block\nsaved_entry=x\n".ljust(1024, "#"))
    config = f'if [ -z "${{kernelopts}}" ]; then\n  set kernelopts="{kept}"\nfi\nblscfg\n'
    (tmp_path / "boot/grub2/grub.cfg").write_text(config)
    assert not call(clocksource.main, host, tsc_reliable="enabled").get("failed")
    assert host.boot().endswith(f"{kept} tsc=reliable")
    assert not call(clocksource.main, host, tsc_reliable="enabled")["reboot_required"]
