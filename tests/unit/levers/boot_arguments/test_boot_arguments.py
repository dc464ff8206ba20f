# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments by the modules' real main(): Debian, RHEL, Amazon Linux 2, with stand-ins for tools.

The lab tests GRUB itself, for Debian.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.boot_trees import (
    FOREIGN,
    NEW,
    BootHost,
    amazon_1,
    amazon_2,
    amazon_2_arm,
    bls_entry,
    debian,
    everything,
    fill,
    install_kernel,
    rhel,
    rhel_without_bls,
    ubuntu_pv,
)
from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
DROP_IN = "etc/default/grub.d/99-nearmetal.cfg"
CONFIG = "boot/grub/grub.cfg"
RECORD = "var/lib/nearmetal/boot_arguments.json"
HOSTS: Dict[str, Callable[[Path], BootHost]] = {
    "debian": debian,
    "rhel 8": lambda root: rhel(root, 8),
    "rhel 9": lambda root: rhel(root, 9),
    "rhel without bls": rhel_without_bls,
    "amazon 1": amazon_1,
    "ubuntu pv": ubuntu_pv,
    "amazon 2": amazon_2,
    "amazon 2 on arm": amazon_2_arm,
}


def changes(result: Dict[str, Any]) -> list[str]:
    """The changes on the host, except stored wanted."""
    return [action["what"] for action in result["actions"] if action["what"] != "wanted"]


def read(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path).read_text()


def write(host: FakeKernel, path: str, text: str) -> None:
    (Path(host.root) / path).write_text(text)


def statuses(result: Dict[str, Any]) -> Dict[str, str]:
    """Status of each knob's first finding."""
    found: Dict[str, str] = {}
    for finding in result["findings"]:
        found.setdefault(finding["knob"], finding["status"])
    return found


@pytest.mark.parametrize("name", HOSTS)
def test_from_check_to_the_reboot_and_back(name: str, tmp_path: Path, call: Call) -> None:
    host = HOSTS[name](tmp_path)
    line, before = host.boot(), everything(host)
    checked = call(clocksource.main, host, check=True, tsc_reliable="enabled")
    assert everything(host) == before, "check mode wrote"
    applied = call(clocksource.main, host, tsc_reliable="enabled")
    again_checked = call(clocksource.main, host, check=True, tsc_reliable="enabled")
    again = call(clocksource.main, host, tsc_reliable="enabled")
    results = (checked, applied, again_checked, again)
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert [result["reboot_required"] for result in results] == [True] * 4
    assert checked["diff"] == applied["diff"]
    assert applied["diff"]["after"]["boot"] == {"arguments": {"tsc": "tsc=reliable"}}
    assert applied["msg"] == "clocksource: tsc absent → tsc=reliable, needs a reboot"
    assert "without tsc=reliable" in again["reboot_reasons"][0]
    assert host.boot() == f"{line.rstrip()} tsc=reliable", "what isn't ours has changed"
    booted = call(clocksource.main, host, tsc_reliable="enabled")
    assert (booted["changed"], booted["reboot_required"]) == (False, False)
    back = call(restore.main, host)
    assert (back["changed"], back["reboot_required"]) == (True, True)
    assert everything(host) == before
    assert host.boot().rstrip() == line.rstrip()


def test_one_run_of_the_generator_for_all_concerns(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    call(tune.main, host, concerns={"clocksource": {"tsc_reliable": "enabled", "source": "hpet"}})
    assert [line for line in host.commands if "mkconfig" in line] == ["/usr/sbin/grub-mkconfig"]
    assert host.commands[1].startswith("/usr/sbin/grub-script-check /boot/grub/grub.cfg")


def test_recovery_and_entries_of_others_stay_as_they_are(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    lines = re.findall(r"^\tlinux\t.*$", read(host, CONFIG), re.MULTILINE)
    assert [("tsc=reliable" in line) for line in lines] == [True, False, False]
    assert FOREIGN in lines[0]


def test_the_old_configuration_is_kept_until_our_argument_is_removed(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    old = read(host, CONFIG)
    call(clocksource.main, host, tsc_reliable="enabled")
    assert read(host, CONFIG + ".nearmetal-old") == old


def test_the_argument_was_already_set_by_somebody_else(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path, foreign="console=tty0 tsc=reliable")
    before = everything(host)
    result = call(clocksource.main, host, tsc_reliable="enabled")
    assert (changes(result), result["reboot_required"], statuses(result)["tsc_reliable"]) == ([], False, "ok")
    given_back = call(clocksource.main, host, tsc_reliable="kernel")
    assert "didn't put it there" in given_back["findings"][-1]["reason"]
    assert everything(host) == before


def test_a_kernel_upgrade_in_between_keeps_the_argument(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    install_kernel(host, NEW)
    assert NEW in host.boot()
    assert "tsc=reliable" in host.boot()
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    call(restore.main, host)
    assert "tsc=reliable" not in read(host, CONFIG)


def test_a_kernel_whose_entry_was_made_without_us(tmp_path: Path, call: Call) -> None:
    """As on RHEL when kernel-install copies the running kernel's command line before the reboot."""
    host = rhel(tmp_path, 9)
    call(clocksource.main, host, tsc_reliable="enabled")
    version = "5.14.0-570.el9.x86_64"
    for path in (f"boot/vmlinuz-{version}", f"boot/initramfs-{version}.img"):
        write(host, path, "x")
    write(
        host,
        f"boot/loader/entries/0123-{version}.conf",
        bls_entry(version, "root=UUID=d6ab2e6a-0001-4cd9-9f4f-1f0ac0ffee00 ro"),
    )
    result = call(clocksource.main, host, check=True, tsc_reliable="enabled")
    assert result["actions"][0]["before"] == {"argument": "tsc=reliable", "lacking": [version]}
    assert call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    assert host.boot().endswith("tsc=reliable")
    call(restore.main, host)
    assert not any(b"tsc=reliable" in content for content in everything(host).values())


@pytest.mark.parametrize("wanted", ["tune", "restore"])
def test_a_run_that_died_before_update_grub(tmp_path: Path, call: Call, wanted: str) -> None:
    host = debian(tmp_path)
    before, old = everything(host), read(host, CONFIG)
    call(clocksource.main, host, tsc_reliable="enabled")
    write(host, CONFIG, old)  # the drop-in is there, GRUB never saw it
    write(host, RECORD, '{"version": 1, "arguments": {"tsc": "tsc=reliable"}, "before": {}}')
    if wanted == "tune":
        result = call(clocksource.main, host, tsc_reliable="enabled")
        assert result["actions"][0]["before"] == {"argument": "tsc=reliable", "unfinished": True}
        assert "tsc=reliable" in host.boot()
    call(restore.main, host)
    assert everything(host) == before


@pytest.mark.parametrize("wanted", ["tune", "restore"])
def test_a_restore_that_died_before_update_grub(tmp_path: Path, call: Call, wanted: str) -> None:
    host = debian(tmp_path)
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    (tmp_path / DROP_IN).unlink()
    write(host, RECORD, '{"version": 1, "arguments": {}, "before": {"tsc": ["tsc=reliable"]}}')
    if wanted == "tune":
        assert call(clocksource.main, host, tsc_reliable="enabled")["changed"]
        assert "tsc=reliable" in host.boot()
    call(restore.main, host)
    assert everything(host) == before


def test_a_drop_in_that_somebody_edited_is_left_alone(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    write(host, DROP_IN, read(host, DROP_IN) + 'GRUB_TIMEOUT="9"\n')
    before = everything(host)
    failed = call(restore.main, host)
    assert failed["failed"]
    assert "99-nearmetal.cfg was changed by somebody" in failed["msg"]
    assert everything(host) == before


def test_an_argument_that_somebody_took_out_again(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    before = everything(host)
    call(clocksource.main, host, tsc_reliable="enabled")
    for path, content in before.items():
        if path.startswith(("boot/loader", "etc/kernel")):
            (tmp_path / path).write_bytes(content)
    call(restore.main, host)
    assert everything(host) == before


FAILURES = {
    "the generator fails": ("usr/sbin/grub-mkconfig", "#!/bin/sh\necho no space >&2\nexit 1\n", "no space"),
    "the generator makes half a file": (
        "usr/sbin/grub-mkconfig",
        "#!/bin/sh\necho '### BEGIN /etc/grub.d/10_linux ###'\necho 'menuentry x {'\n",
        "no entry for Linux",
    ),
    "the check finds an error": ("usr/sbin/grub-script-check", "#!/bin/sh\nexit 1\n", "grub-script-check"),
    "a kernel is missing": ("boot/vmlinuz-6.1.0-28-cloud-amd64", None, "no entry for Linux"),
    "an initrd is missing": ("boot/initrd.img-6.1.0-28-cloud-amd64", None, "initrd.img-6.1.0-28"),
    "the root disk is another": ("etc/stand-in-root-device", "UUID=0000", "which no disk has"),
    "somebody has the last word": (
        "etc/default/grub.d/zz-last.cfg",
        'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n',
        "sorts after nearmetal's",
    ),
    "init gets what follows": ("etc/default/grub.d/60-init.cfg", 'GRUB_CMDLINE_LINUX="-- x"\n', "after a --"),
    "the line is full": (
        "etc/default/grub.d/60-long.cfg",
        f'GRUB_CMDLINE_LINUX_DEFAULT="{"x" * 1950}"\n',
        "bytes too long",
    ),
}


@pytest.mark.parametrize("earlier", [None, {"nodes": "hidden", "allow_hidden_nodes": True}])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_write_leaves_the_old_files(name: str, earlier: Any, tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    assert not earlier or call(tune.main, host, concerns={"numa": earlier})["changed"]
    path, text, says = FAILURES[name]
    if text is None:
        (tmp_path / path).unlink()
    else:
        write(host, path, text)
    before = everything(host)
    failed = call(tune.main, host, concerns={"clocksource": {"source": "hpet", "tsc_reliable": "enabled"}})
    assert failed["failed"]
    assert says in failed["errors"]["clocksource"]
    assert everything(host) == before
    assert failed["reboot_required"] is False


def test_arguments_are_taken_back_if_another_part_of_the_concern_fails(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    before = everything(host)
    host.moods["/sys/devices/system/clocksource/clocksource0/current_clocksource"] = "EIO"
    failed = call(clocksource.main, host, source="hpet", tsc_reliable="enabled")
    assert "EIO" in failed["errors"]["clocksource"]
    assert everything(host) == before


def test_a_full_boot_partition(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    host = debian(tmp_path)
    before = everything(host)
    fill(monkeypatch, "/boot")
    failed = call(clocksource.main, host, tsc_reliable="enabled")
    assert "no space left" in failed["errors"]["clocksource"]
    assert everything(host) == before


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere.cfg"))
    path.symlink_to("elsewhere.cfg")


def _large(path: Path) -> None:
    with path.open("a") as stream:
        stream.writelines(["# an entry of many\n"] * 100_000)


@pytest.mark.parametrize("change", [_linked, _large], ids=["linked", "large"])
def test_a_configuration_that_is_a_link_or_large_is_written_again(
    change: Callable[[Path], None], tmp_path: Path, call: Call
) -> None:
    """It was mistaken for our file, and the operator was advised to move it away: the host would not have booted."""
    host = debian(tmp_path)
    change(tmp_path / "boot/grub/grub.cfg")
    assert not call(clocksource.main, host, tsc_reliable="enabled").get("failed")
    assert "tsc=reliable" in read(host, "boot/grub/grub.cfg")


def test_an_efi_stub_is_never_written(tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    stub = read(host, "boot/efi/EFI/redhat/grub.cfg")
    call(clocksource.main, host, tsc_reliable="enabled")
    assert read(host, "boot/efi/EFI/redhat/grub.cfg") == stub
    assert read(host, "etc/kernel/cmdline").endswith(" tsc=reliable\n")


def test_a_foreign_line_without_its_newline_stays_so(tmp_path: Path, call: Call) -> None:
    host = amazon_2(tmp_path)
    before = read(host, "etc/default/grub")
    assert not before.endswith("\n")
    call(clocksource.main, host, tsc_reliable="enabled")
    assert read(host, "etc/default/grub").startswith(before + "\n# BEGIN nearmetal.ec2")
    call(restore.main, host)
    assert read(host, "etc/default/grub") == before


def test_a_foreign_line_in_our_block_stays(tmp_path: Path, call: Call) -> None:
    host = amazon_2(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    text = read(host, "etc/default/grub")
    foreign_line = 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT audit=1"\n'
    write(host, "etc/default/grub", text.replace("# END", foreign_line + "# END"))
    before = everything(host)
    failed = call(tune.main, host, concerns={"clocksource": {"tsc_reliable": "kernel"}})
    assert "was changed by somebody: move the change below the block" in failed["msg"]
    assert call(restore.main, host)["failed"]
    assert everything(host) == before
    write(host, "etc/default/grub", text + foreign_line)
    call(restore.main, host)
    assert "audit=1" in host.boot()
    assert "tsc=reliable" not in host.boot()


@pytest.mark.parametrize(("root", "name"), [("LABEL=/", r"\x2f"), ("LABEL=a+b@c", "a+b@c"), ("PARTLABEL=é~", r"é\x7e")])
def test_a_label_is_as_udev_writes_it(tmp_path: Path, call: Call, root: str, name: str) -> None:
    host = debian(tmp_path)
    write(host, "etc/stand-in-root-device", root)
    folder = tmp_path / "dev/disk" / ("by-label" if root.startswith("LABEL") else "by-partlabel")
    folder.mkdir(parents=True)
    (folder / name).touch()
    call(clocksource.main, host, tsc_reliable="enabled")
    assert host.boot().endswith("tsc=reliable")
    (folder / name).rename(folder / "another")
    assert "which no disk has" in call(restore.main, host)["msg"]


STRANGERS = {
    "zipl": ({"/etc/zipl.conf": "parameters=x\n"}, "zipl: tsc=reliable"),
    "extlinux": ({"/boot/extlinux/extlinux.conf": "append ro\n"}, "/boot/extlinux/extlinux.conf: tsc=reliable"),
    "systemd-boot": ({"/boot/loader/entries/a.conf": "options x\n"}, "/etc/kernel/cmdline"),
    "ostree": ({"/run/ostree-booted": ""}, "rpm-ostree kargs --append=tsc=reliable"),
    "bottlerocket": ({"/etc/os-release": "ID=bottlerocket\n"}, "apiclient: tsc=reliable"),
    "nothing known": ({}, "in your boot loader: tsc=reliable"),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_other_boot_loaders_are_refused_with_the_line_to_add(name: str, tmp_path: Path, call: Call) -> None:
    files, says = STRANGERS[name]
    host = FakeKernel(tmp_path, {**files_of("metal"), **files})
    before = everything(host)
    result = call(clocksource.main, host, tsc_reliable="enabled")
    assert (changes(result), statuses(result)["tsc_reliable"]) == ([], "refused")
    assert says in result["findings"][0]["reason"]
    assert everything(host) == before


def test_restore_works_without_grubs_generator(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    shutil.rmtree(tmp_path / "usr")
    before = everything(host)
    failed = call(restore.main, host)
    assert "boot loader" in failed["msg"]
    assert everything(host) == before


HOSTILE = {
    "empty": "",
    "a list": "[]",
    "no arguments": '{"version": 1}',
    "newer": '{"version": 2, "arguments": {}}',
    "a shell's": '{"version": 1, "arguments": {"tsc": "tsc=$(id)"}}',
    "a line": '{"version": 1, "arguments": {"tsc": "tsc=a\\nGRUB_X=y"}}',
    "a name": '{"version": 1, "arguments": {"../tsc": "tsc=reliable"}}',
    "a number": '{"version": 1, "arguments": {"tsc": 5}}',
    "deep": "[" * 60000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_record(name: str, tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    (tmp_path / "var/lib/nearmetal").mkdir(mode=0o700)
    write(host, RECORD, HOSTILE[name])
    before = everything(host)
    failed = call(clocksource.main, host, tsc_reliable="enabled")
    assert failed["failed"]
    assert "boot_arguments.json" in failed["msg"]
    assert everything(host) == before


def test_the_line_that_is_booted_is_the_one_that_the_image_brought(tmp_path: Path) -> None:
    assert debian(tmp_path).boot().strip().endswith(FOREIGN)
