# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with an owner of their own: a Kubernetes node, an ostree system, SELinux; the real main() of tune."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
KUBELET = "/sys/fs/cgroup/system.slice/kubelet.service/cgroup.procs"
GRUB = "/etc/default/grub"


def knobs(result: Dict[str, Any], status: str) -> Set[str]:
    return {f"{finding['concern']}.{finding['knob']}" for finding in result["findings"] if finding["status"] == status}


def snapshot(host: FakeKernel) -> Dict[str, bytes]:
    files = [path for path in Path(host.root).rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path): path.read_bytes() for path in files}


def test_a_kubernetes_node_keeps_the_knobs_of_kubelet_and_gets_all_others(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro", {KUBELET: "7\n"}))
    result = call(tune.main, host, workload="low_latency", concerns={"smt": {"threads": "disabled"}})
    assert knobs(result, "refused") == {"smt.threads", "hugepages.thp"}
    assert {finding["owner"] for finding in result["findings"] if finding["status"] == "refused"} == {"kubelet"}
    assert {"network_irq.policy", "network_stack.busy_poll", "network_stack.keepalive_time"} <= knobs(result, "changed")
    root = Path(host.root)
    assert (root / "sys/devices/system/cpu/smt/control").read_text() == "on\n"
    assert (root / "proc/sys/net/core/busy_poll").read_text() == "70\n"
    assert not list((root / "etc/tmpfiles.d").glob("*smt*"))
    taken = call(tune.main, host, workload="low_latency", owner_conflict="take_over")
    assert "smt.threads" in knobs(taken, "changed")


def test_an_ostree_system_is_left_to_its_image(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm", {"/run/ostree-booted": ""}))
    before = snapshot(host)
    result = call(tune.main, host, workload="in_memory_database")
    assert result["actions"] == [] or {action["what"] for action in result["actions"]} == {"wanted"}
    assert knobs(result, "changed") == set()
    refused = [finding for finding in result["findings"] if finding["status"] == "refused"]
    assert {"clocksource.source", "hugepages.thp"} <= {f"{finding['concern']}.{finding['knob']}" for finding in refused}
    assert all("immutable (ostree)" in finding["reason"] for finding in refused)
    assert {path: text for path, text in snapshot(host).items() if "/var/lib/nearmetal/" not in path} == before
    assert call(tune.main, host, workload="in_memory_database", strict=True)["failed"]


class Labels:
    """The labels of files by inode, as SELinux's file system calls give and take them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: Dict[int, bytes] = {}
        monkeypatch.setattr(os, "getxattr", self.get)
        monkeypatch.setattr(os, "setxattr", self.set)

    def get(self, place: Any, name: str) -> bytes:
        assert name == "security.selinux"
        if os.stat(place).st_ino not in self.held:
            raise OSError(61, "No data available", place)
        return self.held[os.stat(place).st_ino]

    def set(self, place: Any, name: str, value: bytes) -> None:
        assert name == "security.selinux"
        self.held[os.stat(place).st_ino] = value

    def of(self, path: Path) -> Any:
        return self.held.get(path.stat().st_ino)


def test_a_replaced_file_keeps_its_selinux_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = Labels(monkeypatch)
    path = tmp_path / GRUB.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text("GRUB_TIMEOUT=5\n")
    labels.set(path, "security.selinux", b"system_u:object_r:bootloader_etc_t:s0\0")
    old = path.stat().st_ino
    store.replace_file(WritableHost(str(tmp_path)), GRUB, b"GRUB_TIMEOUT=1\n", 0o644, 0o755)
    assert path.read_text() == "GRUB_TIMEOUT=1\n"
    assert path.stat().st_ino != old
    assert labels.of(path) == b"system_u:object_r:bootloader_etc_t:s0\0"


def test_a_new_file_has_its_folders_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = Labels(monkeypatch)
    store.replace_file(WritableHost(str(tmp_path)), "/etc/sysctl.d/99-nearmetal-numa.conf", b"", 0o644, 0o755)
    assert labels.held == {}, "the kernel gives it that by itself"


def test_tuning_and_restoring_on_a_host_with_selinux_loses_no_label(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = Labels(monkeypatch)
    host = FakeKernel(tmp_path, files_of("nitro"))
    journal = Path(host.root) / "var/lib/nearmetal/journal.json"
    call(tune.main, host, concerns={"hugepages": {"thp": "never"}})
    labels.set(journal, "security.selinux", b"system_u:object_r:site_t:s0\0")
    call(tune.main, host, concerns={"hugepages": {"thp": "never"}, "network_stack": {"somaxconn": 8192}})
    assert labels.of(journal) == b"system_u:object_r:site_t:s0\0"
    call(restore.main, host)
    assert not journal.exists()
