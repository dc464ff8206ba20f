# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of /etc/default/grub where no drop-ins are read: set and taken back to the byte, or refused by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.boot_arguments import swap
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore

from tests.support.boot_trees import BootHost, amazon_2, everything, rhel
from tests.unit.parse.test_shell_defaults import EDITED, LEFT, UNFINISHED

Call = Callable[..., Dict[str, Any]]
DEFAULTS = "etc/default/grub"


def with_defaults(host: BootHost, text: str) -> Dict[str, bytes]:
    """Give the host that file; everything on it."""
    place = Path(host.root) / DEFAULTS
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
    return everything(host)


@pytest.mark.parametrize("name", EDITED)
def test_our_arguments_are_added_to_known_forms_and_removed_again(name: str, tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    before = with_defaults(host, EDITED[name])
    assert call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    assert b" tsc=reliable" in (tmp_path / DEFAULTS).read_bytes()
    assert not call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    assert not call(restore.main, host).get("failed")
    assert everything(host) == before


@pytest.mark.parametrize("name", LEFT)
def test_a_line_of_an_unsupported_form_is_refused_and_named(name: str, tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    text, sentence = LEFT[name]
    before = with_defaults(host, text)
    result = call(clocksource.main, host, tsc_reliable="enabled")
    assert result["failed"]
    assert f"/etc/default/grub, {sentence}" in result["msg"]
    assert everything(host) == before


@pytest.mark.parametrize("name", LEFT)
def test_later_text_around_our_arguments_does_not_stop_restore(name: str, tmp_path: Path, call: Call) -> None:
    host = rhel(tmp_path, 9)
    before = with_defaults(host, 'GRUB_CMDLINE_LINUX="a=1"\n')
    assert call(clocksource.main, host, tsc_reliable="enabled")["changed"]
    text = LEFT[name][0]
    (tmp_path / DEFAULTS).write_text(text)
    assert not call(restore.main, host).get("failed")
    assert everything(host) == {**before, DEFAULTS: text.encode()}


@pytest.mark.parametrize("name", UNFINISHED)
def test_a_file_that_ends_before_our_line_is_refused_and_the_line_named(name: str, tmp_path: Path, call: Call) -> None:
    host = amazon_2(tmp_path)
    text, sentence = UNFINISHED[name]
    before = with_defaults(host, text)
    result = call(clocksource.main, host, tsc_reliable="enabled")
    assert result["failed"]
    assert f"/etc/default/grub, {sentence}" in result["msg"]
    assert everything(host) == before


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('GRUB_CMDLINE_LINUX="quiet -- init=/x"\n', "after a --, and the kernel passes what follows a -- to init"),
        ('GRUB_CMDLINE_LINUX="quiet\nsplash"\n', "on a line of its own"),
        ('GRUB_CMDLINE_LINUX="quiet"\nGRUB_CMDLINE_LINUX_DEFAULT="a=1\n"\n', "on a line of its own"),
    ],
)
def test_a_value_that_leaves_no_room_for_our_argument_is_refused_with_its_cause(
    text: str, cause: str, tmp_path: Path, call: Call
) -> None:
    host = amazon_2(tmp_path)
    before = with_defaults(host, text)
    result = call(clocksource.main, host, tsc_reliable="enabled")
    assert result["failed"]
    assert cause in result["msg"], result["msg"]
    assert "overrides" not in result["msg"]
    assert everything(host) == before


def test_an_unreadable_file_does_not_count_as_unchanged(tmp_path: Path) -> None:
    """Its kernel argument would be forgotten, and stay for ever."""
    host = rhel(tmp_path, 9)
    with_defaults(host, "GRUB_TIMEOUT=5\n")
    assert swap.is_unchanged(host, f"/{DEFAULTS}", "GRUB_TIMEOUT=5\n") is True
    assert swap.is_unchanged(host, f"/{DEFAULTS}", "GRUB_TIMEOUT=1\n") is False
    place = tmp_path / DEFAULTS
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")
    assert swap.is_unchanged(host, f"/{DEFAULTS}", "GRUB_TIMEOUT=5\n") is None
