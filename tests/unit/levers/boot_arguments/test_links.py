# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a boot loader that are symbolic links: a link stays one, or check mode says that it is in the way."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore

from tests.support.boot_trees import BootHost, amazon_2, debian, everything, rhel, systemd_boot

Call = Callable[..., Dict[str, Any]]
Tree = Callable[[Path], BootHost]


def linked(root: Path, path: str, kept: str = "boot/real") -> Path:
    """Move a file elsewhere, with a link in its place; returns the link."""
    link, file = root / path, root / kept / os.path.basename(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(link, file)
    link.symlink_to(os.path.relpath(file, link.parent))
    return link


@pytest.mark.parametrize(("tree", "path"), [(debian, "boot/grub/grub.cfg"), (amazon_2, "boot/grub2/grub.cfg")])
def test_a_configuration_behind_a_link_is_written_behind_it(tmp_path: Path, call: Call, tree: Tree, path: str) -> None:
    """GRUB may read the file behind the link by its own name, as from an EFI partition."""
    host = tree(tmp_path)
    link = linked(tmp_path, path)
    before, target = everything(host), os.readlink(link)
    assert call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    assert os.readlink(link) == target
    assert "tsc=reliable" in (link.parent / target).read_text()
    assert "tsc=reliable" in host.boot()
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    assert call(restore.main, host)["changed"]
    assert os.readlink(link) == target
    assert everything(host) == before


def rhel_9(root: Path) -> BootHost:
    return rhel(root, 9)


@pytest.mark.parametrize(
    ("tree", "pattern"),
    [
        (amazon_2, "etc/default/grub"),
        (rhel_9, "etc/kernel/cmdline"),
        (rhel_9, "boot/loader/entries/*.conf"),
        (systemd_boot, "boot/efi/loader/entries/*31*.conf"),
    ],
)
def test_a_link_in_the_way_is_named_in_check_mode_and_leaves_nothing(
    tmp_path: Path, call: Call, tree: Tree, pattern: str
) -> None:
    host = tree(tmp_path)
    (path,) = (str(found.relative_to(tmp_path)) for found in tmp_path.glob(pattern))
    linked(tmp_path, path)
    before = everything(host)
    sentence = f"clocksource.tsc_reliable: /{path} is a symbolic link, which nearmetal doesn't follow"
    assert sentence in call(clocksource.main, host, check=True, tsc_reliable="enabled")["msg"]
    assert sentence in call(clocksource.main, host, tsc_reliable="enabled")["msg"]
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert everything(host) == before


def test_a_link_to_nothing_is_no_configuration(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    config = tmp_path / "boot/grub/grub.cfg"
    config.unlink()
    config.symlink_to("../efi/grub.cfg")
    failed = call(clocksource.main, host, check=True, tsc_reliable="enabled")
    assert "/boot/efi/grub.cfg is missing: mount its file system" in failed["msg"]


def test_an_entry_of_a_run_that_failed_at_a_link_can_be_forgotten(tmp_path: Path, call: Call) -> None:
    """Versions before this one left it in the journal."""
    host = amazon_2(tmp_path)
    call(clocksource.main, host, tsc_reliable="enabled")
    journal = tmp_path / "var/lib/nearmetal/journal.json"
    entry = journal.read_bytes()
    call(restore.main, host)
    linked(tmp_path, "etc/default/grub")
    before = everything(host)
    journal.parent.mkdir()
    journal.write_bytes(entry)
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert everything(host) == before
