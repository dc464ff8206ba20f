# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lever of affinities: which interrupts may come back with the CPUs that they went with."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.network import Affinity

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of


@pytest.mark.parametrize(
    ("names", "element", "returns"),
    [
        # igb gives a queue one interrupt or one for each direction, by their number.
        (("ens5-TxRx-0", "ens5-rx-1"), "0", True),
        (("ens5-TxRx-0", "ens5-rx-1"), "rx-0", False),
        (("ens5-rx-0", "ens5-tx-0", "ens5-rx-1", "ens5-tx-1"), "1", False),
        # An interface that is down has none.
        ((), "tx-1", True),
        (("ens5-TxRx-0",), "7", False),
    ],
)
def test_an_interrupt_under_another_name_does_not_come_back(
    names: "tuple[str, ...]", element: str, returns: bool, tmp_path: Path
) -> None:
    lines = [f"{number:4}:  0  0  0  0   PCI-MSI {number}-edge      {name}" for number, name in enumerate(names, 25)]
    table = "\n".join(["     CPU0 CPU1 CPU2 CPU3", *lines]) + "\n"
    host = FakeKernel(tmp_path, files_of("nitro_amd", {"/proc/interrupts": table}))
    assert Affinity("network.affinity").at(host, "0000:00:05.0").may_return(element) is returns


@pytest.mark.parametrize("label", ["²", "1" * 5000, "rx-²", "one"])
def test_a_label_that_is_no_queue_is_refused(label: str) -> None:
    with pytest.raises(NearmetalError, match="isn't a queue"):
        Affinity("network.affinity").check("0000:00:05.0", {label: "0"})
