# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The menu of GRUB 0.97: what of it is a kernel for Linux, and where its arguments are."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import grub_menu

FORMS = {
    "kernel /boot/vmlinuz-1 root=LABEL=/ ro": "root=LABEL=/ ro",
    "\tkernel\t\t(hd0,0)/boot/vmlinuz-1\troot=LABEL=/": "root=LABEL=/",
    "kernel=/boot/vmlinuz-1 root=LABEL=/": "root=LABEL=/",
    "kernel --type=linux /boot/vmlinuz-1 root=LABEL=/  ": "root=LABEL=/  ",
    "kernel /boot/vmlinuz-1": "",
    "kernel /boot/vmlinuz-1 root=LABEL=/\r": "root=LABEL=/",
}


@pytest.mark.parametrize("line", FORMS)
def test_the_arguments_of_a_kernel_line(line: str) -> None:
    text = f"default=0\ntitle one\nroot (hd0)\n{line}\ninitrd (hd0)/boot/initrd-1\n"
    (entry,) = grub_menu.entries(text)
    assert text[entry.span[0] : entry.span[1]] == FORMS[line]
    assert (entry.kernel, entry.initrds, entry.recovery) == ("/boot/vmlinuz-1", ("/boot/initrd-1",), False)


@pytest.mark.parametrize(
    "text",
    [
        "title Rescue\nkernel /vmlinuz root=/dev/xvda1\n",
        "title x (recovery mode)\nkernel /vmlinuz root=/dev/xvda1\n",
        "title x\nkernel /vmlinuz root=/dev/xvda1 single\n",
    ],
)
def test_an_entry_for_repairs(text: str) -> None:
    assert [entry.recovery for entry in grub_menu.entries(text)] == [True]


@pytest.mark.parametrize(
    "text",
    ["", "# kernel /vmlinuz root=/dev/xvda1\n", "title x\nchainloader +1\n", "title x\nkernel /boot/memtest86+.bin\n"],
)
def test_no_entry_for_linux(text: str) -> None:
    assert grub_menu.entries(text) == ()


def test_an_initrd_without_a_kernel_belongs_to_no_other_title() -> None:
    text = "title a\nkernel /vmlinuz root=/dev/xvda1\ntitle b\ninitrd /other\n"
    assert [entry.initrds for entry in grub_menu.entries(text)] == [()]
