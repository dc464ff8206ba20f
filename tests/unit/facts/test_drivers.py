# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which network drivers a host has, on small trees of files."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.drivers import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.json_data import json_data

RELEASE = "5.10.226-214.880.amzn2.x86_64"


def tree(root: Path, files: Dict[str, str], links: Dict[str, str]) -> Host:
    """A host of files and symbolic links."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for path, to in links.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(to)
    return Host(str(root))


MODULES = f"lib/modules/{RELEASE}"
CASES = {
    "ena as a module, compressed": (
        {f"{MODULES}/modules.dep": "kernel/drivers/net/ethernet/amazon/ena/ena.ko.xz:\nkernel/xfs.ko.xz: x.ko\n"},
        ("ena",),
    ),
    "both, one built in": (
        {
            f"{MODULES}/modules.dep": "kernel/drivers/net/ethernet/intel/ixgbevf/ixgbevf.ko:\n",
            f"{MODULES}/modules.builtin": "kernel/drivers/net/ethernet/amazon/ena/ena.ko\n",
        },
        ("ena", "ixgbevf"),
    ),
    "neither": ({f"{MODULES}/modules.dep": "kernel/drivers/net/ethernet/enable/enabler.ko:\n"}, ()),
    "loaded from elsewhere": (
        {f"{MODULES}/modules.dep": "kernel/fs/xfs/xfs.ko:\n", "sys/module/ena/version": "2.17.0\n"},
        ("ena",),
    ),
    "no list, one loaded": ({"sys/module/ixgbevf/version": "4.1\n"}, ("ixgbevf",)),
    "nothing to be seen": ({}, None),
    "a release that is a path": ({"proc/sys/kernel/osrelease": "../../etc\n"}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_drivers_that_the_image_has(tmp_path: Path, name: str) -> None:
    files, wanted = CASES[name]
    found = observe(tree(tmp_path, {"proc/sys/kernel/osrelease": RELEASE + "\n", **files}, {})).available
    expected: Optional[Tuple[str, ...]] = wanted
    assert found == expected


def test_the_drivers_in_use(tmp_path: Path) -> None:
    links = {
        "sys/class/net/eth0/device/driver": "../../../bus/xen/drivers/vif",
        "sys/class/net/eth1/device/driver": "../../../../bus/pci/drivers/ena",
    }
    host = tree(tmp_path, {"sys/class/net/lo/mtu": "65536\n"}, links)
    assert observe(host).in_use == ("ena", "vif")
    assert json_data(observe(host)) == {"in_use": ["ena", "vif"], "available": None}
