# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/interrupts and the names in it, in each form that kernels and drivers write."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import interrupts, irq_name

HEAD = "           CPU0       CPU1       CPU2       CPU3\n"


def interrupt_of(line: str, head: str = HEAD) -> interrupts.Interrupt:
    (found,) = interrupts.parse(head + line + "\n").lines
    return found


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (" 74:  11969  3936  0  0  xen-pirq-msi-x     ens3-TxRx-0", ("ens3-TxRx-0",)),
        (" 76:  23  0  15  0  xen-pirq    -msi-x     ens3", ("ens3",)),
        ("114:  749775929  0  0  0  xen-dyn-event     eth0", ("eth0",)),
        (" 59:  1  2  3  4   xen-dyn    -event     vif0-q0-tx", ("vif0-q0-tx",)),
        (" 27:  176  279190  0  0   PCI-MSI-edge      ens5-Tx-Rx-0", ("ens5-Tx-Rx-0",)),
        (
            " 28:  1775400  80  0  0   PCI-MSI 81920-edge      ena-mgmnt@pci:0000:00:05.0",
            ("ena-mgmnt@pci:0000:00:05.0",),
        ),
        (" 30:  1  1  1  1  PCI-MSIX-0000:00:05.0   1-edge      eth0-Tx-Rx-0", ("eth0-Tx-Rx-0",)),
        (" 38:  1  2  3  4  ITS-MSI   2 Edge      ens5-Tx-Rx-0", ("ens5-Tx-Rx-0",)),
        (" 11:  1  2  3  4   IO-APIC  11-fasteoi   uhci_hcd:usb1, ens3", ("uhci_hcd:usb1", "ens3")),
        # ethtool -L with fewer queues leaves the vector without a name.
        (" 31:  9  0  0  0   PCI-MSIX-0000:00:05.0   2-edge", ()),
        (" 31:  9  0  0  0   PCI-MSI 81922-edge", ()),
        (" 39:  9  0  0  0   ITS-MSI   3 Edge", ()),
        (" 77:  9  0  0  0   xen-dyn-event", ()),
        ("ERR:          0", ()),
    ],
)
def test_a_name_is_the_last_word_of_a_line_and_a_vector_may_have_none(line: str, names: Tuple[str, ...]) -> None:
    assert interrupt_of(line).names == names


def test_columns_are_the_online_cpus() -> None:
    found = interrupts.parse("            CPU0       CPU2       CPU5\n 24:  1  2  3  PCI-MSI 1-edge  eth0\n")
    assert found.cpus == (0, 2, 5)
    assert found.lines[0].counters == (1, 2, 3)


def test_counters_that_fill_their_column_stay_apart() -> None:
    assert interrupt_of("LOC: 276880808012345678901234567890  7   Local timer interrupts").counters == (
        2768808080,
        1234567890,
        1234567890,
        7,
    )
    assert interrupt_of("IPI0:2768808080 1 2 3  Rescheduling interrupts").label == "IPI0"
    assert interrupt_of("IPI0:2768808080 1 2 3  Rescheduling interrupts").counters == (2768808080, 1, 2, 3)


def test_a_line_for_the_whole_machine_has_one_counter() -> None:
    assert (interrupt_of("ERR:          7").counters, interrupt_of("ERR:          7").number) == ((7,), -1)


def test_the_hardware_number_is_no_counter() -> None:
    found = interrupt_of(" 13:  1  2  3  4  5 Level  arch_timer")
    assert (found.number, found.counters, found.description) == (13, (1, 2, 3, 4), "5 Level arch_timer")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eth0-Tx-Rx-3", ("eth0", "both", 3)),
        ("ena-mgmnt@pci:0000:00:05.0", None),
        ("efa-comp0@pci:0000:00:1d.0", None),
        ("ens3-TxRx-1", ("ens3", "both", 1)),
        ("eth0:mbx", None),
        ("eth0:fdir-TxRx-0", None),
        ("i40e-0000:18:00.0:fdir-TxRx-0", None),
        ("i40e-0000:18:00.0:misc", None),
        ("i40e-eno1-TxRx-12", ("eno1", "both", 12)),
        ("ice-ens1f0-TxRx-0", ("ens1f0", "both", 0)),
        ("iavf-eth0-TxRx-2", ("eth0", "both", 2)),
        ("enp1s0-fp-4", ("enp1s0", "both", 4)),
        ("eth0-rx-0", ("eth0", "rx", 0)),
        ("eth0-tx-1", ("eth0", "tx", 1)),
        ("virtio0-input.3", ("virtio0", "rx", 3)),
        ("virtio0-output.3", ("virtio0", "tx", 3)),
        ("virtio0-config", None),
        ("virtio2-req.0", None),
        ("vif0-q1-rx", ("vif0", "rx", 1)),
        ("eth0-q0-tx", ("eth0", "tx", 0)),
        ("mlx5_comp7@pci:0000:08:00.0", ("0000:08:00.0", "both", 7)),
        ("mlx5_async0@pci:0000:08:00.0", None),
        ("mlx4-1@0000:08:00.0", ("0000:08:00.0", "both", 0)),
        ("mlx4-0@0000:08:00.0", None),
        ("mana_q2@pci:7870:00:00.0", ("7870:00:00.0", "both", 2)),
        ("eth0", None),
        ("nvme0q1", None),
        ("blkif", None),
        ("eth0-Tx-Rx-99999999", None),
        # An interface may have any name.
        ("my-TxRx-0-Tx-Rx-1", ("my-TxRx-0", "both", 1)),
    ],
)
def test_the_queue_that_a_name_means(name: str, expected: Optional[Tuple[str, str, int]]) -> None:
    found = irq_name.queue_of(name)
    assert (found and (found.device, found.kind, found.queue)) == expected
