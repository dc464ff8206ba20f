# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments where entries of the Boot Loader Specification hold them: which arguments are ours."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import block_storage, clocksource, hugepages, restore

from tests.support.boot_trees import UUID, BootHost, bls_entry, everything, fill, rhel

Call = Callable[..., Dict[str, Any]]
VERSION = "5.14.0-503.11.1.el9_5.x86_64"
ENTRY = f"boot/loader/entries/0123-{VERSION}.conf"
RESCUE = "boot/loader/entries/0123-0-rescue.conf"
CMDLINE = "etc/kernel/cmdline"
DEFAULTS = "etc/default/grub"
GRUBENV = "boot/grub2/grubenv"
RECORD = "var/lib/nearmetal/boot_arguments.json"
SHELL = """GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=tty0 dyndbg=\\"file drivers/* +p\\""
GRUB_TIMEOUT=1
"""


def two_kernels(root: Path, release: int) -> BootHost:
    """With a second kernel, a rescue entry and /etc/default/grub."""
    host = rhel(root, release)
    options = "$kernelopts" if release == 8 else f"root=UUID={UUID}  ro $tuned_params "
    for name, text in {
        DEFAULTS: SHELL,
        RESCUE: "title rescue\nversion 0-rescue\nlinux /vmlinuz-0-rescue\noptions root=UUID=OLD rescueonly=1\n",
        "boot/loader/entries/0123-4.18.0-1.conf": bls_entry("4.18.0-1", options),
        "boot/vmlinuz-4.18.0-1": "x",
        "boot/initramfs-4.18.0-1.img": "x",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return host


def edit(host: BootHost, path: str, old: str, new: str) -> None:
    place = Path(host.root) / path
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new, 1))


def read(host: BootHost, path: str) -> str:
    return (Path(host.root) / path).read_text()


@pytest.mark.parametrize("release", [8, 9])
def test_back_to_the_byte(tmp_path: Path, call: Call, release: int) -> None:
    host = two_kernels(tmp_path, release)
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert host.boot().endswith("tsc=reliable")
    assert 'GRUB_CMDLINE_LINUX="console=tty0 dyndbg=\\"file drivers/* +p\\" tsc=reliable"\n' in read(host, DEFAULTS)
    assert read(host, DEFAULTS).startswith('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    assert everything(host)[RESCUE] == before[RESCUE], "the way out when ours doesn't boot"
    call(restore.main, host)
    assert everything(host) == before


PLACES = {
    "one of two entries": (9, {ENTRY: " ro "}),
    "every entry, not the kernels to come": (9, {ENTRY: " ro ", "boot/loader/entries/0123-4.18.0-1.conf": " ro "}),
    "the kernels to come": (9, {CMDLINE: " ro "}),
    "/etc/default/grub": (9, {DEFAULTS: "=tty0 "}),
    "grubenv": (8, {GRUBENV: " ro "}),
    "one entry beside grubenv": (8, {ENTRY.replace(VERSION, "4.18.0-1"): "$kernelopts"}),
    "everywhere but grubenv": (8, {DEFAULTS: "=tty0 ", ENTRY.replace(VERSION, "4.18.0-1"): "$kernelopts"}),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_foreign_value_stays(name: str, tmp_path: Path, call: Call) -> None:
    release, places = PLACES[name]
    host = two_kernels(tmp_path, release)
    for path, after in places.items():
        edit(host, path, after, f"{after} tsc=reliable ")
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert "tsc=reliable" in host.boot()
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    call(restore.main, host)
    assert everything(host) == before


def test_nothing_waits_for_a_reboot_when_the_argument_stays(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    edit(host, ENTRY, " ro ", " ro tsc=reliable ")
    host.boot()
    call(clocksource.main, host, tsc_reliable="enabled")
    back = call(restore.main, host)
    assert (back["changed"], back["reboot_required"]) == (True, False)


@pytest.mark.parametrize("release", [8, 9])
def test_a_value_of_the_image_is_replaced_and_comes_back(tmp_path: Path, call: Call, release: int) -> None:
    host = rhel(tmp_path, release)
    edit(host, GRUBENV if release == 8 else ENTRY, " ro ", " ro nvme_core.io_timeout=4294967295 ")
    before = everything(host)
    for wanted, booted in (
        ("600000", ["4294967295", "600"]),
        ("aws", ["4294967295"]),
        ("900000", ["4294967295", "900"]),
    ):
        call(block_storage.main, host, io_timeout=wanted, method="boot")
        assert re.findall(r"nvme_core.io_timeout=(\d+)", host.boot()) == booted
    call(restore.main, host)
    assert everything(host) == before


def test_two_arguments_of_one_name(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    before = everything(host)
    pages = [{"size": "1G", "count": 1}, {"size": "2M", "count": 8}]
    call(hugepages.main, host, pages=pages, method="boot")
    assert len(re.findall(" hugepages=", host.boot())) == 2
    call(restore.main, host)
    assert everything(host) == before


@pytest.mark.parametrize("then", ["restore", "600000", "900000", "1200000"])
@pytest.mark.parametrize("written", [(), (ENTRY,), (ENTRY, CMDLINE)], ids=["nothing", "an entry", "all"])
def test_a_run_that_died_while_it_changed_a_value(
    tmp_path: Path, call: Call, then: str, written: "tuple[str, ...]"
) -> None:
    host = rhel(tmp_path, 9)
    before = everything(host)
    call(block_storage.main, host, io_timeout="600000", method="boot")
    first = everything(host)
    call(block_storage.main, host, io_timeout="900000", method="boot")
    for path in (ENTRY, CMDLINE):
        if path not in written:
            (tmp_path / path).write_bytes(first[path])
    record = json.loads(read(host, RECORD))
    record["before"] = {"nvme_core.io_timeout": [json.loads(first[RECORD])["arguments"]["nvme_core.io_timeout"]]}
    (tmp_path / RECORD).write_text(json.dumps(record))
    if then != "restore":
        done = call(block_storage.main, host, io_timeout=then, method="boot")
        assert done["changed"]
        assert re.findall(r"nvme_core.io_timeout=(\d+)", host.boot() + read(host, CMDLINE)) == [then[:-3]] * 2
    call(restore.main, host)
    assert everything(host) == before


def test_a_run_that_dies_again_and_again_forgets_no_value_that_it_set(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    before = everything(host)
    call(block_storage.main, host, io_timeout="600000", method="boot")
    call(block_storage.main, host, io_timeout="900000", method="boot")
    record = json.loads(read(host, RECORD))
    record["before"] = {"nvme_core.io_timeout": ["nvme_core.io_timeout=600"]}
    (tmp_path / RECORD).write_text(json.dumps(record))
    (tmp_path / "etc/kernel").chmod(0o777)
    assert call(block_storage.main, host, io_timeout="1200000", method="boot")["failed"]
    (tmp_path / "etc/kernel").chmod(0o755)
    call(restore.main, host)
    assert everything(host) == before


def test_a_missing_file_is_not_created(tmp_path: Path, call: Call) -> None:
    """grubby of RHEL 9 would create it from its last entry, which may be the rescue entry."""
    host = two_kernels(tmp_path, 9)
    (tmp_path / CMDLINE).unlink()
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert not (tmp_path / CMDLINE).exists()
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    call(restore.main, host)
    assert everything(host) == before


def test_the_old_files_are_kept_until_our_argument_is_removed(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    old = read(host, ENTRY)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert read(host, ENTRY + ".nearmetal-old") == old
    (tmp_path / "boot/loader/entries/0123-4.18.0.conf.nearmetal-old").write_text("of a kernel that was removed")
    call(restore.main, host)
    assert [path.name for path in (tmp_path / "boot/loader/entries").iterdir()] == [Path(ENTRY).name]


@pytest.mark.parametrize("release", [8, 9])
def test_the_configuration_is_on_disk_before_its_rename(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, release: int
) -> None:
    host = rhel(tmp_path, release)
    place = tmp_path / (GRUBENV if release == 8 else ENTRY)
    inode, seen = place.stat().st_ino, []
    sync = os.fsync

    def note(descriptor: int) -> None:
        sync(descriptor)
        state = os.fstat(descriptor)
        named = place.stat().st_ino
        if state.st_ino == place.parent.stat().st_ino:
            seen.append("folder, old file" if named == inode else "folder, new file")
        elif Path(os.readlink(f"/proc/self/fd/{descriptor}")).parent == place.parent:
            seen.append("file")

    monkeypatch.setattr(os, "fsync", note)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert seen == ["file", "folder, old file", "folder, old file", "folder, new file"]


def test_a_failure_half_way_brings_the_old_files_back(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = rhel(tmp_path, 9)
    before = everything(host)
    fill(monkeypatch, "/etc/kernel")
    failed = call(clocksource.main, host, tsc_reliable="enabled")
    assert "no space left" in failed["errors"]["clocksource"]
    assert everything(host) == before


def test_the_environment_block_keeps_its_size(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 8)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert len(read(host, GRUBENV)) == 1024
    call(restore.main, host)
    free = len(read(host, GRUBENV)) - len(read(host, GRUBENV).rstrip("#"))
    edit(host, GRUBENV, " ro ", f" ro {'x' * (free - 6)} ")
    (tmp_path / GRUBENV).write_text(read(host, GRUBENV)[:1024])
    before = everything(host)
    assert "no room left" in call(clocksource.main, host, tsc_reliable="enabled")["errors"]["clocksource"]
    assert everything(host) == before


def test_the_last_argument_is_somebody_elses(tmp_path: Path, call: Call) -> None:
    host = two_kernels(tmp_path, 8)
    edit(host, "boot/loader/entries/0123-4.18.0-1.conf", "$kernelopts", "$kernelopts tsc=nowatchdog")
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    entry = (tmp_path / "boot/loader/entries/0123-4.18.0-1.conf").read_text()
    assert "$kernelopts tsc=nowatchdog tsc=reliable" in entry, "what stands behind the variable would win"
    call(restore.main, host)
    assert everything(host) == before


def test_the_disk_before_the_kernel_counts_for_the_length(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    bare = len(f"BOOT_IMAGE=(hd0,gpt1)/vmlinuz-{VERSION} {host.boot().split(' ', 1)[1]}  tsc=reliable")
    edit(host, ENTRY, " ro ", f" ro {'x' * (2048 - bare)} ")
    before = everything(host)
    failed = call(clocksource.main, host, tsc_reliable="enabled")
    assert "bytes too long" in failed["errors"]["clocksource"]
    assert everything(host) == before


class KilledError(BaseException):
    """The run ends here, and nothing of it runs any more."""


@pytest.mark.parametrize("release", [8, 9])
def test_killed_at_any_rename(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, release: int) -> None:
    rename, left = os.rename, [0]

    def counted(*names: Any, **named: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KilledError
        rename(*names, **named)

    monkeypatch.setattr(os, "rename", counted)
    ended = False
    for step in range(1, 40):
        root = tmp_path / str(step)
        root.mkdir()
        host = two_kernels(root, release)
        edit(host, GRUBENV if release == 8 else ENTRY, " ro ", " ro nvme_core.io_timeout=600 ")
        before = everything(host)
        call(block_storage.main, host, io_timeout="600000", method="boot")
        left[0] = step
        try:
            call(block_storage.main, host, io_timeout="900000", method="boot")
            ended = True
        except KilledError:
            pass
        left[0] = 0
        call(restore.main, host)
        files = {path: data for path, data in everything(host).items() if not path.startswith("var/lib/nearmetal/.")}
        assert files == before, f"killed at rename {step}"
        if ended:
            break
    assert ended
    assert step > 5
