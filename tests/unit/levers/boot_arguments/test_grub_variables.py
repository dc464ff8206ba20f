# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries with arguments in GRUB's variables, entries that can't boot, and check mode that judges as the run does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import block_storage, clocksource, restore

from tests.support.boot_trees import UUID, BootHost, bls_entry, debian, everything, rhel, systemd_boot

Call = Callable[..., Dict[str, Any]]
CONFIG, BLOCK = "boot/grub2/grub.cfg", "boot/grub2/grubenv"
EMPTY = "# GRUB Environment Block\nsaved_entry=x\n".ljust(1024, "#")
ROOT = f"root=UUID={UUID} ro console=tty0"
# As grub2-mkconfig of RHEL 8 writes it: a default for hosts without the variable in grubenv.
FALLBACK = f'if [ -z "${{kernelopts}}" ]; then\n  set kernelopts="{ROOT}"\nfi\n'
TUNED = "nvme_core.io_timeout=4294967295"
CONFIGS = {
    "the fallback": FALLBACK + "insmod blscfg\nblscfg\n",
    "in one line": f"if [ \"$kernelopts\" = '' ]; then set kernelopts='{ROOT}'; fi\nblscfg\n",
    "the other branch": f'if [ -n "$kernelopts" ]; then\n  :\nelse\n  set kernelopts="{ROOT}"\nfi\nblscfg\n',
    "another variable in it": f'set base="{ROOT}"\n{FALLBACK.replace(ROOT, "${base} quiet")}blscfg\n',
    "set again after the entries are made": FALLBACK + "blscfg\nset kernelopts=lost\n",
}


def put(host: BootHost, path: str, text: str) -> None:
    place = Path(host.root) / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def checked_and_done(call: Call, main: Callable[[], None], host: BootHost, **options: Any) -> Dict[str, Any]:
    """The result of a run, which is what its check said: the same errors, and changes where it says so."""
    check = call(main, host, check=True, **options)
    done = call(main, host, **options)
    assert (check.get("failed"), check.get("errors")) == (done.get("failed"), done.get("errors"))
    assert check["changed"] == done["changed"]
    return done


@pytest.mark.parametrize("name", CONFIGS)
def test_a_fallback_in_grub_cfg(name: str, tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 8)
    put(host, BLOCK, EMPTY)
    put(host, CONFIG, CONFIGS[name])
    before = everything(host)
    assert not checked_and_done(call, clocksource.main, host, tsc_reliable="enabled").get("failed")
    line = host.boot()
    assert ROOT in line
    assert line.endswith(" tsc=reliable")
    again = call(clocksource.main, host, tsc_reliable="enabled")
    assert not again["changed"]
    assert not again["reboot_required"]
    call(restore.main, host)
    assert everything(host) == before
    assert "tsc" not in host.boot()


@pytest.mark.parametrize("release", [8, 9])
def test_an_argument_of_tuneds_variable_has_an_owner(release: int, tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, release)
    put(host, CONFIG, f'set tuned_params="{TUNED}"\nset tuned_initrd=""\nblscfg\n')
    options = {"io_timeout": "600000", "method": "boot"}
    result = checked_and_done(call, block_storage.main, host, **options)
    owners = {finding["owner"] for finding in result["findings"] if finding["status"] == "refused"}
    assert owners == {f"/{CONFIG}"}
    host.boot()
    assert not call(block_storage.main, host, **options)["reboot_required"], "it would be asked for on every run"


def test_an_argument_that_is_taken_over_stands_behind_the_variable(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 8)
    put(host, CONFIG, f'set tuned_params="{TUNED}"\nblscfg\n')
    before = everything(host)
    options = {"io_timeout": "600000", "method": "boot", "owner_conflict": "take_over"}
    checked_and_done(call, block_storage.main, host, **options)
    assert host.boot().endswith(f"{TUNED} nvme_core.io_timeout=600")
    again = call(block_storage.main, host, **options)
    assert not again["changed"]
    assert not again["reboot_required"]
    call(restore.main, host)
    assert everything(host) == before


STALE = {
    "a kernel that is gone": bls_entry("5.14.0-1.el9.x86_64", f"root=UUID={UUID} ro"),
    "no root": bls_entry("5.14.0-503.11.1.el9_5.x86_64", "ro"),
    "another program": "title Memtest86+\nefi /memtest86+x64.efi\n",
    "a program with options": "title Shell\nefi /shellx64.efi\noptions -nostartup\n",
}


@pytest.mark.parametrize("name", STALE)
def test_an_entry_that_can_not_boot_stops_no_other(name: str, tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    put(host, "boot/loader/entries/0123-stale.conf", STALE[name])
    before = everything(host)
    assert not checked_and_done(call, clocksource.main, host, tsc_reliable="enabled").get("failed")
    assert host.boot().endswith(" tsc=reliable")
    again = call(clocksource.main, host, tsc_reliable="enabled")
    assert not again["changed"]
    assert not again["reboot_required"]
    call(restore.main, host)
    assert everything(host) == before


def test_check_mode_says_that_no_entry_can_boot(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    for kernel in (tmp_path / "boot").glob("vmlinuz-*"):
        kernel.unlink()
    before = everything(host)
    result = checked_and_done(call, clocksource.main, host, tsc_reliable="enabled")
    assert "doesn't exist" in result["errors"]["clocksource"]
    assert everything(host) == before


def test_check_mode_says_that_a_line_would_be_too_long(tmp_path: Path, call: Call) -> None:
    for make, folder in ((systemd_boot, "one"), (debian, "two")):
        (tmp_path / folder).mkdir()
        host = make(tmp_path / folder)
        long = "x" * 1990
        if make is debian:
            put(host, "boot/grub/grub.cfg", (host.text("/boot/grub/grub.cfg") or "").replace("quiet", long))
            put(host, "etc/default/grub.d/50-cloudimg-settings.cfg", f'GRUB_CMDLINE_LINUX_DEFAULT="quiet {long}"\n')
            continue
        for path in (tmp_path / folder / "boot/efi/loader/entries").glob("*.conf"):
            path.write_text(path.read_text().replace(" ro ", f" ro {long} "))
        result = checked_and_done(call, clocksource.main, host, tsc_reliable="enabled")
        assert "bytes too long" in result["errors"]["clocksource"]


def test_check_mode_says_that_a_later_file_sets_an_argument_of_nearmetals(tmp_path: Path, call: Call) -> None:
    """GRUB would put the file's argument behind nearmetal's, and the kernel takes the last one."""
    extended = 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT nvme_core.io_timeout={}"\n'
    host = debian(tmp_path, changes={"/etc/default/grub.d/99-zz.cfg": extended.format(30)})
    options = {"io_timeout": "600000", "method": "boot"}
    result = checked_and_done(call, block_storage.main, host, **options)
    assert "/etc/default/grub.d/99-zz.cfg sets nvme_core.io_timeout" in result["errors"]["block_storage"]
    put(host, "etc/default/grub.d/99-zz.cfg", extended.format(600))
    assert not checked_and_done(call, block_storage.main, host, **options).get("failed")


def test_of_several_lines_of_options_grub_takes_the_first(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    entry = next((tmp_path / "boot/loader/entries").glob("*.conf"))
    entry.write_text(entry.read_text() + "options quiet\n")
    assert not checked_and_done(call, clocksource.main, host, tsc_reliable="enabled").get("failed")
    assert "tsc=reliable" in host.boot()
    assert not call(clocksource.main, host, check=True, tsc_reliable="enabled")["reboot_required"]


def test_check_mode_says_that_a_later_file_sets_the_variable_anew(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path, changes={"/etc/default/grub.d/99-zz.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'})
    before = everything(host)
    result = checked_and_done(call, clocksource.main, host, tsc_reliable="enabled")
    assert "/etc/default/grub.d/99-zz.cfg sets GRUB_CMDLINE_LINUX_DEFAULT anew" in result["errors"]["clocksource"]
    assert everything(host) == before
    extended = 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT quiet"\n'
    put(host, "etc/default/grub.d/99-zz.cfg", extended)
    assert not checked_and_done(call, clocksource.main, host, tsc_reliable="enabled").get("failed")
