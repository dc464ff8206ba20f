# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of kernels, which compare as numbers."""

from __future__ import annotations

from typing import Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import kernel_release


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
