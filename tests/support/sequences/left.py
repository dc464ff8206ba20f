# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where levers write, the foreign values that restore leaves, and whether each place was named to the operator."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Set

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Run

from tests.support.fake_kernel import FakeKernel

# Where a lever writes: a change elsewhere is one that check didn't promise.
PLACES: Mapping[str, str] = {
    "clock": r"/sys/devices/system/clocksource/.*",
    "smt": r"/sys/devices/system/(cpu|node)/.*|/proc/irq/.*",
    "power": r"/sys/devices/system/cpu/.*|/sys/firmware/acpi/platform_profile",
    "hugepages": r"/sys/(kernel/mm|devices/system/node)/.*|/proc/sys/vm/.*|/proc/1/mounts|/etc/systemd/.*",
    "memory": r"/proc/sys/vm/dirty_.*|/sys/kernel/mm/ksm/run",
    "boot": r"/boot/.*|/etc/(default/grub.*|kernel/cmdline)",
    "network": r"/sys/class/net/.*|/sys/devices/pci.*/msi_irqs/.*|/proc/(irq/.*|interrupts)",
    "irqbalance": r"/etc/(sysconfig|default)/irqbalance",
    "block": r"/sys/devices/.*/queue/.*",
    "sysctl": r"/proc/sys/.*",
    "files": r"/etc/.*|/usr/local/.*",
    "unit": r"/etc/systemd/.*|/usr/local/.*|/run/nearmetal/.*",
}
# A file of the kernel → words of a sentence about it, with the groups of the path.
_NAMED: Mapping[str, Sequence[str]] = {
    r"/proc/sys/vm/(dirty|dirty_background)_(?:ratio|bytes)": (r"memory\.{0} ",),
    r"/proc/sys/(.*)": (r"\b{0}\b",),
    r"/sys/kernel/mm/ksm/run": (r"memory\.ksm",),
    r"/proc/irq/(\d+)/smp_affinity_list": (r"network_irq", r"\b{label}\b"),
    r"/sys/class/net/(.*)/queues/(.*)/(?:rps_cpus|rps_flow_cnt|xps_cpus)": (r"network_irq", r"\b{1}\b", "{place}"),
    r"/sys/class/net/(.*)/queues/(.*)/byte_queue_limits/.*": (r"network_stack", r"\b{1}\b", "{place}"),
    r"/sys/class/net/(.*)/(mtu|tx_queue_len|napi_defer_hard_irqs|gro_flush_timeout)": (r"network_stack", "{place}"),
    r"/sys/devices/system/cpu/cpufreq/(policy\d+)/.*": (r"cpu_power", r"\b{0}\b"),
    r"/sys/devices/system/cpu/cpu(\d+)/cpuidle/(state\d+)/disable": (r"cpu_power", r"\b{1}/{0}\b"),
    r"/sys/devices/system/cpu/cpu(\d+)/power/energy_perf_bias": (r"cpu_power", r"\bcpu{0}\b"),
    r"/sys/devices/system/cpu/intel_uncore_frequency/([^/]*)/.*": (r"cpu_power", r"\b{0}\b"),
    r"/sys/firmware/acpi/platform_profile": (r"cpu_power\.platform_profile",),
    r"/sys/devices/system/cpu/(?:cpufreq/boost|intel_pstate/no_turbo)": (r"cpu_power\.turbo",),
    r"/sys/devices/system/cpu/(?:smt/control|cpu(\d+)/online)": (r"smt\.",),
    r"/sys/kernel/mm/transparent_hugepage/(.*)": (r"hugepages\.",),
    r"/sys/devices/system/node/(node\d+)/hugepages/.*": (r"hugepages\.", r"\b{0}\b"),
    r"/sys/kernel/mm/hugepages/.*": (r"hugepages\.",),
    r"/sys/devices/system/clocksource/.*": (r"clocksource\.",),
    r"/sys/(?:block|devices/.*)/([^/]*)/queue/(.*)": (r"block_storage\.",),
}


def is_about(sentence: str, path: str) -> bool:
    """Whether a sentence is about the setting of a kernel file: of a kernel parameter itself, else of its concern."""
    for pattern, words in _NAMED.items():
        match = re.fullmatch(pattern, path)
        if match is not None:
            parts = [part.replace("/", ".") for part in match.groups("")]
            return re.search(words[0].format(*parts), sentence) is not None
    return False


def said_by(done: Run) -> List[str]:
    """The sentences in which a run names the values that its restore left, one per finding."""
    return [
        f"{finding['concern']}.{finding['knob']} {finding['where']}: {finding['reason']} {finding['now']}"
        for finding in contract(done.outcomes)["findings"]
        if finding["reference"] == "journal" and finding["status"] not in ("changed", "would_change")
    ]


class Left:
    """The kernel files that nearmetal wrote, each with its text before."""

    def __init__(self, host: FakeKernel, twin: FakeKernel) -> None:
        self._host = host
        self._twin = twin  # the twin without nearmetal
        self._firsts: Dict[str, str] = {}
        self._others: Set[str] = set()  # the files that somebody wrote later
        self.quiet = False  # a run died before it could report anything

    def writing(self, path: str) -> None:
        """nearmetal is about to write."""
        now = self._text(path)
        if now is not None:
            self._firsts.setdefault(path, now)
            self._others.discard(path)

    def somebody(self, path: str) -> None:
        """Somebody else wrote."""
        self._others.add(path)

    def written(self) -> List[str]:
        """The files that have another value now, by name."""
        return sorted(path for path, first in self._firsts.items() if self._text(path) != first)

    def booted(self) -> None:
        """A boot drops every written value."""
        self._firsts.clear()

    def renamed(self, name: str, other: str) -> None:
        """An interface has another name."""
        before, after = (f"/sys/class/net/{nic}/" for nic in (name, other))
        self._firsts = {path.replace(before, after): text for path, text in self._firsts.items()}
        self._others = {path.replace(before, after) for path in self._others}

    def heard(self, sentences: Sequence[str]) -> None:
        """End a step: forget places that are restored, detached or named."""
        for path, first in list(self._firsts.items()):
            now = self._text(path)
            if now in (None, first, self._text(path, self._twin)) or any(self._names(text, path) for text in sentences):
                del self._firsts[path]

    def unsaid(self) -> List[str]:
        """The places that differ from before and that no run has reported."""
        foreign = {path: first for path, first in self._firsts.items() if path in self._others and not self.quiet}
        found = [f"{path}: {self._text(path)!r}, was {first!r}" for path, first in foreign.items()]
        self._firsts.clear()
        self.quiet = False
        return found

    def _names(self, sentence: str, path: str) -> bool:
        for pattern, words in _NAMED.items():
            match = re.fullmatch(pattern, path)
            if match is not None:
                parts = [part.replace("/", ".") for part in match.groups("")]
                known = {"label": self._label(parts[0]) if "irq" in path else "", "place": self._place(parts)}
                return all(re.search(word.format(*parts, **known), sentence) for word in words)
        raise AssertionError(f"nobody knows how {path} is called")

    def _label(self, number: str) -> str:
        """The queue of an interrupt."""
        line = re.search(rf"^ *{number}:.*-(\d+)(?:-[rt]x)?$", self._text("/proc/interrupts") or "", re.MULTILINE)
        return line[1] if line is not None else number

    def _place(self, parts: Sequence[str]) -> str:
        """The device of the interface that a path begins with."""
        device = f"{self._host.root}/sys/class/net/{(parts or [''])[0]}/device"
        return os.path.basename(os.readlink(device)) if os.path.islink(device) else ""

    def _text(self, path: str, host: Optional[FakeKernel] = None) -> Optional[str]:
        try:
            return (Path((host or self._host).root) / path.lstrip("/")).read_text()
        except OSError:
            return None
