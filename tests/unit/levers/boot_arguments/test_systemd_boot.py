# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments in systemd-boot's entries, on the files that Debian 12's kernel-install writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore

from tests.support.boot_trees import NEW, BootHost, everything, fill, systemd_boot, systemd_boot_kernel

Call = Callable[..., Dict[str, Any]]
ENTRIES = "boot/efi/loader/entries"
CMDLINE = "etc/kernel/cmdline"


def entries(host: BootHost) -> Dict[str, str]:
    """File → its line of options."""
    files = (Path(host.root) / ENTRIES).glob("*.conf")
    return {path.name: next(line for line in path.read_text().splitlines() if "options" in line) for path in files}


def test_the_line_of_each_entry_changes_and_comes_back_to_the_byte(tmp_path: Path, call: Call) -> None:
    host = systemd_boot(tmp_path)
    before, lines = everything(host), entries(host)
    checked = call(clocksource.main, host, check=True, tsc_reliable="enabled")
    assert (checked["changed"], everything(host)) == (True, before)
    assert call(clocksource.main, host, tsc_reliable="enabled")["reboot_required"]
    assert entries(host) == {name: f"{line} tsc=reliable" for name, line in lines.items()}
    assert (tmp_path / CMDLINE).read_text().endswith("ttyS0,115200n8 tsc=reliable\n")
    assert host.boot().endswith(" tsc=reliable")
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    call(restore.main, host)
    host.boot()
    assert everything(host) == before


def test_a_kernel_installed_later_has_it_and_loses_it(tmp_path: Path, call: Call) -> None:
    host = systemd_boot(tmp_path)
    assert call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    for path, text in systemd_boot_kernel("6.1.0-40-cloud-amd64", (tmp_path / CMDLINE).read_text().strip()).items():
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path[1:]).write_text(text)
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    call(restore.main, host)
    assert not any("tsc=reliable" in line for line in entries(host).values())


def test_without_its_file_for_later_kernels_none_is_created(tmp_path: Path, call: Call) -> None:
    """One with our arguments alone would lack root=, and the next kernel wouldn't boot."""
    host = systemd_boot(tmp_path)
    (tmp_path / CMDLINE).unlink()
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert not (tmp_path / CMDLINE).exists()
    assert all(line.endswith(" tsc=reliable") for line in entries(host).values())
    call(restore.main, host)
    assert everything(host) == before


def test_an_argument_that_one_entry_has_already_stays(tmp_path: Path, call: Call) -> None:
    host = systemd_boot(tmp_path)
    path = next((tmp_path / ENTRIES).glob(f"*{NEW}.conf"))
    path.write_text(path.read_text().replace(" ro ", " ro tsc=reliable "))
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert all(line.count("tsc=reliable") == 1 for line in entries(host).values())
    call(restore.main, host)
    assert everything(host) == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("/linux\n", "/missing\n", "doesn't exist"),
        ("root=UUID=", "toor=", "names no root"),
        (" ro ", f" {'x' * 1900} ", "bytes too long"),
    ],
)
def test_an_entry_that_would_not_boot_is_left_alone(old: str, new: str, says: str, tmp_path: Path, call: Call) -> None:
    host = systemd_boot(tmp_path)
    for path in (tmp_path / ENTRIES).glob("*.conf"):
        path.write_text(path.read_text().replace(old, new))
    before = everything(host)
    assert says in call(clocksource.main, host, tsc_reliable="enabled")["errors"]["clocksource"]
    assert everything(host) == before


def test_a_full_efi_partition(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    host = systemd_boot(tmp_path)
    before = everything(host)
    fill(monkeypatch, "/boot")
    assert "no space left" in call(clocksource.main, host, tsc_reliable="enabled")["errors"]["clocksource"]
    assert everything(host) == before


def test_entries_that_another_boot_loader_may_read_are_refused(tmp_path: Path, call: Call) -> None:
    host = systemd_boot(tmp_path)
    (tmp_path / "boot/efi/EFI/systemd/systemd-bootx64.efi").unlink()
    before = everything(host)
    result = call(clocksource.main, host, tsc_reliable="enabled")
    reasons = [finding["reason"] for finding in result["findings"] if finding["status"] == "refused"]
    assert "at the end of each line options" in reasons[0]
    assert everything(host) == before
