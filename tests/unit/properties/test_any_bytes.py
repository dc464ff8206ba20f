# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a host reports, a parser returns quickly, with a value or our one error class."""

from __future__ import annotations

from typing import Any, Callable, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import (
    blkfront,
    block_queue,
    boot_commands,
    boot_entry,
    boot_line,
    boot_record,
    clocksource,
    cmdline,
    cpuinfo,
    cpulist,
    cpumask,
    environment_file,
    grub_config,
    grub_menu,
    interrupts,
    irq_name,
    kernel_arguments,
    kernel_counters,
    kernel_log,
    kernel_release,
    link_settings,
    mountinfo,
    os_release,
    shell_defaults,
    time_sources,
    udev_rules,
)
from hypothesis import example, given
from hypothesis import strategies as st

PARSERS: Tuple[Callable[[str], Any], ...] = (
    boot_entry.environment,
    boot_entry.parse,
    lambda text: boot_entry.arguments((text,), {"kernelopts": text}),
    lambda text: boot_line.read(boot_line.ENTRY, text),
    lambda text: shell_defaults.find(text, "GRUB_CMDLINE_LINUX"),
    shell_defaults.unfinished,
    lambda text: boot_line.foreign(text, {"tsc": ("tsc=reliable",)}, last=False),
    boot_record.parse,
    grub_config.entries,
    grub_config.is_stub,
    grub_menu.entries,
    kernel_arguments.checked_tokens,
    lambda text: kernel_arguments.in_force(cmdline.tokens(text), ("tsc=reliable",)),
    blkfront.agreements,
    blkfront.refused_queues,
    block_queue.schedulers,
    block_queue.number,
    lambda text: [block_queue.holds(name, text, "4") for name in block_queue.ATTRIBUTES],
    lambda text: [block_queue.holds(name, "4", text) for name in block_queue.ATTRIBUTES],
    lambda text: [block_queue.remembered(name, text) for name in block_queue.ATTRIBUTES],
    mountinfo.parse,
    clocksource.available,
    clocksource.current,
    cmdline.tokens,
    lambda text: [cmdline.split(token) for token in cmdline.tokens(text)],
    lambda text: cmdline.values(cmdline.tokens(text), "clocksource"),
    kernel_counters.parse_counts,
    kernel_counters.parse_netstat,
    kernel_counters.parse_softnet,
    kernel_counters.parse_swaps,
    kernel_counters.in_use,
    lambda text: kernel_counters.disk_of(text, kernel_counters.in_use(text)),
    lambda text: time_sources.render(time_sources.chrony(text)),
    lambda text: time_sources.render(time_sources.timesyncd(text)),
    cpuinfo.parse,
    cpulist.parse,
    cpumask.parse,
    environment_file.reads,
    environment_file.words,
    lambda text: environment_file.assigned(text, "A", "b"),
    lambda text: environment_file.assigned(text, "A", None),
    interrupts.parse,
    lambda text: [(line.number, line.names) for line in interrupts.parse(text).lines],
    irq_name.queue_of,
    lambda text: list(link_settings.ifupdown(text)),
    lambda text: list(link_settings.netplan(text)),
    lambda text: list(boot_commands.settings(text)),
    lambda text: list(udev_rules.assignments(text, {"ACTION": "add"}, lambda name: name)),
    lambda text: grub_config.variables(text, {"a": text}),
    lambda text: link_settings.matches(link_settings.lines(f"[Match]\n{text}"), {"Name": "ens5", "Driver": "ena"}),
    lambda text: list(boot_commands.settings(f"blockdev --setra {text} /dev/nvme0n1")),
    lambda text: link_settings.met(text.split(), "ens5"),
    lambda text: link_settings.settings(link_settings.lines(f"[Link]\nMTUBytes={text}"), "Link"),
    kernel_log.tsc_unstable_marks,
    kernel_log.clocksource_switches,
    kernel_log.first_sequence,
    kernel_release.parse,
    kernel_counters.parse_meminfo,
    os_release.parse,
)

# Texts made of the formats' own elements get further than random texts.
PIECES = st.sampled_from(
    [
        *"0123456789abcdef,-:=.\"'\\ \t\n\0",
        "cpu",
        "flags\t\t: ",
        "processor\t: ",
        "CPU implementer\t: 0x",
        "Node 0 MemTotal:       1 kB",
        "Marking TSC unstable due to",
        "\nblkfront: xvda: barrier or flush: enabled",
        "; persistent grants: ",
        "Invalid max_queues (",
        "Switched to clocksource ",
        "6,1,2,-;",
        "[    0.000000] ",
        "99999999999999999999",
        "clocksource=",
        "tsc=reliable",
        "### BEGIN /etc/grub.d/10_linux ###\n",
        "\tlinux\t/boot/vmlinuz-1 ",
        "\tinitrd\t",
        "menuentry 'x' $menuentry_id_option 'y' {\n",
        "options $kernelopts ",
        '{"version": 1, "arguments": {"tsc": "',
        "--",
        "ID=",
        "           CPU0       CPU1\n",
        " 24: 1 2 PCI-MSI 1-edge eth0-Tx-Rx-0, eth1",
        "²",
        "٣",
    ]
)
TEXTS = st.one_of(
    st.binary(max_size=300).map(lambda data: data.decode("utf-8", "replace")),
    st.text(max_size=300),
    st.lists(PIECES, max_size=60).map("".join),
)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=TEXTS)
@example(text="0-99999999999")
@example(text="0-4294967295")
@example(text="\u00b2")
@example(text=",")
@example(text="0x")
@example(text="processor\t: 0\nCPU part\t: " + "9" * 5000)
@example(text="9" * 5000 + "." + "9" * 5000)
def test_a_parser_raises_only_our_error(parser: Callable[[str], Any], text: str) -> None:
    message = ""
    try:
        parser(text)
    except NearmetalError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 1000
