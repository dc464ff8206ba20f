# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check: until when distributions are supported. Data. PRIVATE to the collection."""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

# ID and VERSION_ID of os-release (or its beginning, up to a dot) → the last day of its public support, without
# extensions that cost extra.
END_OF_LIFE: Mapping[Tuple[str, str], str] = {
    ("amzn", "2018"): "2023-12-31",
    ("amzn", "2"): "2026-06-30",
    ("amzn", "2023"): "2029-06-30",
    ("centos", "6"): "2020-11-30",
    ("centos", "7"): "2024-06-30",
    ("centos", "8"): "2024-05-31",
    ("centos", "9"): "2027-05-31",
    ("centos", "10"): "2030-05-31",
    ("rhel", "6"): "2020-11-30",
    ("rhel", "7"): "2024-06-30",
    ("rhel", "8"): "2029-05-31",
    ("rhel", "9"): "2032-05-31",
    ("rhel", "10"): "2035-05-31",
    ("rocky", "8"): "2029-05-31",
    ("rocky", "9"): "2032-05-31",
    ("rocky", "10"): "2035-05-31",
    ("almalinux", "8"): "2029-05-31",
    ("almalinux", "9"): "2032-05-31",
    ("almalinux", "10"): "2035-05-31",
    ("ol", "7"): "2024-12-31",
    ("ol", "8"): "2029-07-31",
    ("ol", "9"): "2032-06-30",
    ("ol", "10"): "2035-06-30",
    ("ubuntu", "14.04"): "2019-04-30",
    ("ubuntu", "16.04"): "2021-04-30",
    ("ubuntu", "18.04"): "2023-05-31",
    ("ubuntu", "20.04"): "2025-05-31",
    ("ubuntu", "22.04"): "2027-04-30",
    ("ubuntu", "24.04"): "2029-04-30",
    ("ubuntu", "26.04"): "2031-04-30",
    ("debian", "9"): "2022-06-30",
    ("debian", "10"): "2024-06-30",
    ("debian", "11"): "2026-08-31",
    ("debian", "12"): "2028-06-30",
    ("debian", "13"): "2030-06-30",
    ("sles", "12.5"): "2024-10-31",
    ("sles", "15.5"): "2024-12-31",
    ("sles", "15.6"): "2025-12-31",
    ("sles", "15.7"): "2031-07-31",
    ("sles", "16.0"): "2027-11-30",
}


def end_of_life(name: str, version: str) -> Optional[str]:
    """The last day of public support, 2029-06-30; None when it isn't known."""
    return END_OF_LIFE.get((name, version)) or END_OF_LIFE.get((name, version.split(".", maxsplit=1)[0]))
