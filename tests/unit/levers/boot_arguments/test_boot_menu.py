# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments in menu.lst, which PV-GRUB reads from outside of a paravirtual guest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import block_storage, clocksource, restore

from tests.support.boot_trees import AMAZON_1, UBUNTU_PV, BootHost, amazon_1, everything, fill, ubuntu_pv
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
MENU = "boot/grub/menu.lst"
RECORD = "var/lib/nearmetal/boot_arguments.json"
OLD_KERNEL = "(hd0)/boot/vmlinuz-4.14.101-75.76.amzn1.x86_64 root=LABEL=/"


def menu(host: BootHost) -> str:
    return (Path(host.root) / MENU).read_text()


def write(host: BootHost, text: str) -> None:
    (Path(host.root) / MENU).write_text(text)


def test_only_the_lines_of_kernels_change(tmp_path: Path, call: Call) -> None:
    host = amazon_1(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert menu(host) == AMAZON_1.replace("selinux=0\n", "selinux=0 tsc=reliable\n").replace(
        f"{OLD_KERNEL} console=tty1 console=ttyS0", f"{OLD_KERNEL} console=tty1 console=ttyS0 tsc=reliable"
    )
    assert (tmp_path / MENU).is_symlink()
    assert (tmp_path / "boot/grub/grub.conf.nearmetal-old").read_text() == AMAZON_1
    call(restore.main, host)
    assert menu(host) == AMAZON_1
    assert sorted(path.name for path in (tmp_path / "boot/grub").iterdir()) == ["grub.conf", "menu.lst"]


def test_kernels_to_come_get_it_and_recovery_does_not(tmp_path: Path, call: Call) -> None:
    host = ubuntu_pv(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert menu(host) == UBUNTU_PV.replace("console=hvc0\n", "console=hvc0 tsc=reliable\n")
    assert menu(host).count("tsc=reliable") == 2  # defoptions, and the one kernel
    call(restore.main, host)
    assert menu(host) == UBUNTU_PV


def test_a_kernel_that_update_grub_adds(tmp_path: Path, call: Call) -> None:
    """It makes each entry again, of kopt and defoptions."""
    host = ubuntu_pv(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    new = menu(host).replace("3.13.0-170-generic", "3.13.0-180-generic")
    for path in ("boot/vmlinuz-", "boot/initrd.img-"):
        (tmp_path / f"{path}3.13.0-180-generic").write_text("x")
    write(host, new)
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    call(restore.main, host)
    assert menu(host) == UBUNTU_PV.replace("3.13.0-170-generic", "3.13.0-180-generic")


def test_a_kernel_without_nearmetals_argument_gets_it(tmp_path: Path, call: Call) -> None:
    host = amazon_1(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    added = AMAZON_1[AMAZON_1.index("title") :].split("\n\n")[1]
    write(host, f"{menu(host)}\n{added}")
    checked = call(clocksource.main, host, check=True, tsc_reliable="enabled")
    assert checked["actions"][0]["before"]["lacking"] == ["4.14.101-75.76.amzn1.x86_64"]
    call(clocksource.main, host, tsc_reliable="enabled")
    assert menu(host).count("tsc=reliable") == 3
    call(restore.main, host)
    assert menu(host) == f"{AMAZON_1}\n{added}"


@pytest.mark.parametrize("line", ["selinux=0", OLD_KERNEL])
def test_an_argument_that_one_entry_has_already_stays(line: str, tmp_path: Path, call: Call) -> None:
    host = amazon_1(tmp_path)
    write(host, AMAZON_1.replace(line, f"{line} tsc=reliable"))
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert menu(host).count("tsc=reliable") == 2
    call(restore.main, host)
    assert everything(host) == before


FAILURES = {
    "the kernels are missing": ("/vmlinuz-4.14", "/vmlinuz-4.15", "doesn't exist"),
    "no root": ("root=LABEL=/ ", "", "names no root"),
    "another root": ("root=LABEL=/ ", "root=LABEL=other ", "which no disk has"),
    "for init": ("selinux=0", "selinux=0 tsc=unstable --", ""),
    "too long for Xen": ("selinux=0", "x" * 950, "bytes too long"),
    "no entry": ("kernel ", "chainloader ", "no entry for Linux"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_menu_that_would_not_boot_is_left_alone(name: str, tmp_path: Path, call: Call) -> None:
    old, new, says = FAILURES[name]
    host = amazon_1(tmp_path)
    write(host, AMAZON_1.replace(old, new))
    before = everything(host)
    result = call(clocksource.main, host, tsc_reliable="enabled")
    if says:
        assert says in result["errors"]["clocksource"]
        assert everything(host) == before
    else:
        assert "selinux=0 tsc=unstable tsc=reliable --\n" in menu(host)


def test_a_full_boot_partition(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    host = amazon_1(tmp_path)
    before = everything(host)
    fill(monkeypatch, "/boot")
    assert "no space left" in call(clocksource.main, host, tsc_reliable="enabled")["errors"]["clocksource"]
    assert everything(host) == before


@pytest.mark.parametrize("wanted", ["tune", "restore"])
def test_a_run_that_died_before_the_menu_was_written(wanted: str, tmp_path: Path, call: Call) -> None:
    host = amazon_1(tmp_path)
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    write(host, AMAZON_1)
    (tmp_path / RECORD).write_text('{"version": 1, "arguments": {"tsc": "tsc=reliable"}, "before": {}}')
    if wanted == "tune":
        assert call(clocksource.main, host, tsc_reliable="enabled")["changed"]
        assert "tsc=reliable" in host.boot()
    call(restore.main, host)
    assert everything(host) == before


def test_a_paravirtual_guest_boots_from_its_menu_although_it_has_a_newer_grub_too(tmp_path: Path, call: Call) -> None:
    files = {"/boot/vmlinuz-1": "x", "/boot/initrd-1": "x", "/boot/grub/grub.cfg": "menuentry x {\n}\n"}
    line = "title x\nkernel /boot/vmlinuz-1 root=/dev/xvda1 ro\ninitrd /boot/initrd-1\n"
    host = BootHost(tmp_path, {**files_of("xen_pv"), **files, f"/{MENU}": line}, [])
    before = everything(host)
    applied = call(block_storage.main, host, indirect_segments=256, persist=False)
    assert applied["reboot_required"]
    assert menu(host) == line.replace(" ro\n", " ro xen_blkfront.max_indirect_segments=256\n")
    assert (tmp_path / "boot/grub/grub.cfg").read_text() == files["/boot/grub/grub.cfg"]
    call(restore.main, host)
    assert everything(host) == before
