# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other formats, with texts as real machines write them."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import (
    clocksource,
    cmdline,
    cpuinfo,
    kernel_log,
    kernel_release,
    meminfo,
    os_release,
)
from hypothesis import given
from hypothesis import strategies as st

X86 = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) CPU E5-2666 v3 @ 2.90GHz
flags\t\t: fpu tsc constant_tsc hypervisor lm

processor\t: 1
vendor_id\t: Other
flags\t\t: fpu
"""
ARM64 = """processor\t: 0
Features\t: fp asimd atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd40

processor\t: 1
"""


def test_cpuinfo_of_x86_is_its_first_processor() -> None:
    found = cpuinfo.parse(X86)
    assert (found.vendor, found.model) == ("GenuineIntel", "Intel(R) Xeon(R) CPU E5-2666 v3 @ 2.90GHz")
    assert found.flags == {"fpu", "tsc", "constant_tsc", "hypervisor", "lm"}
    assert (found.x86, found.arm64, found.implementer) == (True, False, None)


def test_cpuinfo_of_arm64_has_no_vendor_and_no_model() -> None:
    found = cpuinfo.parse(ARM64)
    assert (found.vendor, found.model) == (None, None)
    assert (found.implementer, found.part) == (0x41, 0xD40)
    assert found.flags == {"fp", "asimd", "atomics"}
    assert (found.x86, found.arm64) == (False, True)


def test_cpuinfo_that_is_cut_within_the_first_processor_keeps_what_was_read() -> None:
    assert cpuinfo.parse(X86[:60]).vendor == "GenuineIntel"
    assert cpuinfo.parse(X86[:60]).flags is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("root=/dev/sda1 ro quiet\n", ("root=/dev/sda1", "ro", "quiet")),
        ("console=tty0 console=ttyS0,115200n8", ("console=tty0", "console=ttyS0,115200n8")),
        ('a="b c" "d=e f" g', ('a="b c"', '"d=e f"', "g")),
        ('open="to the end\n', ('open="to the end',)),
        ("  \n", ()),
    ],
)
def test_tokens_keep_order_duplicates_and_quotes(text: str, expected: Tuple[str, ...]) -> None:
    assert cmdline.tokens(text) == expected


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters='"'), min_size=1, max_size=20)
QUOTED = st.tuples(WORD, st.text(st.sampled_from("ab ="), max_size=10)).map(lambda pair: '{}="{}"'.format(*pair))


@given(words=st.lists(st.one_of(WORD, QUOTED), max_size=20))
def test_joined_tokens_are_the_tokens_again(words: "list[str]") -> None:
    assert cmdline.tokens(" ".join(words) + "\n") == tuple(words)


@pytest.mark.parametrize(
    ("token", "name", "value"),
    [
        ("quiet", "quiet", None),
        ("nvme_core.io_timeout=4294967295", "nvme_core.io_timeout", "4294967295"),
        ("empty=", "empty", ""),
        ("dyndbg=a=b", "dyndbg", "a=b"),
        ('a="b c"', "a", "b c"),
        ('"d=e f"', "d", "e f"),
        ('"alone"', "alone", None),
    ],
)
def test_a_token_is_name_and_value(token: str, name: str, value: Optional[str]) -> None:
    assert cmdline.split(token) == (name, value)


def test_values_end_where_arguments_of_init_begin() -> None:
    line = cmdline.tokens("tsc=reliable nvme-core.io_timeout=1 tsc=unstable -- tsc=nowatchdog")
    assert cmdline.values(line, "tsc") == ("reliable", "unstable")
    assert cmdline.values(line, "nvme_core.io_timeout") == ("1",)


@pytest.mark.parametrize(
    ("text", "version", "build"),
    [
        ("4.14.355-277.647.amzn2.x86_64\n", (4, 14, 355), (277, 647)),
        ("6.1.94-99.176.amzn2023.aarch64", (6, 1, 94), (99, 176)),
        ("4.18.0-240.1.1.el8_3.x86_64", (4, 18, 0), (240, 1, 1)),
        ("5.4.0-1025-aws", (5, 4, 0), (1025,)),
        ("4.12.14-122.116.1-default", (4, 12, 14), (122, 116, 1)),
        ("6.12-rc1", (6, 12, 0), ()),
        ("3.10", (3, 10, 0), ()),
    ],
)
def test_releases_compare_as_numbers(text: str, version: Tuple[int, ...], build: Tuple[int, ...]) -> None:
    assert kernel_release.parse(text) == (version, build)


@pytest.mark.parametrize("text", ["", "linux", "6", "v6.1", "²·1"])
def test_malformed_releases(text: str) -> None:
    with pytest.raises(NearmetalError, match="kernel release"):
        kernel_release.parse(text)


def test_os_release() -> None:
    text = """# comment
NAME="Amazon Linux"
ID='amzn'
VERSION_ID="2"
VERSION_ID=2023
PRETTY="a \\"b\\" \\$c"
bad line
"""
    found = os_release.parse(text)
    assert found == {"NAME": "Amazon Linux", "ID": "amzn", "VERSION_ID": "2023", "PRETTY": 'a "b" $c'}


def test_meminfo_is_in_bytes_where_the_file_says_kb() -> None:
    text = "MemTotal:       16384 kB\nActive(anon):       8 kB\nHugePages_Total:       3\nbroken\n"
    assert meminfo.parse(text) == {"MemTotal": 16384 * 1024, "Active(anon)": 8192, "HugePages_Total": 3}


def test_meminfo_of_a_node() -> None:
    assert meminfo.parse("Node 33 MemTotal:       4 kB\nNode 33 HugePages_Free:      0\n")["MemTotal"] == 4096


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("xen tsc hpet acpi_pm \n", ("xen", "tsc", "hpet", "acpi_pm")),
        ("tsc kvm-clock acpi_pm \n", ("tsc", "kvm-clock", "acpi_pm")),
        ("arch_sys_counter \n", ("arch_sys_counter",)),
        ("\n", ()),
    ],
)
def test_the_blank_after_the_last_clock_source_is_no_name(text: str, expected: Tuple[str, ...]) -> None:
    assert clocksource.available(text) == expected


@pytest.mark.parametrize(("text", "name"), [("tsc\n", "tsc"), ("", None), ("a b", None), ("../etc", None)])
def test_the_current_clock_source_is_one_name_or_unknown(text: str, name: Optional[str]) -> None:
    assert clocksource.current(text) == name


@pytest.mark.parametrize(
    "line",
    [
        "tsc: Marking TSC unstable due to clocksource watchdog",
        "Marking TSC unstable due to check_tsc_sync_source failed",
        "clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable",
        "Clocksource tsc unstable (delta = 6824818792 ns).",
    ],
)
@pytest.mark.parametrize(
    "prefix",
    ["", "[   12.345678] ", "<4>[   12.345678] ", "4,123,12345678,-;", "[    1.2][   T1] ", "[   12.345678] kernel: "],
)
def test_each_wording_against_the_tsc_is_found_without_its_prefix(prefix: str, line: str) -> None:
    log = "6,1,0,-;Linux version 5.10\n" + (prefix + line + "\n") * 2
    assert kernel_log.tsc_unstable_marks(log) == (line,)


def test_a_log_without_warnings_has_no_marks() -> None:
    log = "tsc: Refined TSC clocksource calibration: 2999.998 MHz\nclocksource: Switched to clocksource tsc\n"
    assert kernel_log.tsc_unstable_marks(log) == ()
    assert kernel_log.tsc_unstable_marks("Marking clocksource 'hpet' as unstable") == ()


def test_switches_are_reported_in_order() -> None:
    log = "[ 0.1] Switching to clocksource xen\n6,9,2,-;clocksource: Switched to clocksource tsc\n SUBSYSTEM=cpu\n"
    assert kernel_log.clocksource_switches(log) == ("xen", "tsc")


def test_marks_are_few_and_printable() -> None:
    log = "".join("Marking TSC unstable due to \x1b[31m{}{}\n".format(number, "x" * 500) for number in range(50))
    marks = kernel_log.tsc_unstable_marks(log)
    assert len(marks) == kernel_log.MAX_MARKS
    assert all(mark.isprintable() and len(mark) <= kernel_log.MAX_MARK_LENGTH for mark in marks)


@pytest.mark.parametrize(("text", "number"), [("6,339,5140900,-;x", 339), ("6,0,0,-;x", 0), ("[ 0.0] x", 0), ("", 0)])
def test_the_first_record_says_whether_the_ring_lost_the_boot(text: str, number: int) -> None:
    assert kernel_log.first_sequence(text) == number
