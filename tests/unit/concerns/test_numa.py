# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""numa's real main() on a fake kernel."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List

from ansible_collections.nearmetal.ec2.plugins.modules import numa, restore

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
FILE = "/etc/sysctl.d/99-nearmetal-numa.conf"
GENERATOR = "etc/systemd/system-generators/nearmetal-numa"
SERVICES = [{"unit": "db.service", "nodes": "1"}]


def test_check_apply_check_apply_restore(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("metal"))
    before = everything(host)
    wanted = {"balancing": "disabled", "zone_reclaim_mode": 0}
    checked = call(numa.main, host, check=True, **wanted)
    assert everything(host) == before
    applied = call(numa.main, host, **wanted)
    results = [checked, applied] + [call(numa.main, host, check=check, **wanted) for check in (True, False)]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    assert (tmp_path / "proc/sys/kernel/numa_balancing").read_text() == "0\n"
    assert "kernel.numa_balancing = 0\n" in (tmp_path / FILE.lstrip("/")).read_text()
    assert call(restore.main, host)["changed"]
    assert everything(host) == before


def test_hidden_nodes_need_a_reboot_and_go_again(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    assert not call(numa.main, host, nodes="hidden")["reboot_required"]
    assert call(numa.main, host, nodes="hidden", allow_hidden_nodes=True)["reboot_required"]
    assert host.boot().endswith(" numa=off")
    call(numa.main, host, state="restored")
    assert "numa=off" not in host.boot()


def start(host: FakeKernel, cpus: str, policy: str) -> None:
    """systemd has restarted the service: process 700, on these CPUs, with this memory policy."""
    root = Path(host.root)
    for path, text in {
        "sys/fs/cgroup/system.slice/db.service/cgroup.procs": "700\n",
        "proc/700/status": f"Name:\tdb\nPPid:\t1\nCpus_allowed_list:\t{cpus}\n",
        "proc/700/numa_maps": f"55d0c0a00000 {policy} file=/usr/bin/db mapped=12 N1=12 kernelpagesize_kB=4\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def reasons(result: Dict[str, Any]) -> Dict[str, str]:
    return {finding["status"]: finding["reason"] for finding in result["findings"] if finding["knob"] == "services"}


def test_a_service_is_bound_when_its_process_shows_it(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("metal"))
    start(host, "0-15", "default")
    before = everything(host)
    checked = call(numa.main, host, check=True, services=SERVICES)
    assert (everything(host), host.commands) == (before, [])
    applied = call(numa.main, host, services=SERVICES)
    assert checked["diff"] == applied["diff"]
    assert applied["msg"].startswith(f"numa: /{GENERATOR} written, no reboot")
    assert set(reasons(applied)) == {"changed", "needs_restart"}
    assert "systemctl restart db.service" in reasons(applied)["needs_restart"]
    assert host.commands == ["systemctl daemon-reload"], "nothing is restarted unasked"
    for cpus, policy in (("0-15", "default"), ("4-7", "default"), ("0-7,12-15", "bind:1"), ("4-7", "bind:0")):
        start(host, cpus, policy)
        again = call(numa.main, host, services=SERVICES)
        assert (again["changed"], set(reasons(again))) == (False, {"needs_restart"}), (cpus, policy)
    for cpus, policy in (("4-7,12-15", "bind:1"), ("5", "bind=static:1")):
        start(host, cpus, policy)
        assert set(reasons(call(numa.main, host, services=SERVICES))) == {"ok"}, (cpus, policy)
    (tmp_path / "proc/700/numa_maps").write_text("")
    assert set(reasons(call(numa.main, host, services=SERVICES))) == {"unknown"}
    host.commands.clear()
    start(host, "0-15", "default")
    assert call(restore.main, host)["changed"]
    assert host.commands == ["systemctl daemon-reload"]
    assert everything(host) == before


def test_a_service_that_is_left_out_is_no_longer_bound(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("metal"))
    call(numa.main, host, services=[*SERVICES, {"unit": "web.service", "nodes": "0"}])
    call(numa.main, host, services=SERVICES)
    assert "web.service" not in (tmp_path / GENERATOR).read_text()
    call(numa.main, host, balancing="disabled")
    assert not (tmp_path / GENERATOR).parent.exists()


def test_no_shell_command_of_root_is_made_of_a_name(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("metal"))
    failed = call(numa.main, host, services=[{"unit": "a' 'b;reboot;.service", "nodes": "1"}])
    assert failed["failed"]
    assert "services[0].unit must be the full name of a service" in failed["msg"]
    assert not (tmp_path / GENERATOR).exists()


def drop_ins(host: FakeKernel, services: List[Dict[str, str]], call: Call) -> Dict[str, str]:
    """Unit → drop-in, as systemd makes them with the generator on this host's /sys."""
    call(numa.main, host, services=services)
    return generated(host)


def generated(host: FakeKernel) -> Dict[str, str]:
    """The drop-ins of the generator on the host."""
    root, out = Path(host.root), Path(host.root) / "run/generated"
    script = (root / GENERATOR).read_text().replace("/sys/", f"{root}/sys/")
    subprocess.run(["/bin/sh", "-eu", "-c", script, "generator", str(out)], check=True, capture_output=True)
    return {path.parent.name[:-2]: path.read_text() for path in out.glob("*.d/90-nearmetal-numa.conf")}


def test_the_drop_ins_follow_the_size_that_the_host_has_at_boot(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, {**files_of("metal"), "/sys/bus/pci/devices/0000:00:1f.0/numa_node": "1\n"})
    services = [
        {"unit": "db.service", "nodes": "1"},
        {"unit": "cache@a.service", "nodes": "0-1", "policy": "interleave"},
        {"unit": "web.service", "near_device": "0000:00:1f.0", "policy": "preferred"},
    ]
    first, second = "0,1,2,3,8,9,10,11", "4,5,6,7,12,13,14,15"
    alone = "CPUAffinity=\nCPUAffinity="  # without those of its own unit, with which systemd would unite them
    assert drop_ins(host, services, call) == {
        "db.service": f"[Service]\nNUMAPolicy=bind\nNUMAMask=1\n{alone}{second}\n",
        "cache@a.service": f"[Service]\nNUMAPolicy=interleave\nNUMAMask=0 1\n{alone}{first} {second}\n",
        "web.service": f"[Service]\nNUMAPolicy=preferred\nNUMAMask=1\n{alone}{second}\n",
    }
    assert (tmp_path / GENERATOR).stat().st_mode & 0o777 == 0o755


def test_a_node_that_a_smaller_size_lacks_keeps_no_service_from_starting(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("metal"))
    call(numa.main, host, services=[*SERVICES, {"unit": "web.service", "nodes": "0"}])
    (tmp_path / "sys/devices/system/node/node1/cpulist").unlink()
    assert set(generated(host)) == {"web.service"}


def test_a_node_without_memory_keeps_no_service_from_starting(tmp_path: Path, call: Call) -> None:
    """The kernel refuses a memory policy of none (EINVAL), and systemd then doesn't start the service (242)."""
    host = FakeKernel(tmp_path, {**files_of("metal"), "/sys/bus/pci/devices/0000:00:1f.0/numa_node": "1\n"})
    services = [
        *SERVICES,
        {"unit": "nic.service", "near_device": "0000:00:1f.0"},
        {"unit": "web.service", "nodes": "0"},
    ]
    call(numa.main, host, services=services)
    (tmp_path / "sys/devices/system/node/node1/meminfo").write_text("Node 1 MemTotal:             0 kB\n")
    assert set(generated(host)) == {"web.service"}


def test_a_node_without_cpus_binds_memory_alone(tmp_path: Path, call: Call) -> None:
    """An empty CPUAffinity= would override the unit's own setting."""
    host = FakeKernel(tmp_path, files_of("metal"))
    (tmp_path / "sys/devices/system/node/node1/cpulist").write_text("\n")
    assert drop_ins(host, SERVICES, call) == {"db.service": "[Service]\nNUMAPolicy=bind\nNUMAMask=1\n"}
    start(host, "0-15", "bind:1")
    assert set(reasons(call(numa.main, host, services=SERVICES))) == {"ok"}
