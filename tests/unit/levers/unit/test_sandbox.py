# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit in the sandbox of its own service: it sees what a run of Ansible sees.

What systemd hides for which line of the service is written down here, after systemd.exec(5)
and apply_one_mount() of systemd's src/core/namespace.c.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Callable, Dict

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import block_storage

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
NEW_BOOT = "99999999-0000-0000-0000-000000000000"
# Line of a service → folders that are unmounted, with all below them, and covered.
HIDES = {
    "ProtectHome=yes": ("/home", "/root", "/run/user"),
    "ProtectHome=tmpfs": ("/home", "/root", "/run/user"),
    "ProtectKernelModules=yes": ("/lib/modules", "/usr/lib/modules"),
}


def boot_in_the_sandbox(host: FakeKernel) -> int:
    """Boot, and run the unit where its service's lines have hidden folders from it."""
    root = Path(host.root)
    host.reboot(NEW_BOOT)
    lines = (root / "etc/systemd/system/nearmetal.service").read_text().splitlines()
    for folder in (folder for line in lines for folder in HIDES.get(line, ())):
        table = root / "proc/self/mountinfo"
        mounts = table.read_text().splitlines()
        kept = [mount for mount in mounts if not f"{mount.split()[4]}/".startswith(f"{folder}/")]
        cover = f"900 80 0:25 /systemd/inaccessible/dir {folder} ro,nosuid,nodev,noexec - tmpfs tmpfs rw,mode=755"
        table.write_text("\n".join([*kept, cover]) + "\n")
        shutil.rmtree(root / folder[1:], ignore_errors=True)
    return command(["reapply", "--if-changed"], host)


def test_a_disk_that_is_mounted_at_home_is_found(tmp_path: Path, call: Call) -> None:
    table = files_of("nitro_big")["/proc/self/mountinfo"].replace(" /data ", " /home ")
    host = FakeKernel(tmp_path, files_of("nitro_big", {"/proc/self/mountinfo": table}))
    applied = call(block_storage.main, host, disks=[{"mount": "/home", "read_ahead_kb": 4096}])
    assert not applied.get("failed"), applied["msg"]
    assert boot_in_the_sandbox(host) == 0
    assert (tmp_path / "sys/block/md0/queue/read_ahead_kb").read_text() == "4096\n"


def test_a_scheduler_that_is_a_module_is_found(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    release = (tmp_path / "proc/sys/kernel/osrelease").read_text().strip()
    folder = tmp_path / f"lib/modules/{release}/kernel/block"
    folder.mkdir(parents=True)
    (folder / "kyber-iosched.ko.xz").touch()
    wanted = {"disks": [{"device": "nvme1n1", "scheduler": "kyber", "nomerges": 2}]}
    applied = call(block_storage.main, host, **wanted)
    assert not applied.get("failed"), applied["msg"]
    assert boot_in_the_sandbox(host) == 0
    queue = tmp_path / "sys/block/nvme1n1/queue"
    assert "[kyber]" in (queue / "scheduler").read_text()
    assert (queue / "nomerges").read_text() == "2\n"
