# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of Xen's block front end, built as the kernels' own format strings build them."""

from __future__ import annotations

from typing import Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import blkfront
from hypothesis import given
from hypothesis import strategies as st

DISKS = st.sampled_from(["xvda", "xvdb1", "xvdba", "sda1", "hdc"])
FLUSHES = st.sampled_from(["barrier", "flush diskcache", "barrier or flush"])
# journalctl --dmesg --output=short-monotonic --no-hostname, which is Ubuntu's /var/log/dmesg
UBUNTU = "[    1.802113] kernel: "
PREFIXES = st.sampled_from(
    ["", "[    1.802113] ", "<6>[    1.802113] ", "6,412,1802113,-;", "[    1.8][   T51] ", UBUNTU]
)
ANSWERS = st.booleans()


def word(on: bool) -> str:
    return "enabled" if on else "disabled"


@given(prefix=PREFIXES, disk=DISKS, flush=FLUSHES, works=ANSWERS)
def test_kernels_up_to_3_7_log_no_grants(prefix: str, disk: str, flush: str, works: bool) -> None:
    line = f"{prefix}blkfront: {disk}: {flush}: {word(works)}\n"
    assert blkfront.agreements(line) == {disk: blkfront.Agreement(disk, None, None)}


@given(prefix=PREFIXES, disk=DISKS, flush=FLUSHES, works=ANSWERS, persistent=ANSWERS)
def test_3_8_ends_in_a_blank_without_grants(prefix: str, disk: str, flush: str, works: bool, persistent: bool) -> None:
    using = "using persistent grants" if persistent else ""
    line = f"{prefix}blkfront: {disk}: {flush}: {word(works)} {using}\n"
    assert blkfront.agreements(line) == {disk: blkfront.Agreement(disk, persistent, None)}


@given(prefix=PREFIXES, disk=DISKS, flush=FLUSHES, works=ANSWERS, persistent=ANSWERS, indirect=ANSWERS)
def test_3_11_has_fields(prefix: str, disk: str, flush: str, works: bool, persistent: bool, indirect: bool) -> None:
    line = (
        f"{prefix}blkfront: {disk}: {flush}: {word(works)}; persistent grants: {word(persistent)};"
        f" indirect descriptors: {word(indirect)};\n"
    )
    assert blkfront.agreements(line) == {disk: blkfront.Agreement(disk, persistent, indirect)}


@given(disk=DISKS, flush=FLUSHES, persistent=ANSWERS, indirect=ANSWERS, bounce=ANSWERS)
def test_since_xsa_403_the_last_word_has_a_semicolon_only_when_disabled(
    disk: str, flush: str, persistent: bool, indirect: bool, bounce: bool
) -> None:
    line = (
        f"blkfront: {disk}: {flush}: enabled; persistent grants: {word(persistent)};"
        f" indirect descriptors: {word(indirect)}; bounce buffer: {'enabled' if bounce else 'disabled;'}\n"
    )
    assert blkfront.agreements(line) == {disk: blkfront.Agreement(disk, persistent, indirect)}


@pytest.mark.parametrize(
    ("line", "persistent", "indirect"),
    [
        ("blkfront: xvdb: flush diskcache: enabled; ; indirect descriptors: enabled;", None, True),
        ("blkfront: xvdb flush diskcache: enabled; ; indirect descriptors", None, None),
        ("blkfront: xvdb barrier or flush: disabled; persistent grants: enabled", True, None),
    ],
)
def test_a_blank_field_is_unknown(line: str, persistent: Optional[bool], indirect: Optional[bool]) -> None:
    found = blkfront.agreements(line)["xvdb"]
    assert (found.persistent_grants, found.indirect_descriptors) == (persistent, indirect)


def test_a_disk_that_is_attached_again_counts_as_it_is_now() -> None:
    line = "blkfront: xvdf: barrier or flush: disabled; persistent grants: {}; indirect descriptors: enabled;\n"
    found = blkfront.agreements(line.format("enabled") + line.format("disabled"))
    assert found["xvdf"].persistent_grants is False


@pytest.mark.parametrize(
    "line",
    [
        "Blkfront and the Xen platform PCI driver have been compiled for this kernel: unplug emulated disks.",
        "blkfront device/vbd/51712 num-ring-pages 1 nr_ents 32.",
        "someone: blkfront: xvda: barrier: enabled",
    ],
)
def test_lines_that_are_not_about_a_disk(line: str) -> None:
    assert blkfront.agreements(line) == {}


def test_queues_that_the_driver_did_not_take() -> None:
    log = "6,1,1,-;xen_blkfront: Invalid max_queues (4), will use default max: 2.\n"
    assert blkfront.refused_queues(log) == (4, 2)
    assert blkfront.refused_queues("") is None
