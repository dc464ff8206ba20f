# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's own tools show every shape as its file describes it."""

from __future__ import annotations

import re

import pytest

from lab import shape
from lab.host import instance
from lab.shape import Shape

# The host classes. The shape of a single scenario is checked in that scenario.
SHAPES = ("default", "metal", "burstable", "hvm")
# Where the kernel shows a string that the firmware was given.
DMI = {
    ("bios", "vendor"): "bios_vendor",
    ("bios", "version"): "bios_version",
    ("system", "manufacturer"): "sys_vendor",
    ("system", "product"): "product_name",
    ("system", "uuid"): "product_uuid",
    ("board", "manufacturer"): "board_vendor",
    ("board", "asset"): "board_asset_tag",
    ("chassis", "manufacturer"): "chassis_vendor",
    ("chassis", "asset"): "chassis_asset_tag",
}
LOOK = """
lscpu
echo "memory $(free --mebi | awk '/^Mem:/ {print $2}')"
for file in /sys/class/dmi/id/*; do [ -f "$file" ] && echo "dmi $(basename "$file")=$(cat "$file")"; done
echo "available $(cat /sys/devices/system/clocksource/clocksource0/available_clocksource)"
echo "current $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
echo "cmdline $(cat /proc/cmdline)"
ip -brief address
systemctl is-system-running
"""


@pytest.fixture(scope="module", params=SHAPES)
def seen(request: pytest.FixtureRequest) -> tuple[Shape, str]:
    with instance.running(request.param) as host:
        return shape.load(request.param), host.run(LOOK)


def field(text: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}[: ]\s*(.*)$", text, re.MULTILINE)
    assert found, f"{name} isn't in:\n{text}"
    return found[1].strip()


def test_the_shape_is_what_lscpu_counts(seen: tuple[Shape, str]) -> None:
    wanted, text = seen
    for name, count in (
        ("CPU(s)", wanted.cpus),
        ("Socket(s)", wanted.sockets),
        ("Core(s) per socket", wanted.cores),
        ("Thread(s) per core", wanted.threads),
        ("NUMA node(s)", wanted.nodes),
    ):
        assert field(text, name) == str(count), name


def test_memory_is_the_shapes_less_what_the_kernel_keeps(seen: tuple[Shape, str]) -> None:
    wanted, text = seen
    assert 0.85 * wanted.memory_mib < int(field(text, "memory")) <= wanted.memory_mib


def test_dmi_says_which_ec2_host_it_stands_for(seen: tuple[Shape, str]) -> None:
    wanted, text = seen
    for (table, key), file in DMI.items():
        value = wanted.smbios[table].get(key, "")
        if value:
            assert f"dmi {file}={value}" in text.splitlines()


def test_a_hypervisor_flag_is_there_unless_the_shape_stands_for_metal(seen: tuple[Shape, str]) -> None:
    wanted, text = seen
    assert ("hypervisor" in field(text, "Flags").split()) == ("-hypervisor" not in wanted.cpu)


def test_it_runs_on_the_slow_clock_source_with_tsc_offered(seen: tuple[Shape, str]) -> None:
    text = seen[1]
    assert field(text, "current") == "hpet"
    assert "tsc" in field(text, "available").split()


def test_its_own_boot_loader_gave_it_its_command_line(seen: tuple[Shape, str]) -> None:
    wanted, text = seen
    command_line = field(text, "cmdline")
    assert command_line.startswith("BOOT_IMAGE=/boot/vmlinuz-")
    assert command_line.endswith(wanted.kernel_args)


def test_its_first_interface_is_called_as_on_ec2(seen: tuple[Shape, str]) -> None:
    assert re.search(r"^ens5\s+UP\s+10\.0\.2\.15/24", seen[1], re.MULTILINE)


def test_no_unit_failed(seen: tuple[Shape, str]) -> None:
    assert seen[1].splitlines()[-1] == "running"
