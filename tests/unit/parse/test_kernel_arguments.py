# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one merge of kernel arguments, and the files that boot loaders keep them in."""

from __future__ import annotations

from typing import Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import boot_entry, boot_line, cmdline, grub_config
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.kernel_arguments import (
    Claim,
    agree,
    checked_tokens,
    in_force,
    merge,
    same_names,
    too_long,
    without,
)
from hypothesis import given
from hypothesis import strategies as st

FOREIGN = cmdline.tokens('root=UUID=a=b ro console=tty0 console=ttyS0,115200 dyndbg="file a b +p" quiet')
LONG = tuple(f"filler.option{number:04}=0123456789" for number in range(69))  # 2,000 characters


@pytest.mark.parametrize(
    ("foreign", "mine", "line"),
    [
        (
            FOREIGN,
            ("tsc=reliable",),
            'root=UUID=a=b ro console=tty0 console=ttyS0,115200 dyndbg="file a b +p" quiet tsc=reliable',
        ),
        ((), ("nosmt",), "nosmt"),
        (("ro", "--", "emergency"), ("nosmt",), "ro nosmt -- emergency"),
        (("numa=off",), ("numa=on",), "numa=off numa=on"),
        (LONG, ("nosmt",), " ".join(LONG) + " nosmt"),
    ],
    ids=["duplicates and quotes", "nothing there", "what init gets", "another value", "2,000 characters"],
)
def test_merge_keeps_foreign_arguments(foreign: Tuple[str, ...], mine: Tuple[str, ...], line: str) -> None:
    merged = merge(foreign, mine)
    assert " ".join(merged) == line
    assert in_force(merged, mine)
    assert without(merged, mine) == foreign


def test_a_foreign_argument_survives_one_of_nearmetal_with_the_same_text() -> None:
    assert without(("nosmt", "quiet", "nosmt"), ("nosmt",)) == ("nosmt", "quiet")


@pytest.mark.parametrize(
    ("line", "wanted", "answer"),
    [
        ("tsc=reliable", "tsc=reliable", True),
        ("tsc=reliable tsc=nowatchdog", "tsc=reliable", False),
        ("tsc=nowatchdog tsc=reliable", "tsc=reliable", True),
        ('tsc="reliable"', "tsc=reliable", True),
        ("intel-idle.max_cstate=1", "intel_idle.max_cstate=1", True),
        ("-- tsc=reliable", "tsc=reliable", False),
        ("nosmt=force", "nosmt", False),
        ("hugepages=4 hugepagesz=1G", "hugepagesz=1G hugepages=4", False),
        ("hugepages=9 hugepagesz=1G hugepages=4", "hugepagesz=1G hugepages=4", True),
        ("", "nosmt", False),
    ],
)
def test_the_last_argument_counts(line: str, wanted: str, answer: bool) -> None:
    assert in_force(cmdline.tokens(line), checked_tokens(wanted)) is answer


@pytest.mark.parametrize(
    "text", ["", 'a b"', "a=$(reboot)", "a;b", "a='b'", "--", "a  b", "a=b\n", "=x", "ä=1", "a=`id`"]
)
def test_a_line_that_a_shell_could_read_differently_is_never_edited(text: str) -> None:
    with pytest.raises(NearmetalError):
        checked_tokens(text)


def test_two_concerns_that_disagree_are_both_named() -> None:
    with pytest.raises(NearmetalError) as caught:
        agree([Claim("numa.balancing", "numa_balancing=disable"), Claim("hpc.numa", "numa-balancing=enable")])
    for part in ("numa.balancing", "numa_balancing=disable", "hpc.numa", "numa-balancing=enable"):
        assert part in str(caught.value)


def test_two_concerns_that_agree_get_it_once() -> None:
    assert agree([Claim("a.x", "nosmt"), Claim("b.y", "tsc=reliable"), Claim("c.z", "nosmt")]) == (
        "nosmt",
        "tsc=reliable",
    )


def test_a_command_line_that_the_kernel_would_cut_is_refused() -> None:
    assert len(" ".join(LONG)) == 2000
    assert too_long(None, (*LONG, "x" * 46)) == 0
    assert too_long(None, (*LONG, "x" * 47)) == 1
    assert too_long("/boot/vmlinuz", (*LONG, "x" * 46)) == len("BOOT_IMAGE=/boot/vmlinuz ")


def test_same_finds_every_argument_of_that_name() -> None:
    assert same_names(FOREIGN, ("console",)) == ("console=tty0", "console=ttyS0,115200")


TOKENS = st.lists(st.from_regex(r"[a-z_]{1,6}(=[a-zA-Z0-9,./=]{0,8})?", fullmatch=True), max_size=12).map(tuple)


@given(
    foreign=TOKENS,
    mine=st.lists(st.from_regex(r"[a-z]{2}=[a-z]{2}", fullmatch=True), max_size=4, unique=True).map(tuple),
)
def test_removing_our_arguments_leaves_the_earlier_ones(foreign: Tuple[str, ...], mine: Tuple[str, ...]) -> None:
    merged = merge(foreign, mine)
    assert without(merged, mine) == foreign
    assert all(in_force(merged, (token,)) for token in mine if [t[:2] for t in mine].count(token[:2]) == 1)


@given(line=st.text(st.characters(exclude_characters="\n-"), max_size=60), last=st.booleans())
def test_foreign_text_stays_to_the_byte(line: str, last: bool) -> None:
    ours_there = boot_line.append(line, ("hugepagesz=1G", "hugepages=4", "nosmt"))
    arguments = {"smt": ("nosmt",), "hugepages": ("hugepages=2", "hugepagesz=1G hugepages=4")}
    assert boot_line.foreign(ours_there, arguments, last=last) == line or '"' in line


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("ro nosmt quiet", "ro quiet"),
        ("nosmt  nosmt=force -- x", "nosmt=force -- x"),
        ("ro nosmt -- emergency", "ro -- emergency"),
        ("ro  quiet", "ro  quiet"),
    ],
)
def test_an_argument_of_nearmetal_that_somebody_moved(line: str, left: str) -> None:
    assert boot_line.foreign(line, {"nosmt": ("nosmt",)}, last=False) == left


def test_where_a_write_is_uncertain_only_the_last_argument_is_removed() -> None:
    assert boot_line.foreign("x=1 x=2", {"x": ("x=1",)}, last=True) == "x=1 x=2"
    assert boot_line.foreign("x=1 x=2", {"x": ("x=1", "x=2")}, last=True) == "x=1"


CONFIG = """
### BEGIN /etc/grub.d/10_linux ###
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' {
\tlinux\t/boot/vmlinuz-6.1.0-28-amd64 root=UUID=1 ro  console=tty0 quiet
\tinitrd\t/boot/early.cpio /boot/initrd.img-6.1.0-28-amd64
}
submenu 'Advanced' {
\tmenuentry 'Debian (Wiederherstellung)' $menuentry_id_option 'gnulinux-6.1.0-28-amd64-recovery-1' {
\t\tlinux\t/boot/vmlinuz-6.1.0-28-amd64 root=UUID=1 ro single
\t}
}
### END /etc/grub.d/10_linux ###
### BEGIN /etc/grub.d/40_custom ###
menuentry 'Mine' {
\tlinux /boot/mine root=/dev/sdz
}
### END /etc/grub.d/40_custom ###
"""


def test_entries_of_a_generated_configuration() -> None:
    first, recovery = grub_config.entries(CONFIG)
    assert first.kernel == "/boot/vmlinuz-6.1.0-28-amd64"
    assert first.arguments == ("root=UUID=1", "ro", "console=tty0", "quiet")
    assert first.initrds == ("/boot/early.cpio", "/boot/initrd.img-6.1.0-28-amd64")
    assert [first.recovery, recovery.recovery] == [False, True]
    assert grub_config.release(first.kernel) == "6.1.0-28-amd64"


def test_a_stub_on_an_efi_partition_is_known() -> None:
    assert grub_config.is_stub("search.fs_uuid 1 root\nset prefix=($root)'/grub2'\nconfigfile $prefix/grub.cfg\n")
    assert not grub_config.is_stub(CONFIG)


def test_entries_of_the_boot_loader_specification() -> None:
    entry = boot_entry.parse(
        "# a comment\ntitle RHEL (4.18)\nversion 4.18\nlinux /vmlinuz-4.18\noptions $kernelopts a=1\n"
    )
    variables = boot_entry.environment("# GRUB Environment Block\nkernelopts=root=UUID=x ro quiet\n########")
    assert entry["title"] == ("RHEL (4.18)",)
    assert boot_entry.arguments(entry["options"], variables) == ("root=UUID=x", "ro", "quiet", "a=1")
    assert boot_entry.arguments(("a $tuned_params b",), {}) == ("a", "b")
